"""OTLP as JSON: an ExportTraceServiceRequest, or lines of them as the collector's file exporter writes.

Ids are hex, as the protocol wants, or base64, as protobuf's own JSON has them. Names in snake_case are read too, and
the single spans that Phoenix answers at `/spans/otlpv1`. See opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.formats import OTLP_JSON
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_DEPTH
from playhead.importing.readers import MORE_PAGES, NO_START, JsonFormat, first_row, listed
from playhead.importing.spans import ForeignEvent, ForeignSpan, Status
from playhead.importing.values import count_of, exact_nanoseconds_of, float_of, id_of, integer_of, parent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.importing.readers import Problems

_STATUS: Final[dict[Any, Status]] = {1: "ok", 2: "error", "STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error"}
_SINGLE: Final = ("data", "spans")
_PLAIN: Final[dict[tuple[str, ...], Callable[[Any], Any]]] = {
    ("stringValue", "string_value", "bytesValue", "bytes_value"): str,
    ("intValue", "int_value"): integer_of,
    ("doubleValue", "double_value"): float_of,
    ("boolValue", "bool_value"): bool,
}
"""How what a value holds is read, by its names."""


def _fits(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    if isinstance(document, dict) and any(name in document for name in ("resourceSpans", "resource_spans", "batches")):
        return True
    row = first_row(document, *_SINGLE)
    return bool(_get(row, "spanId", "span_id")) and isinstance(row.get("attributes", []), list)


def _spans(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    groups = _get(document, "resourceSpans", "resource_spans", "batches") if isinstance(document, dict) else None
    if groups is None:
        problems.update([MORE_PAGES] if isinstance(document, dict) and document.get("next_cursor") else [])
        yield from _each(listed(document, *_SINGLE), {}, problems)
        return
    for group in _objects(groups):
        resource = _attributes(_get(_object(group.get("resource")), "attributes"), problems)
        scopes = _get(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in _objects(scopes):
            yield from _each(scope.get("spans"), resource, problems)


def _each(spans: Any, resource: dict[str, Any], problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    for span in _objects(spans):
        made = span_of(span, resource, problems)
        if made is not None:
            yield made


def span_of(span: dict[str, Any], resource: dict[str, Any], problems: Problems) -> ForeignSpan | None:
    """Return a span, None when it has no ids; its attributes are pairs, or read already."""
    trace_id = id_of(_get(span, "traceId", "trace_id"), 16)
    span_id = id_of(_get(span, "spanId", "span_id"), 8)
    if trace_id is None or span_id is None:
        problems["spans without a valid trace id and span id"] += 1
        return None
    status = _object(span.get("status"))
    end_ns = exact_nanoseconds_of(_get(span, "endTimeUnixNano", "end_time_unix_nano"))
    start_ns = exact_nanoseconds_of(_get(span, "startTimeUnixNano", "start_time_unix_nano"))
    problems.update([NO_START] if start_ns is None else [])
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(_get(span, "parentSpanId", "parent_span_id")),
        name=str(span.get("name") or ""),
        start_ns=start_ns or end_ns or 0,
        end_ns=end_ns,
        status=_status(status.get("code")),
        message=str(status.get("message") or ""),
        attributes=_attributes(span.get("attributes"), problems),
        events=tuple(_events(span.get("events"), problems)),
        resource=resource,
        dropped=count_of(_get(span, "droppedAttributesCount", "dropped_attributes_count"))
        + count_of(_get(span, "droppedEventsCount", "dropped_events_count")),
    )


def _events(events: Any, problems: Problems) -> Iterator[ForeignEvent]:  # noqa: ANN401
    for event in _objects(events)[:MAX_ATTRIBUTES]:
        time_ns = exact_nanoseconds_of(_get(event, "timeUnixNano", "time_unix_nano")) or 0
        yield ForeignEvent(str(event.get("name") or ""), time_ns, _attributes(event.get("attributes"), problems))


def _status(code: Any) -> Status:  # noqa: ANN401
    return _STATUS.get(code, "unset") if isinstance(code, (int, str)) else "unset"


def _attributes(pairs: Any, problems: Problems) -> dict[str, Any]:  # noqa: ANN401
    if isinstance(pairs, dict):
        return pairs
    found = {
        pair["key"]: value
        for pair in _objects(pairs)[:MAX_ATTRIBUTES]
        if isinstance(pair.get("key"), str) and (value := _value(pair.get("value"), 1)) is not None
    }
    if isinstance(pairs, list) and len(pairs) > MAX_ATTRIBUTES:
        problems[f"attributes after the first {MAX_ATTRIBUTES:,} of a span"] += len(pairs) - MAX_ATTRIBUTES
    return found


def _value(value: Any, depth: int) -> Any:  # noqa: ANN401
    """Return what an AnyValue holds; None for nothing, and for what is nested too deep."""
    value = _object(value)
    if depth > MAX_DEPTH or not value:
        return None
    for names, read in _PLAIN.items():
        if (held := _get(value, *names)) is not None:
            return read(held)
    if (array := _get(value, "arrayValue", "array_value")) is not None:
        return [_value(each, depth + 1) for each in _objects(_object(array).get("values"))]
    pairs = _objects(_object(_get(value, "kvlistValue", "kvlist_value")).get("values"))
    return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}


def _get(value: dict[str, Any], *names: str) -> Any:  # noqa: ANN401
    """Return the first of these that is there."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


FORMAT: Final = JsonFormat(OTLP_JSON, _fits, _spans)
