"""The contexts that hooks receive in addition to their payload."""

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
    from playhead.kernel.forms import Form
    from playhead.kernel.hooks import Unmet
    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall
    from playhead.trace.events import EventBase
    from playhead.trace.types import Content, ToolSpec

HOOK: Final = "hook"
"""Purpose of requests from hooks, and the name of their facts."""
POLICY: Final = "policy"
"""Name of the facts of policies."""
VERIFIED: Final = "playhead.verified"
"""Key in a run's notes for whether a check found its answer right; the result reports it."""


@dataclass(frozen=True)
class HookContext:
    """The place in the run where a hook is called."""

    _session: Session = field(repr=False)
    _hook: Registration | None = field(default=None, repr=False, init=False)
    tag: str
    """The payload's tag; for a phase hook, the phase's name."""
    run_id: str
    """The run."""
    owner: str
    """The agent: `root`, or for a sub-agent the path of calls that led to it."""
    iteration: int | None
    """Turn of the loop, from 0; None outside the loop."""
    phase: str | None
    """The current phase; None outside of any."""

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._session.header.name

    @property
    def strategy(self) -> str:
        """Name of the current strategy."""
        return self._session.at.strategy

    @property
    def notes(self) -> dict[Any, Any]:
        """A dictionary for hooks to keep values between calls, for this agent in this run; never recorded."""
        return self._session.agent.gate.notes

    @property
    def max_iterations(self) -> int:
        """The maximum number of turns of the loop."""
        return self._session.header.max_iterations

    @property
    def state(self) -> KernelState | None:
        """A copy of the state at the start of the current phase; changing it has no effect. None before bootstrap.

        To continue from another state after an error, return `Recover(transition(context.state, …))`.
        """
        state = self._session.state
        return None if state is None else readable(state, self._session)

    @property
    def task(self) -> Content:
        """The task, as given to the model."""
        return self._session.task

    @property
    def tools(self) -> dict[str, ToolSpec]:
        """The tools that the current loop may use, by name."""
        return self._session.offered_specs()

    @property
    def unmet(self) -> tuple[Unmet, ...]:
        """What blocks still require before they accept an answer."""
        return self._session.unmet

    @property
    def in_tool(self) -> bool:
        """Whether the hook is called inside the body of a tool."""
        return self._session.agent is not self._session

    @property
    def turns(self) -> int:
        """The number of turns that have begun."""
        return self._session.at.turns

    @property
    def loop_began(self) -> int:
        """The turn in which the current loop began; a strategy may run several loops, each for a part of the task."""
        return self._session.at.loop_began

    @property
    def terminated_by(self) -> str | None:
        """The reason code of the agent's end, at `complete`; None while it runs."""
        return None if self._session.termination is None else self._session.termination.reason

    @property
    def answered(self) -> bool:
        """Whether the agent has ended with an answer from the model."""
        return self.terminated_by in ANSWERED

    @property
    def model(self) -> Questions:
        """The agent's model, for your own questions; they are recorded and charged like any request."""
        return Questions(self)

    @property
    def facts(self) -> Facts:
        """Facts from outside that steer the run; each is obtained once, recorded, and served in a replay."""
        return Facts(self)

    def record(self, event: EventBase) -> None:
        """Record an event of your own: a `DecisionEvaluated`, a `VerifierVerdict`, a `GuardrailViolation` or an `AssumptionRecorded`.

        Raises:
            UsageError: only the kernel may record events of this kind.
        """
        if not self._of_policy:
            if not isinstance(event, RECORDABLE):
                names = ", ".join(each.__name__ for each in RECORDABLE)
                raise UsageError(f"a hook records a {names}; it is a {type(event).__name__}")
            if "by" in type(event).model_fields:
                event = event.model_copy(update={"by": self._hook.name if self._hook else ""})
        self._session.emit(event)

    async def offer(self, tag: str, payload: Any) -> Any:  # noqa: ANN401 - by tag
        """Return a payload as other hooks at your own tag changed it, or SUPPRESS; see `declare_tag`."""
        return await self._session.offer(tag, payload)

    @property
    def _of_policy(self) -> bool:
        return self._hook is not None and self._hook.policy is not None


