"""Spans as OTLP's protobuf, in the message types of OpenTelemetry.

Its own encoder takes twice as long, most of it for finding out what each of the hundred texts of a model's span is. Tests compare
what the two make of odd spans and of whole runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span
from opentelemetry.sdk.trace import Event, ReadableSpan

from playhead.spans.texts import LARGEST, clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.trace import SpanContext
    from opentelemetry.util.types import AttributeValue

LEFT_OUT: Final = "playhead.content_left_out"
"""The attribute that says that a span is sent without its content."""
_SMALL: Final = 256
"""Characters of a text that a span keeps when its content is left out."""
_CONTENT: Final = ("llm.input_messages.", "llm.output_messages.", "llm.tools.", "gen_ai.input", "gen_ai.output")
_ENVELOPE: Final = 200
"""Bytes that a span takes without its attributes, roughly."""
_FRAME: Final = 12
"""Bytes that an attribute takes beside its name and its value, roughly."""
_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
"""Bits of a span's flags that say where its parent is."""


def encode(spans: Sequence[ReadableSpan]) -> bytes:
    """Return an `ExportTraceServiceRequest` of these spans."""
    return request_of(spans).SerializeToString()


def request_of(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return the request that hands these spans over."""
    request = ExportTraceServiceRequest()
    scopes: dict[tuple[int, int], ScopeSpans] = {}
    for span in spans:
        origin = id(span.resource), id(span.instrumentation_scope)
        if origin not in scopes:
            scopes[origin] = _origin(request, span)
        _encode(span, scopes[origin].spans.add())
    return request


def without_content(span: ReadableSpan) -> ReadableSpan:
    """Return a span that has none of its long texts and none of its messages, and says so."""
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={**_small(span.attributes), LEFT_OUT: True},
        events=[Event(event.name, _small(event.attributes), event.timestamp) for event in span.events],
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def size_of(span: ReadableSpan) -> int:
    """Return about how many bytes a span takes; quick."""
    return sum(_ENVELOPE + _size(each) for each in (span.attributes, *(event.attributes for event in span.events)))


def _origin(request: ExportTraceServiceRequest, span: ReadableSpan) -> ScopeSpans:
    """Add whose spans they are and what made them; return where they go."""
    resource = request.resource_spans.add(schema_url=span.resource.schema_url)
    _put(resource.resource.attributes, span.resource.attributes)
    made_by = span.instrumentation_scope
    scope = resource.scope_spans.add()
    scope.scope.SetInParent()
    if made_by is not None:
        scope.schema_url = made_by.schema_url or ""
        scope.scope.name, scope.scope.version = made_by.name, made_by.version or ""
        _put(scope.scope.attributes, made_by.attributes)
    return scope


def _encode(span: ReadableSpan, message: Span) -> None:
    context = span.get_span_context()
    assert context is not None  # noqa: S101 - every span that is built has one
    message.trace_id, message.span_id = context.trace_id.to_bytes(16), context.span_id.to_bytes(8)
    message.trace_state = _state(context)
    message.flags = _flags(span.parent)
    if span.parent is not None:
        message.parent_span_id = span.parent.span_id.to_bytes(8)
    message.name = span.name
    message.kind = Span.SpanKind.ValueType(span.kind.value + 1)  # OTLP counts from 1, and 0 says nothing
    message.start_time_unix_nano, message.end_time_unix_nano = span.start_time or 0, span.end_time or 0
    _put(message.attributes, span.attributes)
    for event in span.events:
        added = message.events.add(name=event.name, time_unix_nano=event.timestamp)
        _put(added.attributes, event.attributes)
    for link in span.links:
        there = link.context
        ids = {"trace_id": there.trace_id.to_bytes(16), "span_id": there.span_id.to_bytes(8)}
        _put(message.links.add(**ids, flags=_flags(there)).attributes, link.attributes)
    message.status.code = message.status.StatusCode.ValueType(span.status.status_code.value)
    message.status.message = span.status.description or ""


def _state(context: SpanContext) -> str:
    return ",".join(f"{key}={value}" for key, value in context.trace_state.items()) if context.trace_state else ""


def _flags(context: SpanContext | None) -> int:
    return _HAS_IS_REMOTE | (_IS_REMOTE if context is not None and context.is_remote else 0)


def _put(attributes: Any, values: Mapping[str, AttributeValue] | None) -> None:  # noqa: ANN401 - a list of protobuf's
    """Add attributes to a message."""
    for name, value in (values or {}).items():
        attribute = attributes.add()
        attribute.key = name
        if type(value) is str:
            attribute.value.string_value = value
        else:
            _put_value(attribute.value, value)


def _put_value(said: AnyValue, value: object) -> None:
    match value:
        case str():
            said.string_value = value
        case bool():
            said.bool_value = value
        case int() if -LARGEST - 1 <= value <= LARGEST:
            said.int_value = value
        case float():
            said.double_value = value
        case list() | tuple():
            said.array_value.SetInParent()
            for each in value:
                _put_value(said.array_value.values.add(), each)
        case _:
            said.string_value = clean(str(value))


def _small(attributes: Mapping[str, AttributeValue] | None) -> dict[str, AttributeValue]:
    return {
        name: value
        for name, value in (attributes or {}).items()
        if len(str(value)) <= _SMALL and not name.startswith(_CONTENT)
    }


def _size(attributes: Mapping[str, Any] | None) -> int:
    if not attributes:
        return 0
    return sum(map(len, attributes)) + sum(map(len, map(str, attributes.values()))) + _FRAME * len(attributes)
