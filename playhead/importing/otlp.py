"""Reads another program's spans from OTLP: JSON, also as the collector's file exporter writes it, and protobuf.

In JSON, ids are hex, as the protocol requires, or base64, as in protobuf's own JSON
(opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Phoenix answers with a list of such spans at
`/v1/projects/{project}/spans/otlpv1`, its fields in snake_case.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.values import (
    count_of,
    field_of,
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
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from playhead.importing.limits import Quota
    from playhead.trace.values import JsonValue

Status = Literal["unset", "ok", "error"]
Problems = Counter[str]
"""What was left out of a file, by reason."""
NO_START: Final = "spans without a start time"
MORE_PAGES: Final = "pages of the API that follow this one"
"""The reason counted for an API page that names a next page."""
OTLP_JSON: Final = "otlp-json"
OTLP_PROTOBUF: Final = "otlp-protobuf"
_STATUS: Final[dict[str, Status]] = {"1": "ok", "STATUS_CODE_OK": "ok", "2": "error", "STATUS_CODE_ERROR": "error"}
_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "stringValue": str,
    "bytesValue": str,
    "intValue": integer_of,
    "doubleValue": number_of,
    "boolValue": bool,
}
"""The reader for each scalar type of an attribute's value."""


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """One span of another program's trace."""

    trace_id: str
    """Lower-case hex."""
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    """Nanoseconds since the Unix epoch; 0 when the span does not say."""
    end_ns: int | None
    """Nanoseconds since the Unix epoch; None when the span had not ended."""
    status: Status = "unset"
    message: str = ""
    """The description of the status."""
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)
    """By dotted name; a value may itself be a list or an object."""
    exception: Mapping[str, JsonValue] = field(default_factory=dict)
    """Attributes of the last exception event."""
    resource: Mapping[str, JsonValue] = field(default_factory=dict)
    """Attributes of the program."""
    dropped: int = 0
    """Attributes and events that the program's SDK dropped."""

    @property
    def duration_ms(self) -> float:
        """Milliseconds from start to end; 0 when it had not ended."""
        return max(0, (self.end_ns or self.start_ns) - self.start_ns) / 1e6


def is_otlp(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a JSON document is OTLP: an object with resourceSpans, or a list of spans in `data`."""
    if not isinstance(document, dict):
        return False
    rows = document.get("data")
    is_rows = isinstance(rows, list) and all(field_of(row, "spanId") for row in objects_of(rows)[:1])
    return is_rows or isinstance(field_of(document, "resourceSpans"), list)


def spans_of_json(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    """Yield the spans of one JSON document."""
    groups = field_of(document, "resourceSpans")
    if groups is None:
        problems.update([MORE_PAGES] if document.get("next_cursor") else [])
        yield from _spans(document.get("data", ()), {}, problems)
    for group in objects_of(groups):
        resource = _attributes(object_of(group.get("resource")).get("attributes"))
        for scope in objects_of(field_of(group, "scopeSpans")):
            yield from _spans(objects_of(scope.get("spans")), resource, problems)


def spans_of_message(content: bytes, problems: Problems, quota: Quota | None = None) -> Iterator[ForeignSpan]:
    """Yield the spans of an ExportTraceServiceRequest in protobuf; `quota` limits its memory.

    Raises:
        NotImportableError: it is not such a message, or exceeds the quota.
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
    if quota is not None:
        quota.add_message(content, ExportTraceServiceRequest.DESCRIPTOR)
    try:
        message = ExportTraceServiceRequest.FromString(content)
    except DecodeError:
        raise NotImportableError("not an OTLP message: not an ExportTraceServiceRequest in protobuf") from None
    for group in message.resource_spans:
        resource = _attributes(MessageToDict(group.resource).get("attributes"))
        for scope in group.scope_spans:
            yield from _spans(map(MessageToDict, scope.spans), resource, problems)


def _spans(rows: Iterable[Any], resource: dict[str, Any], problems: Problems) -> Iterator[ForeignSpan]:
    for row in rows:
        made = _span(row, resource, problems) if isinstance(row, dict) else None
        if made is None:
            problems["spans without a valid trace id and span id"] += 1
        else:
            yield made


def _span(row: dict[str, Any], resource: dict[str, Any], problems: Problems) -> ForeignSpan | None:
    trace_id, span_id = id_of(field_of(row, "traceId"), 16), id_of(field_of(row, "spanId"), 8)
    if trace_id is None or span_id is None:
        return None
    start_ns, status = nanoseconds_of(field_of(row, "startTimeUnixNano")), object_of(row.get("status"))
    problems.update([] if start_ns else [NO_START])
    exceptions = [each for each in objects_of(row.get("events")) if each.get("name") == "exception"]
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_of(field_of(row, "parentSpanId")),
        name=str(row.get("name") or ""),
        start_ns=start_ns or 0,
        end_ns=nanoseconds_of(field_of(row, "endTimeUnixNano")),
        status=_STATUS.get(str(status.get("code")), "unset"),
        message=text_of(status.get("message")) or "",
        attributes=_attributes(row.get("attributes")),
        exception=_attributes(exceptions[-1].get("attributes")) if exceptions else {},
        resource=resource,
        dropped=sum(count_of(field_of(row, each)) for each in ("droppedAttributesCount", "droppedEventsCount")),
    )


def _attributes(given: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return attributes by dotted name."""
    read = ((pair.get("key"), _value(pair.get("value"))) for pair in objects_of(given))
    return {key: value for key, value in read if isinstance(key, str) and value is not None}


def _value(value: Any) -> Any:  # noqa: ANN401
    """Return the value of an AnyValue; None for no value. Recursion is safe because parsers limit the nesting."""
    if not isinstance(value, dict):
        return None
    for name, read in _PLAIN.items():
        if (held := field_of(value, name)) is not None:
            return read(held)
    if (array := field_of(value, "arrayValue")) is not None:
        return [_value(each) for each in objects_of(object_of(array).get("values"))]
    if (pairs := field_of(value, "kvlistValue")) is not None:
        inner = objects_of(object_of(pairs).get("values"))
        return {str(pair.get("key")): _value(pair.get("value")) for pair in inner}
    return None
