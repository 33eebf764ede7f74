"""Encodes spans as OTLP.

`encode` produces the same bytes as OpenTelemetry's `encode_spans` (a test compares them), twice as fast.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from playhead.spans.messages import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.util.types import AttributeValue

_LARGEST: Final = 2**63 - 1
"""The largest integer that OTLP can represent."""
_ATTRIBUTE: Final = 12
"""Approximate bytes of an attribute in addition to its name and its value."""


def encode(spans: Sequence[ReadableSpan]) -> bytes:
    """Return an `ExportTraceServiceRequest` with these spans."""
    return request_of(spans).SerializeToString()


def size_of(span: ReadableSpan) -> int:
    """Return a quick estimate of a span's size in bytes."""
    return sum(len(name) + len(str(value)) + _ATTRIBUTE for name, value in (span.attributes or {}).items())


def request_of(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Let OpenTelemetry's encoder make a request of everything but the attributes, for which it is too slow."""
    attributes: dict[bytes, Any] = {}
    bare = []
    for span in spans:
        assert span.context is not None  # noqa: S101 - every span that is built has one
        attributes[span.context.span_id.to_bytes(8)] = span.attributes
        bare.append(copy(span))
        bare[-1]._attributes = None  # noqa: SLF001 - a copy of nine references; to build a span again costs six times as much
    request: ExportTraceServiceRequest = encode_spans(bare)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for message in scope.spans:
                _put(message.attributes, attributes[message.span_id])
    return request


def _put(attributes: Any, values: Mapping[str, AttributeValue] | None) -> None:  # noqa: ANN401 - a list of protobuf's
    """Add attributes to a message."""
    for name, value in (values or {}).items():
        message = attributes.add(key=name).value
        if type(value) is str:
            message.string_value = value
        else:
            _put_value(message, value)


def _put_value(message: AnyValue, value: object) -> None:
    match value:
        case str():
            message.string_value = value
        case bool():
            message.bool_value = value
        case int() if -_LARGEST - 1 <= value <= _LARGEST:
            message.int_value = value
        case float():
            message.double_value = value
        case list() | tuple():
            message.array_value.SetInParent()  # marks an empty list as a list
            for each in value:
                _put_value(message.array_value.values.add(), each)
        case _:
            message.string_value = clean(str(value))
