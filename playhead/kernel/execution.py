"""An agent's run from its first message to its result, for the root and for sub-agents."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic import ValidationError

from playhead.errors import ModelError, PlayheadError, ReplayError, RunEndedError, StrategyError, UsageError
from playhead.kernel.describe import describe, described
from playhead.kernel.hooks import SUPPRESS, Nudge, Resume, Skip
from playhead.kernel.loop import close_state, collect_spending
from playhead.kernel.passes import closed_thread
from playhead.kernel.phases import GivenUpError, came_late, end_by_hook, record_steering, steer, visit
from playhead.kernel.prompts import system_prompt
from playhead.kernel.state import KernelState, Thread, transition
from playhead.kernel.strategies.base import strategy_of
from playhead.kernel.strategies.reactive import Reactive
from playhead.trace.events import FinalAnswer
from playhead.trace.format import ANSWERED
from playhead.trace.recorder import observer_timeout
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playhead.diagnose.spending import Total
    from playhead.kernel.hooks import HookReply
    from playhead.kernel.lifecycle.termination import Termination
    from playhead.kernel.session import Session
    from playhead.kernel.strategies.base import Strategy
    from playhead.trace.events import EventBase
    from playhead.trace.types import Content


@dataclass(frozen=True)
class Execution:
    """An agent's final state, and the error that ended it, if any."""

    state: KernelState
    termination: Termination
    error: BaseException | None
    iterations: int
    duration_ms: float
    total: Total
    """Usage and cost of the agent and those below it."""
    strategy: str | None
    """The strategy that made the output, if it is not the header's."""

    def ending_fields(self) -> dict[str, Any]:
        """Return the fields that `run-completed` and `agent-completed` share."""
        return {
            "status": self.status,
            "terminated_by": self.termination.reason,
            "terminated_source": self.termination.source,
            "output": self.state.output,
            "error": self.state.error,
            "terminated_because": self.termination.because,
            **self.total._asdict(),
            "iterations": self.iterations,
            "duration_ms": self.duration_ms,
            "strategy_used": self.strategy,
        }

    @property
    def status(self) -> Literal["done", "failed"]:
        """The agent's status."""
        return "failed" if self.termination.failed else "done"


async def execute(
    session: Session, task: Content, ending: Callable[[Execution], EventBase], scope: AbstractContextManager[None]
) -> Execution | None:
    """Run the session's strategy on the task; return errors together with the state that was reached.

    `ending` makes the agent's last event, which is recorded before the return, because a destroyed coroutine returns nothing.
    Cancelling `scope` ends the strategy, not the hooks that check its output.

    Returns:
        The result; None if the agent was abandoned meanwhile, and its end recorded.
    """
    state, error = await _begin_and_run(session, task, scope)
    _termination_of(session, state)
    state = close_state(state, session)
    if _is_cut_off(session, error):
        state = _without_unchecked(state, session)
    elif session.gate.hooks is not None:
        try:
            state = await _check_output(state, session, error if isinstance(error, Exception) else None)
        except BaseException as raised:  # noqa: BLE001 - as above
            # A stopped replay comes before any other error.
            error = raised if isinstance(raised, ReplayError) else error or raised
            if isinstance(raised, ReplayError):
                session.ending.withhold("replay_stopped", "kernel", describe(raised))
            else:
                end_with_error(session, raised)
            state = transition(close_state(state, session), output=None)  # hooks have not accepted it
    return finish(session, state, error, ending)


def finish(
    session: Session, state: KernelState, error: BaseException | None, ending: Callable[[Execution], EventBase]
) -> Execution | None:
    """Close the agent and record its end; None if it was abandoned meanwhile."""
    if not session.ending.close():
        return None
    state = collect_spending(state, session)
    execution = _execution(session, state, error)
    _record_end(execution, session, ending)
    return execution


_CANCELLED: Final = ("cancelled", "parent_ended")


def _is_cut_off(session: Session, error: BaseException | None) -> bool:
    """Return whether the agent was cancelled, so that its hooks are not asked."""
    ended = session.termination
    cancelled = session.cut_off and ended is not None and ended.reason in _CANCELLED
    return cancelled or not (error is None or isinstance(error, Exception))


def _without_unchecked(state: KernelState, session: Session) -> KernelState:
    """Return the state, without its output if hooks have yet to check it."""
    hooks = session.gate.hooks and session.gate.hooks.callers()
    unchecked = hooks is not None and (hooks.wants("answer.final") or hooks.at_phase("complete"))
    return transition(state, output=None) if unchecked else state


async def _begin_and_run(
    session: Session, task: Content, scope: AbstractContextManager[None]
) -> tuple[KernelState, BaseException | None]:
    """Return the strategy's last state, and its exception."""
    header = session.header
    session.at.begin(session.run.recorder.clock.now_us())
    first = session.reach(KernelState(task_id=session.run.run_id, strategy=header.strategy))
    try:
        with scope:
            state = await _begin(first, session, task)
            return await _run_until_accepted(state, session), None
    except RunEndedError:
        # The strategy used a port after the end.
        return session.state or first, None
    except BaseException as raised:  # noqa: BLE001 - cancellation too has to close the trace; it is raised again
        end_with_error(session, raised)
        return session.state or first, raised
    return session.state or first, None  # ended from outside


