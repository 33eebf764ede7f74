"""Spans as OTLP's protobuf, each encoded once, and put together to requests of any size.

The library's own encoder takes four times as long, nearly all of it for attributes, of which a model's span has a hundred.
So the bytes of attributes that are text or numbers are written here, and everything else is left to protobuf; tests compare what the
two encoders make of odd spans and of whole runs.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError
from playhead.trace.varint import encode_varint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one request, before it is compressed; what some collectors take at most."""
_SMALL: Final = 256
"""Bytes of a value that a span keeps when its content is left out."""
_ENVELOPE: Final = 200
"""Bytes that a span takes without its attributes, roughly."""
_FRAME: Final = 12
"""Bytes that an attribute takes beside its name and its value, roughly."""
LEFT_OUT: Final = "playhead.content_left_out"
"""The attribute that says so."""
_REMEMBERED: Final = 4096
"""Characters; longer text is encoded each time."""
_CONTENT: Final = ("llm.input_messages.", "llm.output_messages.", "llm.tools.", "gen_ai.input", "gen_ai.output")
_TOO_LARGE: Final = 2**63
"""The first number that is no integer of the protocol."""
_EIGHT_BYTES: Final = struct.Struct("<d")
_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
"""Bits of a span's flags that say where its parent is."""

# Field numbers of the protocol, each with its wire type: "length-delimited" unless it says otherwise.
_ATTRIBUTE: Final = b"\x4a"  # Span.attributes = 9
_KEY: Final = b"\x0a"  # KeyValue.key = 1
_VALUE: Final = b"\x12"  # KeyValue.value = 2
_STRING: Final = b"\x0a"  # AnyValue.string_value = 1
_INTEGER: Final = b"\x18"  # AnyValue.int_value = 3, a varint
_DOUBLE: Final = b"\x21"  # AnyValue.double_value = 4, eight bytes
_FIRST: Final = b"\x0a"  # Request.resource_spans = 1, ResourceSpans.resource = 1, ScopeSpans.scope = 1
_SECOND: Final = b"\x12"  # ResourceSpans.scope_spans = 2, ScopeSpans.spans = 2
_THIRD: Final = b"\x1a"  # ResourceSpans.schema_url = 3, ScopeSpans.schema_url = 3


def require_opentelemetry() -> None:
    """See to it that what exports is installed.

    Raises:
        MissingDependencyError: it is not.
    """
    try:
        import requests  # noqa: F401, PLC0415 - to see whether it is there
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: F401, PLC0415 - the same
        from opentelemetry.sdk import trace  # noqa: F401, PLC0415 - the same
    except ImportError:
        raise MissingDependencyError("exporting needs: pip install 'playhead[otel]'") from None


def encode(spans: Sequence[ReadableSpan]) -> bytes:
    """Return an `ExportTraceServiceRequest` of these spans."""
    return request_of(spans, [encoded(span) for span in spans])


def encoded(span: ReadableSpan) -> bytes:
    """Return a span as a message of OTLP; never raises for what its attributes hold."""
    return _without_attributes(span).SerializeToString() + _attributes(span.attributes)


def request_of(spans: Sequence[ReadableSpan], messages: Sequence[bytes]) -> bytes:
    """Return the request that hands spans over; `messages` are the same spans, encoded."""
    body = []
    for _, group in groupby(range(len(spans)), lambda place: _origin(spans[place])):
        places = list(group)
        resource, scope, urls = _origin_of(spans[places[0]])
        parts = [_field(_FIRST, scope)]
        for place in places:
            parts += (_SECOND, encode_varint(len(messages[place])), messages[place])
        of_scope = sum(map(len, parts)) + len(urls[1])
        head = _field(_FIRST, resource) + _SECOND + encode_varint(of_scope)
        body += [_FIRST, encode_varint(len(head) + of_scope + len(urls[0])), head, *parts, urls[1], urls[0]]
    return b"".join(body)


def without_content(span: ReadableSpan) -> bytes:
    """Return a span as a message that has none of its long texts and none of its messages, and says so."""
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue  # noqa: PLC0415 - when exporting
    from opentelemetry.proto.trace.v1.trace_pb2 import Span  # noqa: PLC0415 - the same

    smaller = Span.FromString(encoded(span))
    for attributes in (smaller.attributes, *(event.attributes for event in smaller.events)):
        kept = [each for each in attributes if not _is_content(each)]
        del attributes[:]
        attributes.extend(kept)
    smaller.attributes.append(KeyValue(key=LEFT_OUT, value=AnyValue(bool_value=True)))
    return smaller.SerializeToString()


def size_of(span: ReadableSpan) -> int:
    """Return about how many bytes a span takes; quick."""
    size = _ENVELOPE + _size(span.attributes)
    return size + sum(_ENVELOPE + _size(event.attributes) for event in span.events)


def _size(attributes: Mapping[str, Any] | None) -> int:
    if not attributes:
        return 0
    return sum(map(len, attributes)) + sum(map(len, map(str, attributes.values()))) + _FRAME * len(attributes)


