"""What a hook is told beside its payload."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from playhead.kernel.copies import copy_json, twin
from playhead.kernel.state import KernelState, Thread, transition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import PlannedCall


@dataclass(frozen=True)
class HookContext:
    """Where in which run it happens."""

    _session: Session = field(repr=False)
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
    def task_id(self) -> str:
        """The task: one run is one task, so this is the run's id."""
        return self.run_id

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._session.header.name

    @property
    def strategy(self) -> str:
        """The strategy that runs."""
        return self._session.header.strategy

    @property
    def notes(self) -> dict[str, Any]:
        """A place to keep things from one call of a hook to the next: of this run and this agent, and in no trace."""
        return self._session.agent.gate.notes

    @property
    def max_iterations(self) -> int:
        """Turns of the loop at most."""
        return self._session.header.max_iterations

    @property
    def state(self) -> KernelState | None:
        """The state at the begin of the current phase: a copy, writing into it changes nothing; None before bootstrap.

        To go on from another one after an error, return `Recover(transition(context.state, …))`.
        """
        state = self._session.state
        return None if state is None else readable(state, self._session)


@dataclass(frozen=True)
class NudgeContext(HookContext):
    """Where the kernel is about to tell the model something."""

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
    """Where a result is about to be told."""

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


def make_context(session: Session, tag: str, details: Mapping[str, Any]) -> HookContext:
    """Return the context for a tag, of the type that holds its details.

    Its fields are set all at once: one is made for everything that passes, and a frozen data class sets one by one.
    """
    kind: type[HookContext] = HookContext
    if details:
        kind = ToolResultContext if "duration_ms" in details else NudgeContext if "trigger" in details else CallContext
    context = kind.__new__(kind)
    fields = context.__dict__
    fields["_session"] = session
    fields["tag"] = tag
    fields["run_id"] = session.run.run_id
    fields["owner"] = session.owner
    fields["iteration"] = session.iteration
    fields["phase"] = session.at.phase
    fields.update(details)
    return context


def readable(state: KernelState, session: Session) -> KernelState:
    """Return a state that nobody else has: its messages and its steps are copied once a run, not once for each look."""
    return transition(
        state,
        thread=Thread(session.gate.shown.of(state.thread.messages), state.thread.ranges),
        steps=session.gate.shown.steps(state.steps),
        usage=twin(state.usage),
        pending=tuple(map(_copy_planned, state.pending)),
        completed=twin(state.completed),
        output=copy_json(state.output),
        meta=copy_json(state.meta),
    )


def _copy_planned(planned: PlannedCall) -> PlannedCall:
    return replace(planned, call=twin(planned.call), rationale=twin(planned.rationale))
