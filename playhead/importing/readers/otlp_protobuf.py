"""OTLP as protobuf: one ExportTraceServiceRequest, or many, each after its length in four bytes.

The collector's file exporter writes the second. What a message says is read as OTLP JSON is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_DEPTH, MAX_DOCUMENT
from playhead.importing.readers import read_up_to
from playhead.importing.readers.otlp_json import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from google.protobuf.descriptor import Descriptor

    from playhead.importing.readers import Problems
    from playhead.importing.spans import ForeignSpan

_FIELD_1: Final = 0x0A
"""How a request with any span begins: field 1, with a length."""


def spans_of_message(content: bytes, problems: Problems) -> Iterator[ForeignSpan]:
    """Yield the spans of one request.

    Raises:
        NotImportableError: it is none.
        MissingDependencyError: the classes of OTLP are not installed.
    """
    for group in _request(content).resource_spans:
        resource = _attributes(group.resource.attributes, problems)
        for scope in group.scope_spans:
            for span in scope.spans:
                made = span_of(_plain(span, problems), resource, problems)
                if made is not None:
                    yield made


def descriptor() -> Descriptor:
    """Return what describes a request; raises `MissingDependencyError`."""
    described: Descriptor = _request(b"").DESCRIPTOR
    return described


def messages(file: BufferedReader) -> Iterator[bytes]:
    """Yield the requests of a file: the whole of it when that is one, or else each after its length.

    Raises:
        NotImportableError: it is none, too large, or cut off.
    """
    head = file.peek(5)[:5]
    if head[:1] != b"\0" or head[4:] != bytes((_FIELD_1,)):
        if head[:1] != bytes((_FIELD_1,)):
            raise NotImportableError("it is no OTLP message, for none begins so")
        content = read_up_to(file, MAX_DOCUMENT + 1)
        _check(len(content))
        yield content
        return
    while prefix := file.read(4):
        length = int.from_bytes(prefix, "big")
        _check(length)
        content = read_up_to(file, length)
        if len(content) < length:
            raise NotImportableError("it is a file of OTLP messages with their lengths, and the last one is cut off")
        yield content


def _check(length: int) -> None:
    if length > MAX_DOCUMENT:
        raise NotImportableError(f"a message of more than {MAX_DOCUMENT:,} bytes, which is what can be read at once")


def _request(content: bytes) -> Any:  # noqa: ANN401 - a class made when it is imported
    try:
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - for protobuf alone
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - the same
            ExportTraceServiceRequest,
        )
    except ImportError:
        raise MissingDependencyError(
            "reading OTLP protobuf needs: pip install 'playhead[otel]' (or export OTLP JSON instead)"
        ) from None
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(content)
    except DecodeError:
        raise NotImportableError("it is no OTLP message: not an ExportTraceServiceRequest in protobuf") from None
    return request


def _plain(span: Any, problems: Problems) -> dict[str, Any]:  # noqa: ANN401
    """Return a span with the names of OTLP JSON; its attributes are read already."""
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "name": span.name,
        "startTimeUnixNano": span.start_time_unix_nano,
        "endTimeUnixNano": span.end_time_unix_nano,
        "status": {"code": span.status.code, "message": span.status.message},
        "attributes": _attributes(span.attributes, problems),
        "events": [
            {
                "name": event.name,
                "timeUnixNano": event.time_unix_nano,
                "attributes": _attributes(event.attributes, problems),
            }
            for event in span.events[:MAX_ATTRIBUTES]
        ],
        "droppedAttributesCount": span.dropped_attributes_count,
        "droppedEventsCount": span.dropped_events_count,
    }


def _attributes(pairs: Any, problems: Problems) -> dict[str, Any]:  # noqa: ANN401
    if len(pairs) > MAX_ATTRIBUTES:
        problems[f"attributes after the first {MAX_ATTRIBUTES:,} of a span"] += len(pairs) - MAX_ATTRIBUTES
    read = ((pair.key, _value(pair.value, 1)) for pair in pairs[:MAX_ATTRIBUTES])
    return {key: value for key, value in read if value is not None}


def _value(value: Any, depth: int) -> Any:  # noqa: ANN401
    kind = value.WhichOneof("value")
    if kind is None or depth > MAX_DEPTH:
        return None
    if kind == "array_value":
        return [_value(each, depth + 1) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _value(each.value, depth + 1) for each in value.kvlist_value.values}
    if kind == "bytes_value":
        return value.bytes_value.decode("utf-8", "replace")
    return getattr(value, kind)
