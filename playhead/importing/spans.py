"""A span of another program's trace, and what a file of spans lacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.values import JsonValue

Status = Literal["unset", "ok", "error"]
Problems = Counter[str]
"""What was left out of a file, by reason."""
NO_START: Final = "spans without a start time"
MORE_PAGES: Final = "pages of the API that follow this one"
"""Counted for a page of an API that names a next one."""
OTLP_JSON: Final = "otlp-json"
OTLP_PROTOBUF: Final = "otlp-protobuf"


@dataclass(frozen=True, slots=True)
class ForeignEvent:
    """An event of a span, such as an exception."""

    name: str
    attributes: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """One span of another program's trace."""

    trace_id: str
    """Lower-case hex."""
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    """Nanoseconds since the Unix epoch; 0 when the span does not say."""
    end_ns: int | None
    """The same; None when the span had not ended."""
    status: Status = "unset"
    message: str = ""
    """The description of the status."""
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