def _record_end(execution: Execution, session: Session, ending: Callable[[Execution], EventBase]) -> None:
    """Record the end of an agent; the root's is the last event, because it counts the events lost before it."""
    state, termination, turn = execution.state, execution.termination, session.iteration
    events: list[tuple[EventBase, int | None]] = [(session.snapshot(state), turn)]
    if termination.reason in ANSWERED and termination.output is not None and state.output is not None:
        events.insert(0, (FinalAnswer(output=state.output, **termination.answer), turn))
    session.at.enter_iteration(None)
    is_root = session.parent is None
    with observer_timeout() if session.ending.interrupted else nullcontext():
        if not is_root:
            events.append((ending(execution), None))
        if session.emit_end("agent", "", *events) and is_root:
            session.run.recorder.emit(ending(execution), session.owner)


def abandoned_execution(session: Session) -> Execution:
    """Return the result of an agent whose code is abandoned; called from outside its loop.

    An output that hooks have yet to check is left out.
    """
    state = session.state or KernelState(task_id=session.run.run_id, strategy=session.header.strategy)
    termination = _termination_of(session, state)
    state = _without_unchecked(close_state(state, session, termination), session)
    return _execution(session, state, None)


def _execution(session: Session, state: KernelState, error: BaseException | None) -> Execution:
    lasted_ms = (session.run.recorder.clock.now_us() - session.at.started_us) / 1000
    termination, total = _termination_of(session, state), session.spent.total()
    strategy = None if session.at.strategy == session.header.strategy else session.at.strategy
    return Execution(state, termination, error, session.at.turns, lasted_ms, total, strategy)


async def _begin(state: KernelState, session: Session, task: Content) -> KernelState:
    """Run what precedes the loop: the first messages, and the phases that only hooks use."""
    session.messages.define_tools(tuple(tool.spec for tool in session.toolset.values()))
    session.reach(state)
    await session.offer("lifecycle.started", {"task": to_json(task), "agent": session.header.name})

    session.at.enter_phase("bootstrap")
    session.at.take_task(task)
    if session.gate.hooks is None:
        return session.reach(transition(state, thread=await _first_messages(session, task)))
    skipped = await steer("bootstrap", "before", state, session) is not None
    session.require_running()
    thread = Thread().add(await session.messages.add_user(task)) if skipped else await _first_messages(session, task)
    state = session.reach(transition(state, thread=thread))
    await steer("bootstrap", "after", state, session)
    session.require_running()
    state = session.reach(await _emit_seeds(state, session))
    for phase in ("guardrail", "cost-route", "strategy-select"):
        session.require_running()
        await visit(phase, state, session)
    return state


async def _run_until_accepted(state: KernelState, session: Session) -> KernelState:
    """Run the strategy, and again each time a hook rejects its answer."""
    strategy, switches = strategy_of(session.header), count(1)
    resumed = 0
    while True:
        session.require_running()
        if resumed < session.header.max_iterations:
            strategy, state = await _run_to_end(strategy, state, session, switches)
        else:  # a strategy without turns would run forever
            session.terminate("max_iterations", state.best)
        if not session.ended:
            session.terminate("end_turn", state.output, source=f"strategy:{session.header.strategy}")
        state, resumes = await _checked_by_hooks(state, session)
        if session.ended:
            return state
        if not (resumes or strategy.goes_on):
            strategy = Reactive()
        resumed += 1


async def _checked_by_hooks(state: KernelState, session: Session) -> tuple[KernelState, bool]:
    """Let hooks check the strategy's answer; if they reject it, the agent has not ended.

    Also return whether the same strategy continues.
    """
    if session.gate.hooks is None:
        return state, False
    state = session.reach(close_state(state, session))
    for phase in ("verify", "memory-flush", "cost-track", "audit"):
        await visit(phase, state, session)
    reply = await steer("complete", "before", state, session)
    state = cast("KernelState", session.state)
    if reply is None or isinstance(reply.answer, Skip):
        return state, False
    return await _with_rejection(reply, state, session), isinstance(reply.answer, Resume)


async def _with_rejection(reply: HookReply, state: KernelState, session: Session) -> KernelState:
    """Return the state in which the model continues with the hook's message; if it cannot, the agent stays ended."""
    answer, ended = reply.answer, session.termination
    nudge = Nudge(answer.reason, "resume") if isinstance(answer, Resume) else cast("Nudge", answer)
    if nudge.otherwise is None or state.iteration < session.header.max_iterations:
        if ended is None or not session.ending.overrule(None):
            came_late(reply, "complete", "before", session)
            return state
        record_steering(reply, "complete", "before", session)
        state = session.reach(transition(state, status="thinking", error=None))
        closed = await closed_thread(state, session)
        thread = await session.messages.nudge(closed, nudge.name, nudge.text, severity=nudge.severity)
        if isinstance(answer, Resume):
            return session.reach(transition(state, thread=thread, output=None))
        if thread is not closed:
            return session.reach(transition(state, thread=thread))
        session.ending.end(ended)  # a hook removed the message, so that asking again would change nothing
    if nudge.otherwise is not None:
        end_by_hook(reply._replace(answer=nudge.otherwise), "complete", "before", state, session)
    return state


