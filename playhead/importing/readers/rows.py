"""Spans as rows of JSON: OpenInference JSON Lines, and what Phoenix exports.

`playhead export --format openinference-jsonl` and OpenTelemetry's own `ReadableSpan.to_json()` write one span a line. Phoenix has
the same names in its REST API (`/v1/projects/{project}/spans`), with the span's kind beside the attributes; its data frame has a
column for each attribute, and `to_json` may have written it by rows or by columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.limits import MAX_ATTRIBUTES, MAX_SPANS
from playhead.importing.spans import MORE_PAGES, ForeignEvent, ForeignSpan, Status
from playhead.importing.values import (
    at,
    flattened,
    id_of,
    integer_of,
    nanoseconds_of,
    object_of,
    objects_of,
    parent_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.spans import Problems

_ROWS: Final = ("spans", "data")
_COLUMN: Final = "attributes."
_KIND: Final = "openinference.span.kind"


def listed(document: Any, *names: str) -> list[Any]:  # noqa: ANN401 - any JSON value
    """Return the rows of a document: of a list, of an object with a list under one of these names, or the object itself."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        return next((document[name] for name in names if isinstance(document.get(name), list)), [document])
    return []


def first_row(document: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401
    """Return the first row that is an object, or an empty one."""
    return next((row for row in listed(document, *names)[:100] if isinstance(row, dict)), {})


def count_pages(document: Any, problems: Problems) -> None:  # noqa: ANN401
    """Count a page of an API that says that others come after it."""
    pages = (integer_of(at(document, "meta", name)) for name in ("totalPages", "page"))
    total, page = (each or 1 for each in pages)
    problems.update([MORE_PAGES] if at(document, "next_cursor") or total > page else [])


def attributes_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return attributes by dotted name, at most as many as a span may have."""
    return dict(list(flattened(object_of(value)).items())[:MAX_ATTRIBUTES])


def is_openinference(document: Any) -> bool:  # noqa: ANN401
    """Tell whether a document is a line of OpenInference."""
    row = first_row(document, *_ROWS)
    if at(row, "context", "span_id") is None:
        return False
    return _KIND in attributes_of(row.get("attributes")) or ("status_code" not in row and "span_kind" not in row)


def is_phoenix(document: Any) -> bool:  # noqa: ANN401
    """Tell whether a document is an export of Phoenix."""
    row = first_row(_rows_of_columns(document), *_ROWS)
    if "spans" in row and "traceId" in row:
        row = first_row(row, "spans")
    return "context.trace_id" in row or ("context" in row and ("status_code" in row or "span_kind" in row))


def spans_of_rows(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    """Yield the spans of one document."""
    count_pages(document, problems)
    for row in listed(_rows_of_columns(document), *_ROWS):
        inner = at(row, "spans")
        for each in inner if isinstance(inner, list) else [row]:
            made = _span(each) if isinstance(each, dict) else None
            if made is None:
                problems["rows without a valid trace id, span id and start time"] += 1
            else:
                yield made


def _rows_of_columns(document: Any) -> Any:  # noqa: ANN401
    """Return a frame that was written by columns, `{"name": {"0": …}}`, by rows."""
    if not isinstance(at(document, "context.trace_id"), dict):
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
    columns = {name[len(_COLUMN) :]: each for name, each in row.items() if name.startswith(_COLUMN)}
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
        events=tuple(map(_event, objects_of(row.get("events"))[:MAX_ATTRIBUTES])),
        resource=attributes_of(object_of(row.get("resource")).get("attributes", row.get("resource"))),
    )


def _status(code: Any) -> Status:  # noqa: ANN401
    word = str(code).upper().rpartition(".")[2]
    return "ok" if word == "OK" else "error" if word == "ERROR" else "unset"


def _event(event: dict[str, Any]) -> ForeignEvent:
    time_ns = nanoseconds_of(event.get("timestamp")) or 0
    return ForeignEvent(str(event.get("name") or ""), time_ns, attributes_of(event.get("attributes")))
