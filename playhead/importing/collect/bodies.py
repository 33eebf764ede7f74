"""The body of a request: how large it may be, how it is compressed, and which spans it holds."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import MissingDependencyError, NotImportableError
from playhead.importing.json_text import read_json
from playhead.importing.limits import MAX_SPANS
from playhead.importing.readers import otlp_json, otlp_protobuf
from playhead.importing.weight import MAX_PARTS, memory_of, too_many_in_json, too_many_in_message

if TYPE_CHECKING:
    from playhead.importing.readers.base import Problems
    from playhead.importing.spans import ForeignSpan

MAX_BODY: Final = 16 * 1024**2
"""Bytes of a body, as it is sent and when it is unpacked. With `MAX_PARTS` it bounds what parsing it costs; one body is
parsed at a time. `python -m benchmarks collecting` measures it: less than 250 MiB."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
SMALLER: Final = "export smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
_WBITS: Final = {
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}
"""How what is compressed so is unpacked. OTLP has gzip; Python's exporter may be set to deflate."""
_NAMES: Final = {"resourceSpans", "resource_spans"}
SUFFIXES: Final = {PROTOBUF: ".pb", JSON: ".json"}
"""What a body of each type is called in the spool; `playhead import` reads both."""


class RefusedError(Exception):
    """A request that cannot be taken, with its HTTP status and the headers of the answer."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers

    @property
    def passes(self) -> bool:
        """Whether the same request may be taken later."""
        return self.status == 503  # noqa: PLR2004 - HTTP's


@dataclass(frozen=True)
class Body:
    """A body that can be read."""

    content_type: str
    content: bytes
    """Unpacked."""
    spans: tuple[ForeignSpan, ...]
    problems: Problems = field(default_factory=Counter)
    """Spans that are none, by why."""

    @cached_property
    def memory(self) -> int:
        """Bytes of memory that its spans take, about."""
        return memory_of(self.spans)


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
    """Return a body without its compression; no more than `MAX_BODY` bytes are ever unpacked.

    Raises:
        RefusedError: it is compressed in another way, damaged, or larger.
    """
    named = (encoding or "identity").strip().lower()
    if named == "identity":
        return content
    if named not in _WBITS:
        raise RefusedError(
            415, f"Content-Encoding {named}: only gzip and deflate are taken", ("Accept-Encoding", "gzip, deflate")
        )
    unpacker = zlib.decompressobj(_WBITS[named])
    try:
        plain = unpacker.decompress(content, MAX_BODY + 1)
    except zlib.error as error:
        raise RefusedError(400, f"the body is no {named}: {error}") from None
    if len(plain) > MAX_BODY:
        raise RefusedError(413, f"the body is more than {MAX_BODY:,} bytes when it is unpacked: {SMALLER}")
    if not unpacker.eof:
        raise RefusedError(400, f"the body's {named} is cut off")
    if unpacker.unused_data:
        raise RefusedError(400, f"the body has something after the end of its {named}")
    return plain


def read_body(content_type: str, content: bytes) -> Body:
    """Return the spans of a body.

    Raises:
        RefusedError: it is no export of traces.
    """
    problems: Problems = Counter()
    try:
        if content_type == PROTOBUF:
            if too_many_in_message(content, otlp_protobuf.descriptor()):
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


def _document(content: bytes, problems: Problems) -> Any:  # noqa: ANN401 - any JSON value
    if too_many_in_json(content):
        raise _too_many()
    try:
        document = read_json(content, problems)
    except ValueError as error:
        raise RefusedError(400, f"the body is no JSON, or nested too deep: {str(error)[:100]}") from None
    if document == {}:  # a request without spans
        return document
    named = _NAMES & set(document) if isinstance(document, dict) else ()
    if not named or any(not isinstance(document[name], list | None) for name in named):
        raise RefusedError(
            400, "the body is no ExportTraceServiceRequest: an object with resourceSpans, a list, is wanted"
        )
    return document
