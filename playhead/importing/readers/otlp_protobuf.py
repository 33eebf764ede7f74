"""OTLP as protobuf: one ExportTraceServiceRequest, or many, each after its length.

Lengths are varints, as protobuf's `writeDelimitedTo` has them, or four bytes, as the collector's file exporter writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.limits import MAX_ATTRIBUTES, MAX_DEPTH, MAX_DOCUMENT
from playhead.importing.readers.base import NO_START
from playhead.importing.spans import LAST_NS, ForeignEvent, ForeignSpan, Status
from playhead.trace.varint import LONGEST, MORE, decode_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from google.protobuf.descriptor import Descriptor

    from playhead.importing.readers.base import Problems

_STATUS: Final[tuple[Status, ...]] = ("unset", "ok", "error")
_NEITHER: Final = "it is neither one OTLP message nor a file of such with their lengths"
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
                if len(span.trace_id) == 16 and len(span.span_id) == 8 and any(span.trace_id) and any(span.span_id):  # noqa: PLR2004 - bytes of an id
                    yield _span(span, resource, problems)
                else:
                    problems["spans without a valid trace id and span id"] += 1


def descriptor() -> Descriptor:
    """Return what describes a request; raises `MissingDependencyError`."""
    described: Descriptor = _request(b"").DESCRIPTOR
    return described


def messages(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the requests of a file: the whole of it when that is one, or else each after its length.

    Raises:
        NotImportableError: it is neither.
    """
    head = file.read(16)
    file.seek(0)
    fixed = int.from_bytes(head[:4], "big")
    if head[4:5] == bytes((_FIELD_1,)) and 0 < fixed <= size - 4 and head[:1] == b"\0":
        yield from _delimited(file, size, _fixed_length)
        return
    if head[:1] != bytes((_FIELD_1,)) or _is_delimited(head, size):
        yield from _delimited(file, size, _varint_length)
        return
    if size > MAX_DOCUMENT:
        raise NotImportableError(f"one message of {size:,} bytes; at most {MAX_DOCUMENT:,} can be read at once")
    yield file.read(size)


def _is_delimited(head: bytes, size: int) -> bool:
    """Tell a request of ten bytes after its length from a request, for both begin with the same byte."""
    return size == _FIELD_1 + 1 and head[1:2] == bytes((_FIELD_1,))


def _delimited(file: IO[bytes], size: int, read_length: Callable[[IO[bytes]], int | None]) -> Iterator[bytes]:
    while (length := read_length(file)) is not None:
        if size >= length > MAX_DOCUMENT:
            raise NotImportableError(f"a message of {length:,} bytes; at most {MAX_DOCUMENT:,} can be read at once")
        content = file.read(min(length, size))
        if len(content) < length:
            raise NotImportableError(_NEITHER)
        yield content


def _fixed_length(file: IO[bytes]) -> int | None:
    head = file.read(4)
    return int.from_bytes(head, "big") if len(head) == 4 else None  # noqa: PLR2004 - bytes of a length


def _varint_length(file: IO[bytes]) -> int | None:
    head = b""
    while byte := file.read(1):
        head += byte
        if byte[0] < MORE or len(head) == LONGEST:
            return _number(head)
    return None


def _number(content: bytes) -> int:
    try:
        return decode_varint(content)[0]
    except ValueError:
        raise NotImportableError(_NEITHER) from None


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


def _span(span: Any, resource: dict[str, Any], problems: Problems) -> ForeignSpan:  # noqa: ANN401
    end_ns = min(span.end_time_unix_nano, LAST_NS) or None
    events = (
        ForeignEvent(event.name, min(event.time_unix_nano, LAST_NS), _attributes(event.attributes, problems))
        for event in span.events[:MAX_ATTRIBUTES]
    )
    problems.update([] if span.start_time_unix_nano else [NO_START])
    return ForeignSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if any(span.parent_span_id) else None,
        name=span.name,
        start_ns=min(span.start_time_unix_nano, LAST_NS) or end_ns or 0,
        end_ns=end_ns,
        status=_STATUS[span.status.code] if span.status.code < len(_STATUS) else "unset",
        message=span.status.message,
        attributes=_attributes(span.attributes, problems),
        events=tuple(events),
        resource=resource,
        dropped=span.dropped_attributes_count + span.dropped_events_count,
    )


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
