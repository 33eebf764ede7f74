"""A span, whatever it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.values import JsonValue

Status = Literal["unset", "ok", "error"]
LAST_NS: Final = 10**18 * 1000 - 1
"""The latest time, in nanoseconds since the Unix epoch: what a line of a trace can hold."""


@dataclass(frozen=True, slots=True)
class ForeignEvent:
    """Something that happened during a span."""

    name: str
    time_ns: int
    """Nanoseconds since the Unix epoch."""
    attributes: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """One span of somebody else's trace."""

    trace_id: str
    """Lower-case hex, or what the backend calls it."""
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    """Nanoseconds since the Unix epoch."""
    end_ns: int | None
    """The same; None when it had not ended."""
    status: Status = "unset"
    message: str = ""
    """What the status says."""
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)
    """By dotted name; a value may itself be a list or an object."""
    events: tuple[ForeignEvent, ...] = ()
    resource: Mapping[str, JsonValue] = field(default_factory=dict)
    """Attributes of the program."""
    dropped: int = 0
    """Attributes and events that the program's SDK dropped."""

    @property
    def duration_ms(self) -> float:
        """Milliseconds from start to end; 0 when it had not ended."""
        return max(0, (self.end_ns or self.start_ns) - self.start_ns) / 1e6
