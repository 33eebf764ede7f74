"""The contexts that hooks get beside their payload."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import PlayheadError, RunEndedError, UsageError
from playhead.kernel.copies import copy_json, twin
from playhead.kernel.state import KernelState, Thread, transition
from playhead.trace.events import AssumptionRecorded, DecisionEvaluated, GuardrailViolation, VerifierVerdict
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.compose.registration import Registration
    from playhead.kernel.hooks import Unmet
    from playhead.kernel.passes import Form
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.types import Content, ToolSpec

HOOK: Final = "hook"
"""What requests of a hook are for, and the name of its facts."""
POLICY: Final = "policy"
"""Name of the facts of policies."""
VERIFIED: Final = "playhead.verified"
"""Where the notes of a run hold whether a check found its answer right, for the result."""


@dataclass(frozen=True)
class HookContext:
    """Where in which run it happens."""

    _session: Session = field(repr=False)
    _hook: Registration | None = field(default=None, repr=False, init=False)
    tag: str
    """What passes; for a phase hook the phase's name."""
    run_id: str
    """The run."""
    owner: str
    """The agent: `root`, or for one below it the path of calls that led to it."""
    iteration: int | None
    """Turn of the loop, from 0; None outside the loop."""
    phase: str | None
    """The phase that runs; None outside of any."""

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._session.header.name

    @property
    def strategy(self) -> str:
        """The strategy that runs."""
        return self._session.at.strategy

    @property
    def notes(self) -> dict[Any, Any]:
        """A place to keep things from one call of a hook to the next: of this run and this agent, and in no trace."""
        return self._session.agent.gate.notes

    @property
    def max_iterations(self) -> int:
        """Turns of the loop at most."""
        return self._session.header.max_iterations

    @property
    def state(self) -> KernelState | None:
        """The state at the begin of the current phase: a copy, writing into it changes nothing; None before bootstrap.

        To continue from another one after an error, return `Recover(transition(context.state, …))`.
        """
        state = self._session.state
        return None if state is None else readable(state, self._session)

    @property
    def task(self) -> Content:
        """The task as the model gets it."""
        return self._session.task

    @property
    def tools(self) -> dict[str, ToolSpec]:
        """The tools that the loop that runs may use, by name."""
        return self._session.offered_specs()

    @property
    def unmet(self) -> tuple[Unmet, ...]:
        """What blocks still require before an answer may stand."""
        return self._session.unmet

    @property
    def in_tool(self) -> bool:
        """Whether it happens inside the body of a tool."""
        return self._session.agent is not self._session

    @property
    def turns(self) -> int:
        """Turns of the loop that have begun."""
        return self._session.at.turns

    @property
    def loop_began(self) -> int:
        """The turn in which the loop that runs began: strategies may run several, each for a part of the task."""
        return self._session.at.loop_began

    @property
    def terminated_by(self) -> str | None:
        """How the agent has ended, at `complete`: the reason code of the result; None while it runs."""
        return None if self._session.termination is None else self._session.termination.reason

    @property
    def answered(self) -> bool:
        """Whether the agent has ended with an answer of the model's."""
        return self.terminated_by in ANSWERED

    @property
    def model(self) -> Questions:
        """The agent's model, for questions of your own: recorded and paid for like any request."""
        return Questions(self)

    @property
    def facts(self) -> Facts:
        """Facts from outside that steer the run: obtained once, recorded, and served back in a replay."""
        return Facts(self)

    def record(self, event: EventBase) -> None:
        """Record an event of your own: a `DecisionEvaluated`, a `VerifierVerdict`, a `GuardrailViolation` or an `AssumptionRecorded`.

        Raises:
            UsageError: it is of another kind, which says what the kernel itself did.
        """
        if not self._of_policy:
            if not isinstance(event, RECORDABLE):
                names = ", ".join(each.__name__ for each in RECORDABLE)
                raise UsageError(f"a hook records a {names}; it is a {type(event).__name__}")
            if "by" in type(event).model_fields:
                event = event.model_copy(update={"by": self._hook.name if self._hook else ""})
        self._session.emit(event)

    async def offer(self, tag: str, payload: Any) -> Any:  # noqa: ANN401 - by tag
        """Return what other hooks make of a payload at a tag of yours, or SUPPRESS; see `declare_tag`."""
        return await self._session.offer(tag, payload)

    @property
    def _of_policy(self) -> bool:
        return self._hook is not None and self._hook.policy is not None


