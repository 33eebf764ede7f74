"""What a request is answered: an ExportTraceServiceResponse, or a Status, in the form that the request came in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.bodies import JSON, PROTOBUF, RefusedError
from playhead.trace.varint import encode_varint

if TYPE_CHECKING:
    from playhead.importing.readers.base import Problems

TEXT: Final = "text/plain; charset=utf-8"
RETRY_S: Final = 5
"""Seconds after which a sender that was told to come again may."""
_LONGEST: Final = 1000
"""Bytes of what is said."""
_SPANS: Final = "spans "
"""How the problems begin that are spans; the others are parts of spans that were taken."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer."""

    status: int
    content_type: str
    content: bytes
    headers: tuple[tuple[str, str], ...] = ()


def accepted(content_type: str, problems: Problems) -> Answer:
    """Return that a body was taken, with how many of its spans were none, and what else was left out of it."""
    rejected = sum(count for why, count in problems.items() if why.startswith(_SPANS))
    why = ", ".join(f"{count:,} {what}" for what, count in problems.items())
    if content_type == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}} if problems else {}
        return Answer(200, JSON, json.dumps(partial).encode())
    return Answer(200, PROTOBUF, _partial_success(rejected, why) if problems else b"")


def refused(error: RefusedError, content_type: str | None) -> Answer:
    """Return why a body was not taken. OTLP wants a Status, of which the message alone is set."""
    headers: tuple[tuple[str, str], ...] = (("Retry-After", str(RETRY_S)),) if error.passes else error.headers
    if content_type == JSON:
        return Answer(error.status, JSON, json.dumps({"message": str(error)[:_LONGEST]}).encode(), headers)
    if content_type == PROTOBUF:
        return Answer(error.status, PROTOBUF, _text(2, str(error)), headers)
    return Answer(error.status, TEXT, str(error).encode("utf-8", "replace") + b"\n", headers)


def _partial_success(rejected: int, why: str) -> bytes:
    """Return the message `partial_success {rejected_spans, error_message}`, field by field: it is that short."""
    inner = b"\x08" + encode_varint(rejected) + _text(2, why)
    return b"\x0a" + encode_varint(len(inner)) + inner


def _text(number: int, text: str) -> bytes:
    content = text.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").encode()
    return bytes((number << 3 | 2,)) + encode_varint(len(content)) + content