def _is_content(attribute: KeyValue) -> bool:
    return attribute.value.ByteSize() > _SMALL or attribute.key.startswith(_CONTENT)


def _without_attributes(span: ReadableSpan) -> Span:
    from opentelemetry.proto.trace.v1 import trace_pb2 as otlp  # noqa: PLC0415 - when exporting

    context = span.get_span_context()
    assert context is not None  # noqa: S101 - every span that is built has one
    return otlp.Span(
        **_ids(context),
        parent_span_id=b"" if span.parent is None else span.parent.span_id.to_bytes(8),
        flags=_flags(span.parent),
        name=_text(span.name).decode(),
        kind=otlp.Span.SpanKind.ValueType(span.kind.value + 1),  # OTLP counts from 1, and 0 says nothing
        start_time_unix_nano=span.start_time or 0,
        end_time_unix_nano=span.end_time or 0,
        events=[
            otlp.Span.Event(name=event.name, time_unix_nano=event.timestamp, attributes=_key_values(event.attributes))
            for event in span.events
        ],
        links=[
            otlp.Span.Link(**_ids(link.context), attributes=_key_values(link.attributes), flags=_flags(link.context))
            for link in span.links
        ],
        status=otlp.Status(
            code=otlp.Status.StatusCode.ValueType(span.status.status_code.value),
            message=_text(span.status.description or "").decode(),
        ),
    )


def _ids(context: SpanContext) -> dict[str, Any]:
    state = ",".join(f"{key}={value}" for key, value in context.trace_state.items()) if context.trace_state else ""
    return {"trace_id": context.trace_id.to_bytes(16), "span_id": context.span_id.to_bytes(8), "trace_state": state}


def _flags(context: SpanContext | None) -> int:
    return _HAS_IS_REMOTE | (_IS_REMOTE if context is not None and context.is_remote else 0)


def _attributes(attributes: Mapping[str, Any] | None) -> bytes:
    """Return the attributes of a span as its fields."""
    parts: list[bytes] = []
    for name, value in (attributes or {}).items():
        key = _key(name)
        if type(value) is str:
            said = _string(value) if len(value) <= _REMEMBERED else _string_value(value)
        else:
            said = _other_value(value)
        parts += (_ATTRIBUTE, encode_varint(len(key) + len(said)), key, said)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _key(name: str) -> bytes:
    """Return a name as the field of a KeyValue; the same few hundred come with every span."""
    return _field(_KEY, _text(name))


def _string_value(text: str) -> bytes:
    """Return text as the value of a KeyValue."""
    return _field(_VALUE, _field(_STRING, _text(text)))


_string = lru_cache(maxsize=2048)(_string_value)
"""The same for short text: each message of a thread comes with many spans."""


def _other_value(value: object) -> bytes:
    """Return anything else as the value of a KeyValue; numbers by hand, for most spans have some."""
    if type(value) is int and 0 <= value < _TOO_LARGE:
        return _field(_VALUE, _INTEGER + encode_varint(value))
    if type(value) is float:
        return _field(_VALUE, _DOUBLE + _EIGHT_BYTES.pack(value))
    return _field(_VALUE, _any_value(value).SerializeToString())


def _key_values(attributes: Mapping[str, Any] | None) -> list[KeyValue]:
    return [_key_value(name, value) for name, value in (attributes or {}).items()]


def _key_value(name: str, value: object) -> KeyValue:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue  # noqa: PLC0415 - when exporting

    return KeyValue(key=_text(name).decode(), value=_any_value(value))


def _any_value(value: object) -> AnyValue:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue  # noqa: PLC0415 - when exporting

    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int() if -_TOO_LARGE <= value < _TOO_LARGE:
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
    if isinstance(value, (list, tuple)):
        return AnyValue(array_value=ArrayValue(values=[_any_value(each) for each in value]))
    return AnyValue() if value is None else AnyValue(string_value=_text(str(value)).decode())


def _text(text: str) -> bytes:
    """Return text as UTF-8; what is none becomes a question mark, for one such byte would spoil a whole request."""
    return text.encode("utf-8", "replace")


def _origin(span: ReadableSpan) -> tuple[int, int]:
    return id(span.resource), id(span.instrumentation_scope)


def _origin_of(span: ReadableSpan) -> tuple[bytes, bytes, tuple[bytes, bytes]]:
    """Return the messages that say whose span it is and what made it, and the fields with their schemas."""
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope  # noqa: PLC0415 - when exporting
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource  # noqa: PLC0415 - the same

    resource = Resource(attributes=_key_values(span.resource.attributes)).SerializeToString()
    schema = _url(span.resource.schema_url)
    made_by = span.instrumentation_scope
    if made_by is None:
        return resource, b"", (schema, b"")
    scope = InstrumentationScope(
        name=made_by.name, version=made_by.version or "", attributes=_key_values(made_by.attributes)
    ).SerializeToString()
    return resource, scope, (schema, _url(made_by.schema_url))


def _url(schema: str | None) -> bytes:
    return _field(_THIRD, _text(schema)) if schema else b""


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + encode_varint(len(content)) + content
