"""What a replay served, and where it left the recording."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from playhead.trace.events.base import VOLATILE, EventBase
from playhead.trace.events.tools import Rung
from playhead.trace.frozen import Integer
from playhead.trace.values import JsonValue


class ReplayServed(EventBase):
    """A recorded answer was served instead of asking again."""

    incidental: ClassVar = True
    kind: Literal["replay-served"] = "replay-served"
    call_id: str = ""
    """The call in the replay; empty for a request."""
    request: Integer | None = None
    """In a resumed run, the request to the model that was not asked again."""
    attempt: Integer | None = None
    """Which attempt at that request."""
    rung: Annotated[Rung, VOLATILE]
    """How sure it is that this is the right answer."""
    source_seq: Integer | None = None
    """`seq` of the recorded answer in the recording."""


class ReplayDiverged(EventBase):
    """The replay did something else than the recording."""

    incidental: ClassVar = True
    kind: Literal["replay-diverged"] = "replay-diverged"
    what: str
    """What differs."""
    where: str
    """Owner, iteration and event."""
    call_id: str | None = None
    """The call that left the recording; absent when it was none."""
    expected: JsonValue = None
    """What the recording has."""
    actual: JsonValue = None
    """What the replay did."""
