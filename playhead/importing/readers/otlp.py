"""OTLP, as JSON and as protobuf: what a program exports, and what the collector's file exporter writes.

Ids are hex, as the protocol wants in JSON, or base64, as protobuf's own JSON has them: so a span of protobuf is read as the JSON
that protobuf makes of it. Names in snake_case are read too, and the single spans that Phoenix answers at `/spans/otlpv1`. See
opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_DEPTH
from playhead.importing.readers.rows import count_pages, first_row, listed
from playhead.importing.spans import NO_START, ForeignEvent, ForeignSpan, Status
from playhead.importing.values import (
    count_of,
    exact_nanoseconds_of,
    field_of,
    id_of,
    integer_of,
    object_of,
    objects_of,
    parent_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.importing.limits import Room
    from playhead.importing.spans import Problems

_GROUPS: Final = ("resourceSpans", "batches")
_STATUS: Final[dict[Any, Status]] = {1: "ok", 2: "error", "STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error"}
_SINGLE: Final = ("data", "spans")
_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "stringValue": str,
    "bytesValue": str,
    "intValue": integer_of,
    "doubleValue": lambda value: value if isinstance(value, float) and isfinite(value) else integer_of(value),
    "boolValue": bool,
}
"""How what a value holds is read, by its name."""


def is_otlp(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a document of JSON is OTLP."""
    if isinstance(document, dict) and field_of(document, *_GROUPS) is not None:
        return True
    row = first_row(document, *_SINGLE)
    return bool(field_of(row, "spanId")) and isinstance(row.get("attributes", []), list)


def spans_of_otlp(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401 - any JSON value
    """Yield the spans of one document of JSON."""
    if not isinstance(document, dict) or field_of(document, *_GROUPS) is None:
        count_pages(document, problems)
        yield from _each(listed(document, *_SINGLE), {}, problems)
        return
    for group in objects_of(field_of(document, *_GROUPS)):
        resource = _attributes(object_of(group.get("resource")).get("attributes"), problems)
        for scope in objects_of(field_of(group, "scopeSpans", "instrumentationLibrarySpans")):
            yield from _each(objects_of(scope.get("spans")), resource, problems)


def spans_of_message(content: bytes, problems: Problems, room: Room | None = None) -> Iterator[ForeignSpan]:
    """Yield the spans of an ExportTraceServiceRequest in protobuf; `room` is what it may take, None: whatever it takes.

    Raises:
        NotImportableError: it is none, or there is no room for it.
        MissingDependencyError: the classes of OTLP are not installed.
    """
    request, error, to_dict = _protobuf()
    if room is not None:
        room.take_message(content, request.DESCRIPTOR)
    try:
        message = request.FromString(content)
    except error:
        raise NotImportableError("it is no OTLP message: not an ExportTraceServiceRequest in protobuf") from None
    for group in message.resource_spans:
        resource = _attributes(to_dict(group.resource).get("attributes"), problems)
        for scope in group.scope_spans:
            yield from _each(map(to_dict, scope.spans), resource, problems)


def _protobuf() -> tuple[Any, type[Exception], Callable[[Any], dict[str, Any]]]:
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
    return ExportTraceServiceRequest, DecodeError, MessageToDict


def _each(spans: Any, resource: dict[str, Any], problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    for span in spans:
        made = _span(span, resource, problems) if isinstance(span, dict) else None
        if made is None:
            problems["spans without a valid trace id and span id"] += 1
        else:
            yield made


def _span(span: dict[str, Any], resource: dict[str, Any], problems: Problems) -> ForeignSpan | None:
    trace_id, span_id = id_of(field_of(span, "traceId"), 16), id_of(field_of(span, "spanId"), 8)
    if trace_id is None or span_id is None:
        return None
    status = object_of(span.get("status"))
    end_ns = exact_nanoseconds_of(field_of(span, "endTimeUnixNano"))
    start_ns = exact_nanoseconds_of(field_of(span, "startTimeUnixNano"))
    problems.update([NO_START] if start_ns is None else [])
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(field_of(span, "parentSpanId")),
        name=str(span.get("name") or ""),
        start_ns=start_ns or end_ns or 0,
        end_ns=end_ns,
        status=_status(status.get("code")),
        message=str(status.get("message") or ""),
        attributes=_attributes(span.get("attributes"), problems),
        events=tuple(_events(span.get("events"), problems)),
        resource=resource,
        dropped=sum(count_of(field_of(span, each)) for each in ("droppedAttributesCount", "droppedEventsCount")),
    )


def _status(code: Any) -> Status:  # noqa: ANN401
    return _STATUS.get(code, "unset") if isinstance(code, (int, str)) else "unset"


def _events(events: Any, problems: Problems) -> Iterator[ForeignEvent]:  # noqa: ANN401
    for event in objects_of(events)[:MAX_ATTRIBUTES]:
        time_ns = exact_nanoseconds_of(field_of(event, "timeUnixNano")) or 0
        yield ForeignEvent(str(event.get("name") or ""), time_ns, _attributes(event.get("attributes"), problems))


def _attributes(pairs: Any, problems: Problems) -> dict[str, Any]:  # noqa: ANN401
    if isinstance(pairs, list) and len(pairs) > MAX_ATTRIBUTES:
        problems[f"attributes after the first {MAX_ATTRIBUTES:,} of a span"] += len(pairs) - MAX_ATTRIBUTES
    read = ((pair.get("key"), _value(pair.get("value"), 1)) for pair in objects_of(pairs)[:MAX_ATTRIBUTES])
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
        return {
            str(pair.get("key")): _value(pair.get("value"), depth + 1)
            for pair in objects_of(object_of(pairs).get("values"))
        }
    return None
