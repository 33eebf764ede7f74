"""Spans as rows of JSON: OpenInference JSON Lines, and what Phoenix exports.

`playhead export --format openinference-jsonl` and OpenTelemetry's own `ReadableSpan.to_json()` write one span a line. Phoenix has
the same names in its REST API (`/v1/projects/{project}/spans`), with the span's kind beside the attributes; its data frame has a
column for each attribute, and `to_json` may have written it by rows or by columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.formats import OPENINFERENCE_JSONL, PHOENIX
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_SPANS
from playhead.importing.readers import MORE_PAGES, JsonFormat, first_row, listed
from playhead.importing.spans import ForeignEvent, ForeignSpan, Status
from playhead.importing.values import flattened, id_of, list_of, nanoseconds_of, object_of, parent_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.readers import Problems

_ROWS: Final = ("spans", "data")
_COLUMN: Final = "attributes."
_KIND: Final = "openinference.span.kind"


def attributes_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return attributes by dotted name, at most as many as a span may have."""
    flat = flattened(object_of(value))
    return flat if len(flat) <= MAX_ATTRIBUTES else dict(list(flat.items())[:MAX_ATTRIBUTES])


def _fits_openinference(document: Any) -> bool:  # noqa: ANN401
    row = first_row(document, *_ROWS)
    context = row.get("context")
    if not isinstance(context, dict) or "span_id" not in context:
        return False
    return _KIND in attributes_of(row.get("attributes")) or ("status_code" not in row and "span_kind" not in row)


def _fits_phoenix(document: Any) -> bool:  # noqa: ANN401
    row = first_row(_rows_of_columns(document), *_ROWS)
    if "spans" in row and "traceId" in row:
        row = first_row(row, "spans")
    return "context.trace_id" in row or ("context" in row and ("status_code" in row or "span_kind" in row))


def _spans(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    if isinstance(document, dict) and document.get("next_cursor"):
        problems[MORE_PAGES] += 1
    for row in listed(_rows_of_columns(document), *_ROWS):
        inner = row.get("spans") if isinstance(row, dict) else None
        for each in inner if isinstance(inner, list) else [row]:
            made = _span(each) if isinstance(each, dict) else None
            if made is None:
                problems["rows without a valid trace id, span id and start time"] += 1
            else:
                yield made


def _rows_of_columns(document: Any) -> Any:  # noqa: ANN401
    """Return a frame that was written by columns, `{"name": {"0": …}}`, by rows."""
    if not isinstance(document, dict) or not isinstance(document.get("context.trace_id"), dict):
        return document
    columns = {name: values for name, values in document.items() if isinstance(values, dict)}
    places = list(columns["context.trace_id"])[:MAX_SPANS]
    return [
        {"context.span_id": place, **{name: column.get(place) for name, column in columns.items()}} for place in places
    ]


def _span(row: dict[str, Any]) -> ForeignSpan | None:
    context, status = object_of(row.get("context")), row.get("status", row.get("status_code"))
    trace_id = id_of(context.get("trace_id", row.get("context.trace_id")), 16)
    span_id = id_of(context.get("span_id", row.get("context.span_id")), 8)
    start_ns = nanoseconds_of(row.get("start_time"))
    if trace_id is None or span_id is None or start_ns is None:
        return None
    said = status if isinstance(status, dict) else {"status_code": status}
    # a column is null for the spans that have no such attribute
    columns = {
        name[len(_COLUMN) :]: each for name, each in row.items() if name.startswith(_COLUMN) and each is not None
    }
    attributes = attributes_of(row.get("attributes")) | attributes_of(columns)
    kind = text_of(row.get("span_kind"))
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(row.get("parent_id")),
        name=str(row.get("name") or ""),
        start_ns=start_ns,
        end_ns=nanoseconds_of(row.get("end_time")),
        status=_status(said.get("status_code", said.get("code"))),
        message=text_of(said.get("description", said.get("message", row.get("status_message")))) or "",
        attributes=attributes if kind is None else {_KIND: kind, **attributes},
        events=tuple(_events(list_of(row.get("events")))),
        resource=attributes_of(object_of(row.get("resource")).get("attributes", row.get("resource"))),
    )


def _status(code: Any) -> Status:  # noqa: ANN401
    word = str(code).upper().rpartition(".")[2]
    return "ok" if word == "OK" else "error" if word == "ERROR" else "unset"


def _events(events: list[Any]) -> Iterator[ForeignEvent]:
    for event in events[:MAX_ATTRIBUTES]:
        if isinstance(event, dict):
            time_ns = nanoseconds_of(event.get("timestamp")) or 0
            yield ForeignEvent(str(event.get("name") or ""), time_ns, attributes_of(event.get("attributes")))


OPENINFERENCE: Final = JsonFormat(OPENINFERENCE_JSONL, _fits_openinference, _spans)
PHOENIX_EXPORT: Final = JsonFormat(PHOENIX, _fits_phoenix, _spans)