async def _run_to_end(
    strategy: Strategy, state: KernelState, session: Session, switches: Iterator[int]
) -> tuple[Strategy, KernelState]:
    """Run a strategy and those that take over from it; return the last one and its last state."""
    while True:
        try:
            return strategy, _checked_state(strategy, await strategy.run(state, session))
        except GivenUpError as given_up:
            from playhead.kernel.handover import hand_over  # noqa: PLC0415 - few agents switch

            strategy, state = await hand_over(given_up, session, next(switches))


async def _check_output(state: KernelState, session: Session, error: Exception | None) -> KernelState:
    """Let hooks check the output; if a required hook fails, it is withheld."""
    try:
        session.at.enter_phase("complete")
        termination = _termination_of(session, state)
        state = close_state(state, session)
        if state.output is not None and not termination.withheld:
            answer = await session.offer("answer.final", state.output)
            state = transition(state, output=None if answer is SUPPRESS else answer)
        if error is None:
            await steer("complete", "after", state, session)
            state = transition(close_state(state, session), output=state.output)  # as hooks changed it, even to None
    except RunEndedError:  # a required hook failed
        state = close_state(state, session)
    ended = {"status": state.status, "terminated_by": _termination_of(session, state).reason}
    with suppress(RunEndedError):
        await session.offer("lifecycle.completed", {**ended, "output": state.output, "error": state.error})
        return state
    return close_state(state, session)


def _checked_state(strategy: Strategy, returned: object) -> KernelState:
    """Return a strategy's last state, validated, because its fields end up in the trace and the result."""
    if not issubclass(type(returned), KernelState):
        raise TypeError(f"the strategy {strategy.name} returned {type(returned).__name__}, not a KernelState")
    try:
        return KernelState.model_validate(returned.__dict__)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"{'.'.join(map(str, first['loc']))} is not right: {first['msg']}"
        raise TypeError(f"the strategy {strategy.name} returned a state whose {what}") from None


def end_with_error(session: Session, error: BaseException) -> None:
    """End the agent because its strategy raised."""
    state = session.state
    best = state.best if state else None
    message = describe(error)
    if not isinstance(error, (Exception, SystemExit)):  # a cancellation, an interrupt, or a destroyed coroutine
        why = "the run was cancelled from outside"
        # Hooks have not accepted the model's answer yet.
        session.terminate("cancelled", best, failed=True, error=why, overrule=session.gate.hooks is not None)
    elif isinstance(error, ReplayError):
        session.terminate("replay_stopped", best, failed=True, error=message, overrule=True)
    elif isinstance(error, (ModelError, UsageError)):
        session.terminate("llm_error", best, failed=True, error=message)
    else:
        session.terminate("error", best, failed=True, error=f"{type(error).__name__}: {message}")


def as_run_error(error: BaseException) -> BaseException:
    """Return the exception for the caller of the run: our own errors and interrupts as they are."""
    if isinstance(error, PlayheadError) or not isinstance(error, Exception):
        return error
    wrapped = StrategyError(f"the strategy raised {described(error)}")
    wrapped.__cause__ = error
    return wrapped


SEED: Final = "emission"
"""Name of the facts with the payloads of `harness.emit`."""


async def _first_messages(session: Session, task: Content) -> Thread:
    header, messages = session.header, session.messages
    prompt = system_prompt(header, has_tools=any(tool.spec.kind != "meta" for tool in session.toolset.values()))
    offered = await session.offer("prompt.system", prompt)
    first = [messages.add("system", offered)] if offered and offered is not SUPPRESS else []
    for example in header.examples:
        fields = example.model_dump(include={"tool_calls", "tool_call_id", "name"}, exclude_none=True)
        first.append(messages.add(example.role, example.content, **fields))
    preamble = Thread().add(*first)
    offered = await session.offer("prompt.task", task)
    message = None if offered is SUPPRESS else await messages.add_user(offered)
    session.at.take_task("" if message is None else message.content, preamble)
    return preamble.add(message)


async def _emit_seeds(state: KernelState, session: Session) -> KernelState:
    """Emit the payloads of `harness.emit`; messages and nudges join the thread."""
    for tag, given in session.gate.hooks.seeds() if session.gate.hooks else ():
        payload = await session.facts.ask(SEED, partial(to_json, given), key=tag)
        if tag == "message.user":
            state = transition(state, thread=state.thread.add(await session.messages.add_user(payload)))
        elif tag.startswith("nudge."):
            thread = await session.messages.nudge(state.thread, tag.removeprefix("nudge."), payload)
            state = transition(state, thread=thread)
        else:
            await session.offer(tag, payload)
    return state


def _termination_of(session: Session, state: KernelState) -> Termination:
    """Return the agent's termination, by default `parent_ended`."""
    if session.termination is None:
        session.terminate("parent_ended", state.best, failed=True)
    return cast("Termination", session.termination)
