"""Phases of strategies, and the effects of hooks on phases of the loop and on emissions."""

from typing import Literal

from playhead.trace.base import EventBase, Id, Integer
from playhead.trace.values import JsonValue


class PhaseEvent(EventBase):
    """The fields that the beginning and the end of a strategy's phase have in common."""

    phase: str
    """The phase's name, such as `attempt`."""
    number: Integer
    """The phase's number, from 1."""


class PhaseEntered(PhaseEvent, kind="phase-entered"):
    """A phase of the strategy begins; the agent's events belong to it until it is over."""


class PhaseCompleted(PhaseEvent, kind="phase-completed"):
    """A phase of the strategy is over; a phase that the end of the run cut short has no such event."""


class HookEvent(EventBase):
    """What a hook did."""

    hook: str
    """The hook's name."""
    policy: str | None = None
    """The built-in policy that the hook belongs to; a replay runs that policy again."""


class HookFired(HookEvent, kind="hook-fired"):
    """A phase hook returned something that steers the run."""

    phase: str
    """The phase."""
    timing: Literal["before", "after", "on-error"]
    """The side of the phase."""
    action: str
    """The action that it requested: `stop`, `terminate`, `skip`, `recover`, `resume`, `nudge`, `answer`, `switch-to`."""
    reason: str | None = None
    """Why, as the hook says."""
    switch: Id | None = None
    """The killswitch that the hook belongs to; `killswitch-fired` follows."""
    terminated_by: Id | None = None
    """The reason code, for `stop` and `terminate`."""
    changes: dict[str, JsonValue] | None = None
    """For `recover`, the state fields that the hook set; for `nudge`, `answer` and `switch-to`, the value it gave."""


class HookFailed(HookEvent, kind="hook-failed", incidental=True):
    """A hook or subscriber raised, took too long, or returned an unusable value. Recorded once for each place."""

    where: str
    """The tag, phase or event kind at which it failed."""
    key: Id = ""
    """The emission of the tag, as in `emission-changed`."""
    error: str
    """The exception that it raised, or another description of the failure."""
    ends: tuple[str, ...] = ()
    """The owners that end because they require the hook."""


class EmissionEvent(HookEvent):
    """A transform changed a payload."""

    tag: Id
    """The tag of the payload."""
    key: Id = ""
    """The emission: the call's id, or the emission's number among the owner's emissions of this tag, from 0."""
    before: JsonValue = None
    """The payload before."""


class EmissionChanged(EmissionEvent, kind="emission-changed"):
    """A transform replaced a payload."""

    after: JsonValue = None
    """The payload after."""


class EmissionSuppressed(EmissionEvent, kind="emission-suppressed"):
    """A transform removed a payload."""

    why: str | None = None
    """For a refused call, the reason that the model receives."""
