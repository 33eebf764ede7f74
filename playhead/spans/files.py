"""Spans as text: OTLP in its JSON encoding, and OpenInference with one span a line."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.json_format import MessageToDict
from openinference.semconv.trace import SpanAttributes

from playhead.spans.delivery import Delivered
from playhead.spans.encoding import request_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

_IDS: Final = ("traceId", "spanId", "parentSpanId")


class SpanFile:
    """Takes spans as text."""

    def __init__(self, file: IO[str], form: str) -> None:
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
    request: dict[str, Any] = MessageToDict(request_of(spans), use_integers_for_enums=True)
    for resource in request.get("resourceSpans", ()):
        for span in resource["scopeSpans"][0]["spans"]:
            for holder in (span, *span.get("links", ())):  # protobuf's own JSON writes ids in base 64
                holder.update({name: base64.b64decode(holder[name]).hex() for name in _IDS if name in holder})
    return request


def openinference_json(span: ReadableSpan) -> dict[str, Any]:
    """Return a span in the form in which Phoenix shows and takes spans, with its attributes flat."""
    attributes = _listed(span.attributes)
    return {
        "name": span.name,
        "context": _ids(span.context),
        "parent_id": None if span.parent is None else f"{span.parent.span_id:016x}",
        "span_kind": attributes.get(SpanAttributes.OPENINFERENCE_SPAN_KIND, "UNKNOWN"),
        "start_time": _time(span.start_time),
        "end_time": _time(span.end_time),
        "status_code": span.status.status_code.name,
        "status_message": span.status.description or "",
        "attributes": attributes,
        "events": [
            {"name": event.name, "timestamp": _time(event.timestamp), "attributes": _listed(event.attributes)}
            for event in span.events
        ],
        "links": [{"context": _ids(link.context), "attributes": _listed(link.attributes)} for link in span.links],
        "resource": _listed(span.resource.attributes),
    }


def _ids(context: SpanContext | None) -> dict[str, str] | None:
    return context and {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _listed(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()}


def _time(nanoseconds: int | None) -> str:
    """Return a time as ISO 8601 with microseconds, the resolution of a trace."""
    seconds, microseconds = divmod((nanoseconds or 0) // 1000, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds).isoformat(timespec="microseconds")
