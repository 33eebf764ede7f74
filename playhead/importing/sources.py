"""From a file to spans: what it is, and what of it could not be read."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.errors import NotImportableError, UsageError, nearest
from playhead.importing.limits import MAX_DOCUMENT, MAX_IDLE, Room
from playhead.importing.readers.langfuse import is_langfuse, spans_of_langfuse
from playhead.importing.readers.rows import is_openinference, is_otlp, is_phoenix, spans_of_message, spans_of_rows
from playhead.importing.spans import (
    FORMATS,
    HALVES,
    LANGFUSE,
    MORE_PAGES,
    NO_START,
    OPENINFERENCE_JSONL,
    OTLP_JSON,
    OTLP_PROTOBUF,
    PHOENIX,
)
from playhead.importing.values import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.importing.spans import ForeignSpan, Problems

_READERS: Final[dict[str, tuple[Callable[[Any], bool], Callable[[Any, Problems], Iterator[ForeignSpan]]]]] = {
    OTLP_JSON: (is_otlp, spans_of_rows),
    OPENINFERENCE_JSONL: (is_openinference, spans_of_rows),
    PHOENIX: (is_phoenix, spans_of_rows),
    LANGFUSE: (is_langfuse, spans_of_langfuse),
}
"""What tells whether a document of JSON is of a format, and what yields its spans; in the order in which they are asked."""
_OTHERS: Final = {
    b"(\xb5/\xfd": "it is compressed with zstd: decompress it first",
    b"PAR1": "it is a Parquet file: read it with pandas, and write it with to_json(orient='records', lines=True)",
    b'{"seq":0,': "it is a Playhead recording already: `playhead show` and the other commands take it by its path",
}
"""How files begin that are often taken for an export."""
STDIN: Final = "-"
"""The path of what comes in at stdin."""
_MAX_NOTED: Final = 20
"""Lines that are no JSON whose numbers are told."""
_PIECE: Final = 1 << 20
_IDLE: Final = f"{MAX_IDLE:,} lines or messages in a row without a span: what stands behind them is not read"


@dataclass
class Source:
    """The spans of one file."""

    path: Path
    format: str
    spans: list[ForeignSpan] = field(default_factory=list)
    problems: Problems = field(default_factory=Counter)
    """What was left out, by why."""

    @property
    def is_partial(self) -> bool:
        """Whether something of it is not here that may be part of a run; what was mended does not count."""
        return any(count and why not in (HALVES, NO_START, MORE_PAGES) for why, count in self.problems.items())

    @property
    def is_followed(self) -> bool:
        """Whether its last document is a page of an API that others come after."""
        return self.problems[MORE_PAGES] > 0


def read_source(path: Path, format_name: str | None = None, room: Room | None = None) -> Source:
    """Read all spans of a file.

    Args:
        path: the file, or a named pipe; compressed by gzip, if it is so. `-` is what comes in at stdin.
        format_name: one of `FORMATS`; None: what its content says.
        room: what may be held in memory, for files that are imported together; None: room for this one.

    Raises:
        NotImportableError: it cannot be read, is of no known format, or is too large.
        UsageError: there is no such format.
        MissingDependencyError: protobuf is not installed.
    """
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(f"there is no format {format_name!r}.{nearest(format_name, FORMATS)}")
    source, room = Source(path, format_name or ""), room or Room()
    try:
        with _opened(path) as file:
            for span in _spans(file, source, room):
                room.take_span()
                source.spans.append(span)
    except (OSError, EOFError, zlib.error) as error:
        raise NotImportableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except NotImportableError as error:
        raise NotImportableError(f"{path}: {error}") from None
    return source


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, a pipe or stdin, and unpack what is gzip; nothing is read twice."""
    raw = cast("io.RawIOBase", sys.stdin.buffer) if str(path) == STDIN else path.open("rb", buffering=0)
    file = io.BufferedReader(raw)
    try:
        if file.peek(2)[:2] == b"\x1f\x8b":
            yield io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=file)))
        else:
            yield file
    finally:
        if raw is sys.stdin.buffer:
            file.detach()
        else:
            file.close()


