"""Phases of strategies, and what hooks did at those of the loop."""

from typing import Literal

from playhead.trace.types import EventBase, Id, Integer
from playhead.trace.values import JsonValue


class PhaseEvent(EventBase):
    """What the beginning and the end of a strategy's phase have in common."""

    phase: str
    """The phase's name, such as `attempt`."""
    number: Integer
    """Which one it is, from 1."""


class PhaseEntered(PhaseEvent, kind="phase-entered"):
    """A phase of the strategy begins; what the agent does until it is over belongs to it."""


class PhaseCompleted(PhaseEvent, kind="phase-completed"):
    """A phase of the strategy is over; one that the end of the run cut short has no such event."""


class HookEvent(EventBase):
    """What a hook did."""

    hook: str
    """The hook's name."""
    policy: str | None = None
    """The policy of Playhead's own that the hook belongs to: a replay asks it again."""


class HookFired(HookEvent, kind="hook-fired"):
    """A phase hook returned something that steers the run."""

    phase: str
    """The phase."""
    timing: Literal["before", "after", "on-error"]
    """On which side of the phase."""
    action: str
    """What it asked for: `stop`, `terminate`, `skip`, `recover`, `resume`, `nudge`, `answer`, `switch-to`."""
    reason: str | None = None
    """Why, as the hook says."""
    switch: Id | None = None
    """The killswitch that the hook belongs to; `killswitch-fired` follows."""
    terminated_by: Id | None = None
    """The reason code, for `stop` and `terminate`."""
    changes: dict[str, JsonValue] | None = None
    """For `recover`, the fields of the state that the hook set; for `nudge`, `answer` and `switch-to` what it gave."""


class HookFailed(HookEvent, kind="hook-failed", incidental=True):
    """A hook or subscriber raised, took too long, or returned what cannot be used. Recorded once for each place."""

    where: str
    """The tag, phase or event kind at which it failed."""
    key: Id = ""
    """Which emission of a tag, as in `emission-changed`."""
    error: str
    """What it raised, or what else was wrong."""
    ends: tuple[str, ...] = ()
    """The owners that end for it, because they require the hook."""


class EmissionEvent(HookEvent):
    """What a transform did to a payload."""

    tag: Id
    """The tag of the payload."""
    key: Id = ""
    """Which emission of this tag: the call's id, or the place among the owner's emissions of the tag, from 0."""
    before: JsonValue = None
    """The payload before."""


class EmissionChanged(EmissionEvent, kind="emission-changed"):
    """A transform replaced a payload."""

    after: JsonValue = None
    """The payload after."""


class EmissionSuppressed(EmissionEvent, kind="emission-suppressed"):
    """A transform removed a payload."""

    why: str | None = None
    """For a call that is refused, what the model is told."""
