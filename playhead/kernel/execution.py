"""An agent's run from its first message to its result, for the root and for agents below it alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from playhead.errors import ModelError, PlayheadError, ReplayError, RunEndedError, StrategyError, UsageError
from playhead.kernel.describe import describe
from playhead.kernel.loop import close_state
from playhead.kernel.prompts import system_prompt
from playhead.kernel.state import KernelState, Thread
from playhead.kernel.strategies import get_strategy
from playhead.trace.events import FinalAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session, Termination
    from playhead.trace.types import Content

ANSWERED = frozenset({"final_answer_tool", "final_answer", "end_turn"})
"""The endings in which the model itself said what the answer is."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What an agent reached, and the error that ended it, if one did."""

    state: KernelState
    termination: Termination
    error: BaseException | None
    iterations: int
    duration_ms: float

    def ending_fields(self) -> dict[str, Any]:
        """Return the fields that `run-completed` and `agent-completed` have in common."""
        return {
            "status": self.status,
            "terminated_by": self.termination.reason,
            "terminated_source": self.termination.source,
            "output": self.state.output,
            "error": self.state.error,
            "usage": self.state.usage,
            "cost_usd": self.state.cost_usd,
            "iterations": self.iterations,
            "duration_ms": self.duration_ms,
        }

    @property
    def status(self) -> Literal["done", "failed"]:
        """Whether the agent stopped in order."""
        return "failed" if self.termination.failed else "done"


async def execute(session: Session, task: Content, on_end: Callable[[Execution], object] = lambda _: None) -> Execution:
    """Run the session's strategy on the task; errors are returned with what was reached, never lost with it.

    `on_end` gets the same before anything is returned: of a coroutine that is thrown away nobody gets what it returns.
    """
    clock = session.run.recorder.clock
    started_us = clock.now_us()
    state = KernelState(task_id=session.run.run_id, owner=session.owner, strategy=session.header.strategy)
    error: BaseException | None = None
    try:
        name, strategy = get_strategy(session.header.strategy)
        session.define_tools()
        state = session.state = state.model_copy(update={"thread": _first_messages(session, task)})
        state = _checked_state(name, await strategy(state, session))
        if not session.ended:
            session.terminate("end_turn", state.output, source=f"strategy:{session.header.strategy}")
    except RunEndedError:
        pass  # asked for something after the end: the end stands
    except BaseException as raised:  # noqa: BLE001 - cancellation too has to close the trace; it is raised again
        error = raised
        end_with_error(session, raised)
    state = session.state if error is not None and session.state else state
    termination = _termination_of(session, state)
    state = close_state(state, session)
    if termination.reason in ANSWERED and termination.output is not None:
        session.emit_last(FinalAnswer(output=termination.output, **termination.answer))
    iterations = 0 if session.iteration is None else session.iteration + 1
    session.leave_loop(state)
    execution = Execution(state, termination, error, iterations, (clock.now_us() - started_us) / 1000)
    on_end(execution)
    return execution


def _checked_state(strategy: str, returned: object) -> KernelState:
    """Return a strategy's last state; its fields end up in the trace and in the result, so they have to be right."""
    if not isinstance(returned, KernelState):
        raise TypeError(f"the strategy {strategy} returned {type(returned).__name__}, not a KernelState")
    try:
        return KernelState.model_validate(returned.__dict__)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise TypeError(
            f"the strategy {strategy} returned a state whose {place} is not right: {first['msg']}"
        ) from None


def end_with_error(session: Session, error: BaseException) -> None:
    """End the agent for an error that came out of its strategy."""
    state = session.state
    best = state.last_observation if state else None
    message = describe(error)
    if not isinstance(error, Exception):  # a cancellation, an interrupt, or a coroutine that is thrown away
        session.terminate("cancelled", best, failed=True, error="the run was cancelled from outside")
    elif isinstance(error, ReplayError):
        session.terminate("replay_stopped", best, failed=True, error=message)
    elif isinstance(error, (ModelError, UsageError)):
        session.terminate("llm_error", best, failed=True, error=message)
    else:
        session.terminate("error", best, failed=True, error=f"{type(error).__name__}: {message}")


def as_run_error(error: BaseException) -> BaseException:
    """Return what the caller of the run is to see: our own errors and interrupts as they are."""
    if isinstance(error, PlayheadError) or not isinstance(error, Exception):
        return error
    wrapped = StrategyError(f"the strategy raised {type(error).__name__}: {describe(error)}")
    wrapped.__cause__ = error
    return wrapped


def _first_messages(session: Session, task: Content) -> Thread:
    header = session.header
    prompt = system_prompt(header, has_tools=any(tool.spec.kind != "meta" for tool in session.toolset.values()))
    messages = [session.add_message("system", prompt)] if prompt else []
    for example in header.examples:
        fields = example.model_dump(include={"tool_calls", "tool_call_id", "name"}, exclude_none=True)
        messages.append(session.add_message(example.role, example.content, **fields))
    return Thread().add(*messages, session.add_message("user", task))


def _termination_of(session: Session, state: KernelState) -> Termination:
    """Return how this agent ended; one that was stopped because its parent ended says so."""
    if session.termination is None:
        session.terminate("parent_ended", state.last_observation, failed=True)
    termination = session.termination
    assert termination is not None  # noqa: S101 - set just above at the latest
    return termination
