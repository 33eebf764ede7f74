"""Which spans a recording was made of, so that one with fewer never takes its place unasked."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Final, Literal

from playhead.importing.thread import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.importing.spans import ForeignSpan
    from playhead.trace.imported import ImportedFrom

Relation = Literal["same", "less", "more", "other"]
"""What spans are to those of a recording: `less`: some of them and no other ones, `more`: all of them and others."""
_MOST: Final = 10_000
"""Spans of which a recording holds the fingerprints; its first line stays small."""
_SIZE: Final = 6
"""Bytes of a digest."""


class Fingerprints:
    """For each span a digest of its id, and one of what it says."""

    def __init__(self, spans: Iterable[ForeignSpan]) -> None:
        lines = sorted((span.span_id, _line(span)) for span in spans)
        self.digest = hashlib.sha256("".join(line for _, line in lines).encode("utf-8", "replace")).hexdigest()
        """SHA-256 over all of them."""
        self._of = {_short(span_id): _short(line) for span_id, line in lines}

    @property
    def text(self) -> str:
        """As a recording holds them; empty when they are too many."""
        pairs = b"".join(key + value for key, value in self._of.items())
        return base64.b64encode(pairs).decode() if len(self._of) <= _MOST else ""

    def compared(self, recorded: ImportedFrom) -> Relation:
        """Return what these spans are to those of a recording."""
        if recorded.digest == self.digest:
            return "same"
        before = dict(_pairs(recorded.fingerprints)).items()
        if not before:  # they were too many
            return "other"
        return "less" if self._of.items() <= before else "more" if before <= self._of.items() else "other"


def _pairs(text: str) -> Iterator[tuple[bytes, bytes]]:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return
    for at in range(0, len(content), 2 * _SIZE):
        yield content[at : at + _SIZE], content[at + _SIZE : at + 2 * _SIZE]


def _line(span: ForeignSpan) -> str:
    return f"{span.span_id} {span.parent_id} {span.start_ns} {span.end_ns} {digest(span.attributes)}\n"


def _short(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_SIZE).digest()
