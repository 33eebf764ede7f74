"""Spans as text: OTLP in its JSON encoding, and OpenInference with one span a line."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.protobuf.json_format import MessageToDict

from playhead.spans.delivery import Delivered
from playhead.spans.encoding import request_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

_IDS: Final = ("traceId", "spanId", "parentSpanId")
KIND: Final = "openinference.span.kind"


class Text(Protocol):
    """Where text can be written."""

    def write(self, text: str, /) -> int:
        """Write text."""
        ...

    def flush(self) -> None:
        """Hand over what was written."""
        ...


class SpanFile:
    """Takes spans as text."""

    def __init__(self, file: Text, form: str) -> None:
        self._file, self._form = file, form

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:  # noqa: ARG002
        """Write spans: one request a line, or one span a line; all but ASCII is escaped."""
        values = [otlp_json(spans)] if self._form == "otlp-json" else map(openinference_json, spans)
        for value in values:
            self._file.write(json.dumps(value).replace("\x7f", "\\u007f") + "\n")
        self._file.flush()
        return Delivered(settled=len(spans))

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def otlp_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Return a request as OTLP's JSON: ids in hexadecimal digits, 64-bit integers as text, enumerations as numbers."""
    said: dict[str, Any] = MessageToDict(request_of(spans), use_integers_for_enums=True)
    for resource in said.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                for holder in (span, *span.get("links", ())):  # protobuf's own JSON says ids in base 64
                    holder.update({name: base64.b64decode(holder[name]).hex() for name in _IDS if name in holder})
    return said


def openinference_json(span: ReadableSpan) -> dict[str, Any]:
    """Return a span in the form in which Phoenix shows and takes spans, with its attributes flat."""
    attributes = dict(span.attributes or {})
    context = span.get_span_context()
    return {
        "name": span.name,
        "context": {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"} if context else None,
        "parent_id": None if span.parent is None else f"{span.parent.span_id:016x}",
        "span_kind": attributes.get(KIND, "UNKNOWN"),
        "start_time": _time(span.start_time),
        "end_time": _time(span.end_time),
        "status_code": span.status.status_code.name,
        "status_message": span.status.description or "",
        "attributes": _listed(attributes),
        "events": [
            {"name": event.name, "timestamp": _time(event.timestamp), "attributes": _listed(event.attributes)}
            for event in span.events
        ],
        "links": [
            {
                "context": {"trace_id": f"{link.context.trace_id:032x}", "span_id": f"{link.context.span_id:016x}"},
                "attributes": _listed(link.attributes),
            }
            for link in span.links
        ],
        "resource": _listed(span.resource.attributes),
    }


def _listed(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()}


def _time(nanoseconds: int | None) -> str | None:
    """Return a time as ISO 8601 with microseconds, which is what a trace knows; None when no calendar has it."""
    seconds, microseconds = divmod((nanoseconds or 0) // 1000, 1_000_000)
    try:
        whole = datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)
    except (OverflowError, ValueError, OSError):
        return None
    return None if nanoseconds is None else whole.isoformat(timespec="microseconds")