RECORDABLE: Final = (AssumptionRecorded, DecisionEvaluated, GuardrailViolation, VerifierVerdict)
"""What a hook may record."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Asks the agent's model, outside its thread."""

    _context: HookContext

    async def ask(self, prompt: str, *, purpose: str = HOOK) -> str:
        """Return the text of the answer to a prompt, which is sent with the agent's system prompt and examples.

        Give the hook time for it: `timeout_s=60`.

        Raises:
            ModelError: the model did not answer.
        """
        from playhead.kernel.passes import ask_once  # noqa: PLC0415 - few hooks ask

        answer: str = await self._put(prompt, ask_once, purpose)
        return answer

    async def ask_for(self, prompt: str, form: type[Form], *, purpose: str = HOOK) -> Form | None:
        """Return the answer as a pydantic model, which the prompt need not describe; None when it cannot be read so.

        An answer that does not fit is sent back twice. Raises as `ask`.
        """
        from playhead.kernel.passes import ask_for, form_prompt  # noqa: PLC0415 - as above

        answer: Form | None = await self._put(f"{prompt}\n\n{form_prompt(form)}", ask_for, purpose, form)
        return answer

    async def _put(self, prompt: str, question: Callable[..., Any], purpose: str, *form: Any) -> Any:  # noqa: ANN401
        from playhead.kernel.passes import fresh_thread  # noqa: PLC0415 - as above

        context, session = self._context, self._context._session  # noqa: SLF001 - of this file
        purpose = purpose if context._of_policy else HOOK  # noqa: SLF001 - as above
        with _not_ended(context):
            state = session.state
            if state is None or not state.thread.messages:
                raise UsageError("a hook asks the model after bootstrap: before that there is no conversation")
            state, answer = await question(state, session, await fresh_thread(session, prompt), *form, purpose=purpose)
            session.reach(state)
        return answer


@contextmanager
def _not_ended(context: HookContext) -> Iterator[None]:
    """Take back the end of an agent that has ended with an answer, while that is looked at; any other end stands."""
    session, of_policy = context._session, context._of_policy  # noqa: SLF001 - of this file
    ended, state = session.termination, session.state
    if ended is None or state is None:
        yield
        return
    if not session.ending.overrule(None):
        why = f"the agent has ended by {ended.reason}, and asks nothing any more: see context.answered"
        raise RunEndedError(why) if of_policy else UsageError(why)
    session.reach(transition(state, status="thinking"))
    try:
        yield
    except BaseException as error:
        if not (of_policy and isinstance(error, PlayheadError)):  # else that is how the run ends
            session.ending.end(ended)
        raise
    session.ending.end(ended)
    session.reach(transition(session.state or state, status=state.status))


@dataclass(frozen=True, slots=True)
class Facts:
    """Asks for what steers the run and is neither model nor tool."""

    _context: HookContext

    async def ask(self, key: str, answer: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Return what `answer`, sync or async, returns, as JSON; in a replay what was recorded under the same key."""
        context = self._context
        hook, name = context._hook, POLICY if context._of_policy else HOOK  # noqa: SLF001 - of this file
        with _not_ended(context):
            facts = context._session.facts  # noqa: SLF001 - as above
            return await facts.ask(name, answer, key=f"{hook.name if hook else ''}:{key}")

    async def now_us(self, key: str) -> int:
        """Return the time by the run's clock, in microseconds since the Unix epoch; in a replay the recorded one."""
        now: int = await self.ask(key, self._context._session.run.recorder.clock.now_us)  # noqa: SLF001 - as above
        return now


@dataclass(frozen=True)
class NudgeContext(HookContext):
    """The context of a nudge, before it joins the thread."""

    trigger: str = ""
    """What brought it about."""
    severity: Literal["info", "warn", "critical"] = "info"
    """How grave it is."""


@dataclass(frozen=True)
class CallContext(HookContext):
    """Where a call is about to be made, or its reason is about to be recorded."""

    tool: str = ""
    """The tool, as the model named it."""
    call_id: str = ""
    """The call."""


@dataclass(frozen=True)
class ToolResultContext(CallContext):
    """The context of a tool result, before it joins the thread or the steps."""

    repaired: bool = False
    """Whether the call was malformed and put right before it ran."""
    duration_ms: float = 0.0
    """Milliseconds that it took."""


@dataclass(frozen=True)
class PhaseContext(HookContext):
    """Where a phase begins, ends or failed."""

    timing: Literal["before", "after", "on-error"] = "before"
    """On which side of the phase."""

    @property
    def state(self) -> KernelState:
        """The state at this side of the phase; else as for any context."""
        state = self._session.state
        assert state is not None  # noqa: S101 - set before a phase hook is asked
        return readable(state, self._session)


_KINDS: Final[dict[str, type[HookContext]]] = {
    "duration_ms": ToolResultContext,
    "trigger": NudgeContext,
    "timing": PhaseContext,
}
"""The context whose details have a field of this name; other details are those of a call."""


def make_context(session: Session, tag: str, details: Mapping[str, Any]) -> HookContext:
    """Return the context for a tag, of the type that holds its details.

    Its fields are set all at once: one is made for everything that passes, and a frozen data class sets one by one.
    """
    kind = next((kind for name, kind in _KINDS.items() if name in details), CallContext) if details else HookContext
    context = kind.__new__(kind)
    context.__dict__.update(_session=session, tag=tag, run_id=session.run.run_id, owner=session.owner)
    context.__dict__.update({"iteration": session.iteration, "phase": session.at.phase, **details})
    return context


def readable(state: KernelState, session: Session) -> KernelState:
    """Return a private copy of the state; its messages and steps are copied once a run, not on each access."""
    return transition(
        state,
        thread=Thread(session.gate.shown.messages.of(state.thread.messages), state.thread.ranges),
        steps=session.gate.shown.steps.of(state.steps),
        usage=twin(state.usage),
        pending=tuple(map(_copy_planned, state.pending)),
        completed=twin(state.completed),
        output=copy_json(state.output),
        meta=copy_json(state.meta),
    )


def _copy_planned(planned: PlannedCall) -> PlannedCall:
    return replace(planned, call=twin(planned.call), rationale=twin(planned.rationale))