def _spans(file: io.BufferedReader, source: Source, room: Room) -> Iterator[ForeignSpan]:
    head = file.peek(64)[:64]
    if not head:
        raise NotImportableError("it is empty")
    for beginning, what in _OTHERS.items():
        if head.startswith(beginning):
            raise NotImportableError(what)
    if source.format == OTLP_PROTOBUF or (not source.format and not _looks_like_json(head)):
        source.format = OTLP_PROTOBUF
        for message in _messages(file):
            if room.take_line():
                source.problems[_IDLE] += 1
                return
            yield from spans_of_message(message, source.problems, room)
    else:
        yield from _spans_of_json(file, source, room)


def _looks_like_json(head: bytes) -> bool:
    """Tell JSON from protobuf, which too may begin with a line feed and a brace: its next bytes are no text."""
    is_message = head[:1] == b"\n" and any(byte < 9 for byte in head)  # noqa: PLR2004 - control characters
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") and not is_message


def _messages(file: io.BufferedReader) -> Iterator[bytes]:
    """Yield the messages of a file: the whole of it when that is one, or else each after its length in four bytes."""
    head = file.peek(5)[:5]
    if head[:1] == b"\n":
        yield _read(file, MAX_DOCUMENT + 1)
        return
    if head[:1] != b"\0" or head[4:] != b"\n":
        raise NotImportableError("it is neither JSON nor JSON lines nor OTLP protobuf")
    while prefix := file.read(4):
        content = _read(file, length := int.from_bytes(prefix, "big"))
        if len(content) < length:
            raise NotImportableError("it is a file of OTLP messages with their lengths, and the last one is cut off")
        yield content


def _read(file: io.BufferedReader, most: int) -> bytes:
    """Return what a file still holds, at most so many bytes; no more memory is taken than comes."""
    pieces, left = [], min(most, MAX_DOCUMENT + 1)
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if sum(map(len, pieces)) > MAX_DOCUMENT:
        raise NotImportableError(
            f"a document or message of more than {MAX_DOCUMENT:,} bytes, which is what can be read at once: export lines"
        )
    return b"".join(pieces)


def _spans_of_json(file: io.BufferedReader, source: Source, room: Room) -> Iterator[ForeignSpan]:
    """Yield the spans of one document after the other; the first one that is of a known format says what they are."""
    others: list[str] = []
    for document in _documents(file, source.problems, room):
        known = [source.format] if source.format else list(_READERS)
        found = next((name for name in known if _READERS[name][0](document)), None)
        if found is None:
            others.append("" if others else _shown(document))
            continue
        source.format = found
        source.problems.pop(MORE_PAGES, None)  # the next page is this one
        yield from _READERS[found][1](document, source.problems)
    if not source.format:
        held = others[0] if others else "blank lines"
        raise NotImportableError(
            f"no spans of a known format in it: it holds {held}. Looked for: {'; '.join(FORMATS.values())}"
        )
    source.problems.update({f"documents that are no {source.format}": len(others)} if others else {})


def _documents(file: io.BufferedReader, problems: Problems, room: Room) -> Iterator[Any]:
    """Yield the JSON values of a file: one for each line, or the whole of it."""
    first = True
    for number, line in enumerate(iter(lambda: file.readline(MAX_DOCUMENT), b""), 1):
        if room.take_line():
            problems[_IDLE] += 1
            return
        room.take_json(line)
        if not line.strip():
            continue
        try:
            document = _parsed(line, problems)
        except ValueError:
            if first:
                yield _whole(line, file, problems, room)
                return
            where = f": line {number}" if sum(problems.values()) < _MAX_NOTED else ""
            problems[f"lines that are no JSON, or too deep{where}"] += 1
        else:
            yield document
        first = False


def _whole(start: bytes, file: io.BufferedReader, problems: Problems, room: Room) -> Any:  # noqa: ANN401 - any JSON value
    rest = _read(file, MAX_DOCUMENT + 1)
    room.take_json(rest)
    try:
        return _parsed(start + rest, problems)
    except ValueError as error:
        raise NotImportableError(f"it is neither JSON nor JSON lines nor OTLP protobuf ({str(error)[:100]})") from None


def _parsed(content: bytes, problems: Problems) -> Any:  # noqa: ANN401 - any JSON value
    document, was_mended = read_json(content)
    problems.update([HALVES] if was_mended else [])
    return document


def _shown(document: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return what a document holds, in a few words."""
    document = document[0] if isinstance(document, list) and document else document
    if isinstance(document, dict):
        return f"an object with {', '.join(sorted(str(name)[:40] for name in islice(document, 1000))[:8])}"
    return "an empty list" if document == [] else f"{document!r:.80}"
