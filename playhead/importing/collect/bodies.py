"""The body of a request: how large it may be, how it is compressed, and which spans it holds."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.limits import MAX_PARTS, MAX_SPANS, memory_of, too_many_in_json, too_many_in_message
from playhead.importing.readers import otlp_json, otlp_protobuf
from playhead.importing.values import read_json

if TYPE_CHECKING:
    from playhead.importing.readers import Problems
    from playhead.importing.spans import ForeignSpan

MAX_BODY: Final = 16 * 1024**2
"""Bytes of a body, as it is sent and when it is unpacked. With `MAX_PARTS` it bounds what parsing it costs; one body is
parsed at a time. `python -m benchmarks collecting` measures it."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
SMALLER: Final = "export smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
SUFFIXES: Final = {PROTOBUF: ".pb", JSON: ".json"}
"""What a body of each type is called in the spool; `playhead import` reads both."""
_WBITS: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""How what is compressed so is unpacked. OTLP has gzip; Python's exporter may be set to deflate."""


class RefusedError(Exception):
    """A request that cannot be taken, with its HTTP status; after 503 the same request may be taken later."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Body:
    """A body that can be read."""

    content_type: str
    content: bytes
    """Unpacked."""
    spans: tuple[ForeignSpan, ...]
    problems: Problems = field(default_factory=Counter)
    """What was left out of it, by why."""

    @cached_property
    def memory(self) -> int:
        """Bytes of memory that its spans take, about."""
        return memory_of(self.spans)


def unpacked(content: bytes, encoding: str | None) -> bytes:
    """Return a body without its compression; no more than `MAX_BODY` bytes are ever unpacked.

    Raises:
        RefusedError: it is compressed in another way, damaged, or larger.
    """
    named = (encoding or "identity").strip().lower()
    if named == "identity":
        return content
    if named not in _WBITS:
        raise RefusedError(415, f"Content-Encoding {named}: only gzip and deflate are taken")
    unpacker = zlib.decompressobj(_WBITS[named])
    try:
        plain = unpacker.decompress(content, MAX_BODY + 1)
    except zlib.error as error:
        raise RefusedError(400, f"the body is not {named}: {error}") from None
    if len(plain) > MAX_BODY:
        raise RefusedError(413, f"the body is more than {MAX_BODY:,} bytes when it is unpacked: {SMALLER}")
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(400, f"the body is not one whole {named} stream")
    return plain


def read_body(content_type: str, content: bytes) -> Body:
    """Return the spans of a body.

    Raises:
        RefusedError: it is no export of traces.
    """
    problems: Problems = Counter()
    try:
        if content_type == PROTOBUF:
            if too_many_in_message(content, otlp_protobuf.descriptor(), MAX_PARTS):
                raise _too_many()
            found = otlp_protobuf.spans_of_message(content, problems)
        else:
            found = otlp_json.FORMAT.spans(_document(content, problems), problems)
        spans = tuple(islice(found, MAX_SPANS + 1))
    except NotImportableError as error:
        raise RefusedError(400, str(error)) from None
    except MissingDependencyError as error:
        raise RefusedError(415, str(error)) from None
    if len(spans) > MAX_SPANS:
        raise RefusedError(413, f"the body has more than {MAX_SPANS:,} spans: {SMALLER}")
    return Body(content_type, content, spans, problems)


def _too_many() -> RefusedError:
    return RefusedError(413, f"the body has more than {MAX_PARTS:,} values: {SMALLER}")


def _document(content: bytes, problems: Problems) -> dict[str, Any]:
    if too_many_in_json(content, MAX_PARTS):
        raise _too_many()
    try:
        document = read_json(content, problems)
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON, or nested too deep ({str(error)[:100]})") from None
    groups = document.get("resourceSpans", document.get("resource_spans")) if isinstance(document, dict) else None
    if document != {} and not isinstance(groups, list):
        raise RefusedError(400, "the body is not OTLP: an object with resourceSpans, a list, is wanted")
    return document  # type: ignore[no-any-return]
