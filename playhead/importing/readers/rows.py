"""Spans as JSON: OTLP, OpenInference JSON Lines and what Phoenix exports; and OTLP as protobuf, as the JSON of protobuf.

OTLP is what a program exports, and what the collector's file exporter writes: ids are hex, as the protocol wants in JSON, or base64,
as protobuf's own JSON has them (opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Phoenix answers with single spans of it
at `/spans/otlpv1`.

`playhead export --format openinference-jsonl` and OpenTelemetry's own `ReadableSpan.to_json()` write one span a line. Phoenix has
the same names in its REST API (`/v1/projects/{project}/spans`), with the span's kind beside the attributes; its data frame has a
column for each attribute, and `to_json` may have written it by rows or by columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_DEPTH, MAX_SPANS
from playhead.importing.spans import MORE_PAGES, NO_START, ForeignEvent, ForeignSpan, Status
from playhead.importing.values import (
    at,
    count_of,
    exact_nanoseconds_of,
    field_of,
    flattened,
    id_of,
    integer_of,
    nanoseconds_of,
    number_of,
    object_of,
    objects_of,
    parent_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.importing.limits import Room
    from playhead.importing.spans import Problems

_GROUPS: Final = ("resourceSpans", "batches")
_ROWS: Final = ("spans", "data")
_COLUMN: Final = "attributes."
_KIND: Final = "openinference.span.kind"
_STATUS: Final[dict[str, Status]] = {"1": "ok", "OK": "ok", "2": "error", "ERROR": "error"}
_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "stringValue": str,
    "bytesValue": str,
    "intValue": integer_of,
    "doubleValue": number_of,
    "boolValue": bool,
}
"""How what an attribute's value holds is read, by its name."""


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


def is_otlp(document: Any) -> bool:  # noqa: ANN401
    """Tell whether a document is OTLP."""
    row = first_row(document, *_ROWS)
    is_span = bool(field_of(row, "spanId")) and isinstance(row.get("attributes", []), list)
    return is_span or (isinstance(document, dict) and field_of(document, *_GROUPS) is not None)


def is_openinference(document: Any) -> bool:  # noqa: ANN401
    """Tell whether a document is a line of OpenInference."""
    row = first_row(document, *_ROWS)
    if at(row, "context", "span_id") is None:
        return False
    return _KIND in attributes_of(row.get("attributes")) or ("status_code" not in row and "span_kind" not in row)


def is_phoenix(document: Any) -> bool:  # noqa: ANN401
    """Tell whether a document is an export of Phoenix."""
    row = first_row(_rows_of_columns(document), *_ROWS)
    row = first_row(row, "spans") if "spans" in row and "traceId" in row else row
    return "context.trace_id" in row or ("context" in row and ("status_code" in row or "span_kind" in row))


def spans_of_rows(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    """Yield the spans of one document of JSON."""
    if isinstance(document, dict) and (groups := field_of(document, *_GROUPS)) is not None:
        for group in objects_of(groups):
            resource = _attributes(object_of(group.get("resource")).get("attributes"), problems)
            for scope in objects_of(field_of(group, "scopeSpans", "instrumentationLibrarySpans")):
                yield from _each(objects_of(scope.get("spans")), resource, problems)
        return
    count_pages(document, problems)
    for row in listed(_rows_of_columns(document), *_ROWS):
        inner = at(row, "spans")
        yield from _each(inner if isinstance(inner, list) else [row], None, problems)


def spans_of_message(content: bytes, problems: Problems, room: Room | None = None) -> Iterator[ForeignSpan]:
    """Yield the spans of an ExportTraceServiceRequest in protobuf; `room` is what it may take, None: whatever it takes.

    Raises:
        NotImportableError: it is none, or there is no room for it.
        MissingDependencyError: the classes of OTLP are not installed.
    """
    try:
        from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - for protobuf alone
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - the same
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - the same
            ExportTraceServiceRequest,
        )
    except ImportError:
        raise MissingDependencyError(
            "reading OTLP protobuf needs: pip install 'playhead[otel]' (or export OTLP JSON instead)"
        ) from None
    if room is not None:
        room.take_message(content, ExportTraceServiceRequest.DESCRIPTOR)
    try:
        message = ExportTraceServiceRequest.FromString(content)
    except DecodeError:
        raise NotImportableError("it is no OTLP message: not an ExportTraceServiceRequest in protobuf") from None
    for group in message.resource_spans:
        resource = _attributes(MessageToDict(group.resource).get("attributes"), problems)
        for scope in group.scope_spans:
            yield from _each(map(MessageToDict, scope.spans), resource, problems)


