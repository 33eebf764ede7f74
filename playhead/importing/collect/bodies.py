"""The body of a request: how large it may be, how it is compressed, and which spans it holds."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.readers import otlp_json, otlp_protobuf

if TYPE_CHECKING:
    from playhead.importing.readers.base import Problems
    from playhead.importing.spans import ForeignSpan

MAX_BODY: Final = 16 * 1024**2
"""Bytes of a body as it is sent."""
MAX_UNPACKED: Final = 64 * 1024**2
"""Bytes of a body when it is unpacked."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
SUFFIXES: Final = {PROTOBUF: ".pb", JSON: ".json"}
"""What a body of each type is called in the spool; `playhead import` reads both."""


class RefusedError(Exception):
    """A request that cannot be taken, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Body:
    """A body that can be read."""

    content_type: str
    content: bytes
    """Unpacked."""
    spans: tuple[ForeignSpan, ...]
    problems: Problems = field(default_factory=Counter)
    """Spans that are none, by why."""


def checked_type(header: str | None) -> str:
    """Return the type of a body.

    Raises:
        RefusedError: it is none of the two that OTLP has.
    """
    named = (header or "").partition(";")[0].strip().lower()
    if named not in SUFFIXES:
        raise RefusedError(415, f"Content-Type {named or 'is missing'}: OTLP over HTTP has {PROTOBUF} and {JSON}")
    return named


def unpacked(content: bytes, encoding: str | None) -> bytes:
    """Return a body without its compression; no more than `MAX_UNPACKED` bytes are ever unpacked.

    Raises:
        RefusedError: it is compressed otherwise, damaged, or larger.
    """
    named = (encoding or "identity").strip().lower()
    if named == "identity":
        return content
    if named != "gzip":
        raise RefusedError(415, f"Content-Encoding {named}: only gzip is taken")
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = unpacker.decompress(content, MAX_UNPACKED + 1)
    except zlib.error as error:
        raise RefusedError(400, f"the body is no gzip: {error}") from None
    if len(plain) > MAX_UNPACKED:
        raise RefusedError(
            413, f"the body is more than {MAX_UNPACKED:,} bytes when it is unpacked: export smaller batches"
        )
    if not unpacker.eof:
        raise RefusedError(400, "the body's gzip is cut off")
    return plain


def read_body(content_type: str, content: bytes) -> Body:
    """Return the spans of a body.

    Raises:
        RefusedError: it is no export of traces.
    """
    problems: Problems = Counter()
    try:
        if content_type == PROTOBUF:
            spans = tuple(otlp_protobuf.spans_of_message(content, problems))
        else:
            spans = tuple(otlp_json.FORMAT.spans(_document(content), problems))
    except NotImportableError as error:
        raise RefusedError(400, str(error)) from None
    except MissingDependencyError as error:
        raise RefusedError(415, str(error)) from None
    return Body(content_type, content, spans, problems)


def _document(content: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        document = from_json(content)
    except ValueError as error:
        raise RefusedError(400, f"the body is no JSON, or nested too deep: {str(error)[:100]}") from None
    if not isinstance(document, dict) or not ({"resourceSpans", "resource_spans"} & set(document) or not document):
        raise RefusedError(400, "the body is no ExportTraceServiceRequest: an object with resourceSpans is wanted")
    return document
