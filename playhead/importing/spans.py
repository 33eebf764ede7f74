"""A span, whatever it came from, and the formats that spans come in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.values import JsonValue

Status = Literal["unset", "ok", "error"]
Problems = Counter[str]
"""What was left out of a file, by why."""
HALVES: Final = "documents with halves of characters (lone surrogates, broken UTF-8), which � replaces"
NO_START: Final = "start times that are not there or cannot be read"
MORE_PAGES: Final = "pages that come after this one, as it says"
"""Counted for a document that an API answered with, and that is not the last one."""
OTLP_JSON: Final = "otlp-json"
OTLP_PROTOBUF: Final = "otlp-protobuf"
PHOENIX: Final = "phoenix"
OPENINFERENCE_JSONL: Final = "openinference-jsonl"
LANGFUSE: Final = "langfuse"
FORMATS: Final = {
    OTLP_JSON: "OTLP JSON: an object with resourceSpans, or lines of them",
    OPENINFERENCE_JSONL: "OpenInference JSON Lines: one span a line, with its context",
    PHOENIX: "a Phoenix export: spans of its REST API, or its data frame as JSON",
    LANGFUSE: "a Langfuse export: a trace with observations, or observations",
    OTLP_PROTOBUF: "OTLP protobuf: an ExportTraceServiceRequest, or many with their lengths",
}
"""Every format by name, with what such a file holds, for people. The command line's help loads this file and no reader."""


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