def _rows_of_columns(document: Any) -> Any:  # noqa: ANN401
    """Return a frame that was written by columns, `{"name": {"0": …}}`, by rows."""
    if not isinstance(at(document, "context.trace_id"), dict):
        return document
    columns = {name: values for name, values in document.items() if isinstance(values, dict)}
    places = list(columns["context.trace_id"])[:MAX_SPANS]
    return [
        {"context.span_id": place, **{name: column.get(place) for name, column in columns.items()}} for place in places
    ]


def _each(rows: Iterable[Any], resource: dict[str, Any] | None, problems: Problems) -> Iterator[ForeignSpan]:
    for row in rows:
        made = _span(row, resource, problems) if isinstance(row, dict) else None
        if made is None:
            problems["spans without a valid trace id and span id"] += 1
        else:
            yield made


def _span(row: dict[str, Any], resource: dict[str, Any] | None, problems: Problems) -> ForeignSpan | None:
    """Return a span; `resource` is None where the row has its own."""
    ids = {**row, **object_of(row.get("context"))}
    trace_id = id_of(field_of(ids, "traceId", "context.trace_id"), 16)
    span_id = id_of(field_of(ids, "spanId", "context.span_id"), 8)
    if trace_id is None or span_id is None:
        return None
    start_ns, end_ns = _time(row, "startTimeUnixNano", "startTime"), _time(row, "endTimeUnixNano", "endTime")
    problems.update([] if start_ns else [NO_START])
    status = row.get("status") if isinstance(row.get("status"), dict) else {"code": row.get("status")}
    said, kind = {**row, **object_of(status)}, text_of(row.get("span_kind"))
    columns = {name[len(_COLUMN) :]: each for name, each in row.items() if name.startswith(_COLUMN)}
    attributes = _attributes(row.get("attributes"), problems) | attributes_of(columns)
    own = object_of(row.get("resource"))
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(field_of(row, "parentSpanId", "parentId")),
        name=str(row.get("name") or ""),
        start_ns=start_ns or 0,
        end_ns=end_ns or None,
        status=_STATUS.get(_word(field_of(said, "statusCode", "code")), "unset"),
        message=text_of(field_of(said, "description", "message", "statusMessage")) or "",
        attributes=attributes if kind is None else {_KIND: kind, **attributes},
        events=tuple(_event(each, problems) for each in objects_of(row.get("events"))[:MAX_ATTRIBUTES]),
        resource=attributes_of(own.get("attributes", own)) if resource is None else resource,
        dropped=sum(count_of(field_of(row, each)) for each in ("droppedAttributesCount", "droppedEventsCount")),
    )


def _time(row: dict[str, Any], exact: str, other: str) -> int | None:
    """Return a time in nanoseconds: OTLP says it so, other rows in any unit, or as a text."""
    value = field_of(row, exact)
    return nanoseconds_of(field_of(row, other)) if value is None else exact_nanoseconds_of(value)


def _word(code: Any) -> str:  # noqa: ANN401
    """Return the last word of a status: `STATUS_CODE_OK`, `StatusCode.OK`, `OK` or 1."""
    return str(code).upper().rpartition(".")[2].rpartition("_")[2]


def _event(event: dict[str, Any], problems: Problems) -> ForeignEvent:
    time_ns = _time(event, "timeUnixNano", "timestamp") or 0
    return ForeignEvent(str(event.get("name") or ""), time_ns, _attributes(event.get("attributes"), problems))


def _attributes(given: Any, problems: Problems) -> dict[str, Any]:  # noqa: ANN401
    """Return attributes: pairs of OTLP, or an object."""
    if not isinstance(given, list):
        return attributes_of(given)
    if len(given) > MAX_ATTRIBUTES:
        problems[f"attributes after the first {MAX_ATTRIBUTES:,} of a span"] += len(given) - MAX_ATTRIBUTES
    read = ((pair.get("key"), _value(pair.get("value"), 1)) for pair in objects_of(given)[:MAX_ATTRIBUTES])
    return {key: value for key, value in read if isinstance(key, str) and value is not None}


def _value(value: Any, depth: int) -> Any:  # noqa: ANN401
    """Return what an AnyValue holds; None for nothing, and for what is nested too deep."""
    if depth > MAX_DEPTH or not isinstance(value, dict):
        return None
    for name, read in _PLAIN.items():
        if (held := field_of(value, name)) is not None:
            return read(held)
    if (array := field_of(value, "arrayValue")) is not None:
        return [_value(each, depth + 1) for each in objects_of(object_of(array).get("values"))]
    if (pairs := field_of(value, "kvlistValue")) is not None:
        inner = objects_of(object_of(pairs).get("values"))
        return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in inner}
    return None