RECORDABLE: Final = (AssumptionRecorded, DecisionEvaluated, GuardrailViolation, VerifierVerdict)
"""The events that a hook may record."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Asks the agent's model, outside its thread."""

    _context: HookContext

    async def ask(self, prompt: str, *, purpose: str = HOOK) -> str:
        """Send a prompt with the agent's system prompt and examples, and return the text of the answer.

        Register the hook with enough time for the request, such as `timeout_s=60`.

        Raises:
            ModelError: the model did not answer.
        """
        from playhead.kernel.passes import ask_once  # noqa: PLC0415 - few hooks ask the model

        answer: str = await self._ask_outside(prompt, ask_once, purpose)
        return answer

    async def ask_for(self, prompt: str, form: type[Form], *, purpose: str = HOOK) -> Form | None:
        """Return the answer as a pydantic model, or None if it has no such form. The prompt need not describe the form.

        An answer that does not fit is sent back, at most twice. Raises like `ask`.
        """
        from playhead.kernel.forms import ask_for, form_prompt  # noqa: PLC0415 - as above

        answer: Form | None = await self._ask_outside(f"{prompt}\n\n{form_prompt(form)}", ask_for, purpose, form)
        return answer

    async def _ask_outside(self, prompt: str, question: Callable[..., Any], purpose: str, *form: Any) -> Any:  # noqa: ANN401
        from playhead.kernel.passes import fresh_thread  # noqa: PLC0415 - as above

        context, session = self._context, self._context._session  # noqa: SLF001 - of this file
        purpose = purpose if context._of_policy else HOOK  # noqa: SLF001 - as above
        with _reopened(context):
            state = session.state
            if state is None or not state.thread.messages:
                raise UsageError("a hook can ask the model only after bootstrap: before it there is no conversation")
            state, answer = await question(state, session, await fresh_thread(session, prompt), *form, purpose=purpose)
            session.reach(state)
        return answer


@contextmanager
def _reopened(context: HookContext) -> Iterator[None]:
    """Suspend the end of an agent while a hook checks its answer; an end without an answer stays."""
    session, of_policy = context._session, context._of_policy  # noqa: SLF001 - of this file
    ended, state = session.termination, session.state
    if ended is None or state is None:
        yield
        return
    if not session.ending.overrule(None):
        why = f"the agent has ended by {ended.reason}, and can no longer ask the model: see context.answered"
        raise RunEndedError(why) if of_policy else UsageError(why)
    session.reach(transition(state, status="thinking"))
    try:
        yield
    except BaseException as error:
        if not (of_policy and isinstance(error, PlayheadError)):  # otherwise the error ends the run
            session.ending.end(ended)
        raise
    session.ending.end(ended)
    session.reach(transition(session.state or state, status=state.status))


@dataclass(frozen=True, slots=True)
class Facts:
    """Obtains values that steer the run and come from neither the model nor a tool."""

    _context: HookContext

    async def ask(self, key: str, answer: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of `answer()`, sync or async, as JSON; in a replay, the value recorded under the same key."""
        context = self._context
        hook, name = context._hook, POLICY if context._of_policy else HOOK  # noqa: SLF001 - of this file
        with _reopened(context):
            facts = context._session.facts  # noqa: SLF001 - as above
            return await facts.ask(name, answer, key=f"{hook.name if hook else ''}:{key}")

    async def now_us(self, key: str) -> int:
        """Return the time by the run's clock, in microseconds since the Unix epoch; in a replay, the recorded time."""
        now: int = await self.ask(key, self._context._session.run.recorder.clock.now_us)  # noqa: SLF001 - as above
        return now


@dataclass(frozen=True)
class NudgeContext(HookContext):
    """The context of a nudge, before it joins the thread."""

    trigger: str = ""
    """Its cause."""
    severity: Literal["info", "warn", "critical"] = "info"
    """How severe it is."""


@dataclass(frozen=True)
class CallContext(HookContext):
    """The context of a call before it is made, or before its reason is recorded."""

    tool: str = ""
    """The tool, as the model named it."""
    call_id: str = ""
    """The call."""


@dataclass(frozen=True)
class ToolResultContext(CallContext):
    """The context of a tool result, before it joins the thread or the steps."""

    repaired: bool = False
    """Whether the call was malformed and repaired before it ran."""
    duration_ms: float = 0.0
    """Its duration in milliseconds."""


@dataclass(frozen=True)
class PhaseContext(HookContext):
    """The context of a phase that begins, ends or failed."""

    timing: Literal["before", "after", "on-error"] = "before"
    """Whether the hook is called before the phase, after it, or on an error."""

    @property
    def state(self) -> KernelState:
        """The state before or after the phase; otherwise as in any context."""
        state = self._session.state
        assert state is not None  # noqa: S101 - set before a phase hook is called
        return readable(state, self._session)


_KINDS: Final[dict[str, type[HookContext]]] = {
    "duration_ms": ToolResultContext,
    "trigger": NudgeContext,
    "timing": PhaseContext,
}
"""The context type by the name of a field that only its details have; any other details are those of a call."""


def make_context(session: Session, tag: str, details: Mapping[str, Any]) -> HookContext:
    """Return the context for a tag, of the type that has its details.

    All fields are set at once, because a context is made for every payload and a frozen data class sets fields one by one.
    """
    kind = next((kind for name, kind in _KINDS.items() if name in details), CallContext) if details else HookContext
    context = kind.__new__(kind)
    context.__dict__.update(_session=session, tag=tag, run_id=session.run.run_id, owner=session.owner)
    context.__dict__.update({"iteration": session.iteration, "phase": session.at.phase, **details})
    return context


def readable(state: KernelState, session: Session) -> KernelState:
    """Return a private copy of the state; its messages and steps are copied once per run, not on each access."""
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
