"""What Phoenix exports: the spans of its REST API (`/v1/projects/{project}/spans`), and its data frame as JSON.

The API takes the span's kind out of the attributes; the data frame has a column for each attribute, and `to_json` may have
written it by rows or by columns. See Arize-ai/phoenix, `server/api/routers/v1/spans.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.formats import PHOENIX
from playhead.importing.limits import MAX_SPANS
from playhead.importing.readers.base import MORE_PAGES, JsonFormat, first_row, listed
from playhead.importing.readers.openinference_jsonl import attributes_of, events_of, status_of
from playhead.importing.spans import ForeignSpan
from playhead.importing.values import id_of, list_of, nanoseconds_of, object_of, parent_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.readers.base import Problems

_ROWS: Final = ("data", "spans")
_COLUMN: Final = "attributes."
_KIND: Final = "openinference.span.kind"


def _fits(document: Any) -> bool:  # noqa: ANN401 - any JSON value
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
    context = object_of(row.get("context"))
    trace_id = id_of(context.get("trace_id", row.get("context.trace_id")), 16)
    span_id = id_of(context.get("span_id", row.get("context.span_id")), 8)
    start_ns = nanoseconds_of(row.get("start_time"))
    if trace_id is None or span_id is None or start_ns is None:
        return None
    attributes = attributes_of(row.get("attributes")) | _columns(row)
    kind = text_of(row.get("span_kind"))
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(row.get("parent_id")),
        name=str(row.get("name") or ""),
        start_ns=start_ns,
        end_ns=nanoseconds_of(row.get("end_time")),
        status=status_of(row.get("status_code")),
        message=text_of(row.get("status_message")) or "",
        attributes=attributes if kind is None else {_KIND: kind, **attributes},
        events=tuple(events_of(list_of(row.get("events")))),
    )


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return what stands in columns of its own; a column is null for the spans that have no such attribute."""
    named = {
        name[len(_COLUMN) :]: value for name, value in row.items() if name.startswith(_COLUMN) and value is not None
    }
    return attributes_of(named)


FORMAT: Final = JsonFormat(PHOENIX, _fits, _spans)
