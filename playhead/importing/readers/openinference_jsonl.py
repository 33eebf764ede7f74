"""OpenInference JSON Lines: one span a line, as `playhead export --format openinference-jsonl` writes.

OpenTelemetry's own `ReadableSpan.to_json()` has the same names, with 0x before ids, and is read too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.formats import OPENINFERENCE_JSONL
from playhead.importing.limits import MAX_ATTRIBUTES
from playhead.importing.readers.base import JsonFormat, first_row, listed
from playhead.importing.spans import ForeignEvent, ForeignSpan, Status
from playhead.importing.values import flattened, id_of, nanoseconds_of, object_of, parent_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.readers.base import Problems

_ROWS: Final = ("spans",)
_KIND: Final = "openinference.span.kind"
"""Phoenix, whose rows have the same names, takes it out of the attributes."""


def _fits(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    row = first_row(document, *_ROWS)
    context = row.get("context")
    if not isinstance(context, dict) or "span_id" not in context:
        return False
    return _KIND in attributes_of(row.get("attributes")) or ("status_code" not in row and "span_kind" not in row)


def _spans(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    for row in listed(document, *_ROWS):
        made = span_of(row) if isinstance(row, dict) else None
        if made is None:
            problems["rows without a valid trace id, span id and start time"] += 1
        else:
            yield made


def span_of(row: dict[str, Any]) -> ForeignSpan | None:
    """Return the span of a row, None when it has no ids or no time."""
    context, status = object_of(row.get("context")), row.get("status", row.get("status_code"))
    trace_id, span_id = id_of(context.get("trace_id"), 16), id_of(context.get("span_id"), 8)
    start_ns = nanoseconds_of(row.get("start_time"))
    if trace_id is None or span_id is None or start_ns is None:
        return None
    said = status if isinstance(status, dict) else {"status_code": status}
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(row.get("parent_id")),
        name=str(row.get("name") or ""),
        start_ns=start_ns,
        end_ns=nanoseconds_of(row.get("end_time")),
        status=status_of(said.get("status_code", said.get("code"))),
        message=text_of(said.get("description", said.get("message", row.get("status_message")))) or "",
        attributes=attributes_of(row.get("attributes")),
        events=tuple(events_of(row.get("events"))),
        resource=attributes_of(object_of(row.get("resource")).get("attributes", row.get("resource"))),
    )


def status_of(code: Any) -> Status:  # noqa: ANN401
    """Return the status that a code in words means."""
    word = str(code).upper().rpartition(".")[2]
    return "ok" if word == "OK" else "error" if word == "ERROR" else "unset"


def attributes_of(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return attributes by dotted name, at most as many as a span may have."""
    flat = flattened(object_of(value))
    return flat if len(flat) <= MAX_ATTRIBUTES else dict(list(flat.items())[:MAX_ATTRIBUTES])


def events_of(value: Any) -> Iterator[ForeignEvent]:  # noqa: ANN401
    """Yield the events of a row."""
    for event in value[:MAX_ATTRIBUTES] if isinstance(value, list) else ():
        if isinstance(event, dict):
            time_ns = nanoseconds_of(event.get("timestamp")) or 0
            yield ForeignEvent(str(event.get("name") or ""), time_ns, attributes_of(event.get("attributes")))


FORMAT: Final = JsonFormat(OPENINFERENCE_JSONL, _fits, _spans)
