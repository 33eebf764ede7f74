"""What a collector says of a request that it has taken, and whether it is a collector that says it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_PROTOBUF: Final = ("", "application/x-protobuf", "application/protobuf", "application/octet-stream")
"""Types of content that may be OTLP's own answer; servers that name none are believed when their bytes are."""


class Rejected(NamedTuple):
    """What is said of a request that was taken."""

    spans: int = 0
    """How many of its spans were rejected; which ones, OTLP does not say."""
    reason: str = ""
    """In the collector's words."""


def read_answer(content: bytes, content_type: str) -> Rejected | None:
    """Return what the answer to a request that was taken says; None when no collector answers like this.

    OTLP's answer is an `ExportTraceServiceResponse`, as protobuf or as JSON; nearly always it is empty. A page with the status
    200 comes from something else: a login, a proxy, or a site at that address.

    Args:
        content: the body.
        content_type: the header that names its type; empty when there is none.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if not content.strip():
        return Rejected()
    if kind.endswith("json") or content.lstrip().startswith(b"{"):
        return _of_json(content)
    return _of_protobuf(content) if kind in _PROTOBUF else None


def _of_protobuf(content: bytes) -> Rejected | None:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - when exporting
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp  # noqa: PLC0415 - the same

    try:
        said: ExportTraceServiceResponse = otlp.ExportTraceServiceResponse.FromString(content)
    except DecodeError:
        return None
    return Rejected(max(said.partial_success.rejected_spans, 0), said.partial_success.error_message)


def _of_json(content: bytes) -> Rejected | None:
    """Return what JSON says; an object that says nothing of spans says that all is well."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return None
    partial = _field(said, "partialSuccess", "partial_success")
    count, reason = _field(partial, "rejectedSpans", "rejected_spans"), _field(partial, "errorMessage", "error_message")
    try:
        return Rejected(max(int(count or 0), 0), str(reason or ""))
    except (TypeError, ValueError, OverflowError):
        return Rejected(0, str(reason or ""))


def _field(holder: Any, *names: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    return next((holder[name] for name in names if name in holder), None) if isinstance(holder, dict) else None
