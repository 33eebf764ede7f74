"""Find the events of a file that meet an expression. Only lines that hold its longest literal are parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_core import from_json, to_json

from playhead.errors import NotATraceError
from playhead.trace.blobs import BlobFolder
from playhead.trace.format import require_format
from playhead.trace.line import BLOB, ENVELOPE, Record, decode_data
from playhead.trace.reader import MAX_LINE, open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase
    from pathlib import Path

    from playhead.diagnose.expression import Expression

CHUNK: Final = 256 * 1024
"""Bytes that are searched at a time: few enough to stay in a processor's cache."""


class Search:
    """The events of one trace that meet an expression. The chain is not verified."""

    def __init__(self, path: Path, expression: Expression) -> None:
        self.unread = ""
        """Why something that may meet the expression could not be read: the first such reason."""
        self._path, self._expression = path, expression
        self._blobs = BlobFolder(path)

    def __iter__(self) -> Iterator[Record]:
        """Yield them.

        Raises:
            TraceError: the file cannot be read, or is no trace.
        """
        with open_trace(self._path) as file:
            for block in self._blocks(file):
                for line in _candidates(block, self._expression.literal):
                    if (record := self._matched(line)) is not None:
                        yield record

    def _matched(self, line: bytes) -> Record | None:
        """Return the event of a line if it meets the expression."""
        try:
            event = from_json(line, cache_strings="keys")
            if b"$" in line and BLOB in line:
                event["data"] = self._blobs.resolve(event["data"])
            if not self._expression.holds(event):
                return None
            if ENVELOPE.match(line) is None:
                raise ValueError("it is not in the form of an event")  # noqa: TRY301 - as for JSON that is none
            typed = decode_data(event["kind"].encode(), to_json(event["data"]))
        except Exception as error:  # noqa: BLE001 - a hostile line; a missing blob
            self.unread = self.unread or f"a line that may match cannot be read: {error}"
            return None
        return Record(event["seq"], event["ts"], event["owner"], event.get("iteration"), typed, event["h"])

    def _blocks(self, file: BufferedIOBase) -> Iterator[bytes]:
        """Yield the complete lines of a file, many at once, without the last newline."""
        is_first = True
        while block := self._read(file):
            if is_first:
                first = block.partition(b"\n")[0]
                require_format(self._path.name, first)
                if ENVELOPE.match(first) is None:
                    raise NotATraceError(f"{self._path.name} is not a Playhead trace: its first line is not an event")
                is_first = False
            if not block.endswith(b"\n"):
                self.unread = self.unread or "its last line is cut off, and not read"
            yield block.rpartition(b"\n")[0]
        if is_first and not self.unread:
            raise NotATraceError(f"{self._path.name} is empty")

    def _read(self, file: BufferedIOBase) -> bytes:
        try:
            block = file.read(CHUNK)
            rest = b"" if block.endswith(b"\n") else file.readline(MAX_LINE)
        except Exception as error:  # noqa: BLE001 - each compression library raises its own errors
            self.unread = f"the compressed data end early: {error}"
            return b""
        if len(rest) >= MAX_LINE:
            self.unread = f"a line is longer than {MAX_LINE:,} bytes: it and the rest are not read"
            return b""
        return block + rest


def _candidates(block: bytes, literal: bytes) -> Iterator[bytes]:
    """Yield the lines that hold the literal, or refer to a large value elsewhere, which may hold it."""
    if not literal:
        yield from block.split(b"\n")
    elif b"$" in block and BLOB in block:  # a single byte is found ten times as fast
        yield from (line for line in block.split(b"\n") if literal in line or BLOB in line)
    else:
        end = 0
        while end >= 0 and (found := block.find(literal, end)) >= 0:
            start, end = block.rfind(b"\n", 0, found) + 1, block.find(b"\n", found)
            yield block[start : end if end >= 0 else None]
