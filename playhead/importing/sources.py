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
from playhead.importing.formats import FORMATS, OTLP_PROTOBUF
from playhead.importing.limits import (
    MAX_DOCUMENT,
    MAX_FILE,
    MAX_NOTED,
    MAX_VALUES,
    SMALLER,
    Room,
    too_many_in_json,
    too_many_in_message,
)
from playhead.importing.readers import MORE_PAGES, NO_START, langfuse, otlp_json, otlp_protobuf, read_up_to, rows
from playhead.importing.values import HALVES, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from playhead.importing.readers import JsonFormat, Problems
    from playhead.importing.spans import ForeignSpan

JSON_FORMATS: Final = (otlp_json.FORMAT, rows.OPENINFERENCE, rows.PHOENIX_EXPORT, langfuse.FORMAT)
"""In the order in which a document is looked at."""
_OTHERS: Final = {
    b"(\xb5/\xfd": "it is compressed with zstd: decompress it first",
    b"PAR1": "it is a Parquet file: read it with pandas, and write it with to_json(orient='records', lines=True)",
    b'{"seq":0,': "it is a Playhead recording already: `playhead show` and the other commands take it by its path",
}
"""How files begin that are often taken for an export."""
STDIN: Final = "-"
"""The path of what comes in at stdin."""
_LOOKED_AT: Final = 20
"""Documents of a file that are looked at before it counts as of no format."""
_BLANK_LINES: Final = 10_000
"""Blank lines in a row, after which the rest of a file is not read as lines."""
_WITHOUT_SPANS: Final = 1000
"""Messages in a row without a span, after which a file is not taken for OTLP."""


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
    try:
        with _opened(path) as file:
            return _source(Source(path, ""), file, format_name, room or Room())
    except (OSError, EOFError, zlib.error) as error:
        raise NotImportableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except NotImportableError as error:
        raise NotImportableError(f"{path}: {error}") from None


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


def _source(source: Source, file: io.BufferedReader, format_name: str | None, room: Room) -> Source:
    head = file.peek(64)[:64]
    if not head:
        raise NotImportableError("it is empty")
    for beginning, what in _OTHERS.items():
        if head.startswith(beginning):
            raise NotImportableError(what)
    if format_name == OTLP_PROTOBUF or (format_name is None and not _looks_like_json(head)):
        _read_protobuf(file, source, room)
    else:
        _read_json(file, next((each for each in JSON_FORMATS if each.name == format_name), None), source, room)
    return source


def _read_protobuf(file: io.BufferedReader, source: Source, room: Room) -> None:
    source.format = OTLP_PROTOBUF
    without = 0
    for message in otlp_protobuf.messages(file):
        if too_many_in_message(message, otlp_protobuf.descriptor(), MAX_VALUES):
            raise NotImportableError(f"a message has more than {MAX_VALUES:,} values: {SMALLER}")
        known = len(source.spans)
        _take(otlp_protobuf.spans_of_message(message, source.problems), source, room)
        without = without + 1 if len(source.spans) == known else 0
        if without == _WITHOUT_SPANS:
            raise NotImportableError(f"it is no OTLP: {without:,} messages in a row hold no span")


def _read_json(file: io.BufferedReader, found: JsonFormat | None, source: Source, room: Room) -> None:
    """Read one document after the other; the first one that is of a known format says what they are."""
    problems, others = source.problems, 0
    first: Any = None
    for document in _documents(file, problems):
        found = found or next((each for each in JSON_FORMATS if each.fits(document)), None)
        if found is not None and found.fits(document):
            problems.pop(MORE_PAGES, None)  # the next page is this one
            _take(found.spans(document, problems), source, room)
            continue
        first, others = first if others else document, others + 1
        if others >= _LOOKED_AT and found is None:
            break
    if found is None:
        raise NotImportableError(
            f"no spans of a known format in it: it holds {_shown(first)}. Looked for: {'; '.join(FORMATS.values())}"
        )
    source.format = found.name
    problems.update({f"documents that are no {found.name}": others} if others else {})


def _take(spans: Iterable[ForeignSpan], source: Source, room: Room) -> None:
    for span in spans:
        room.take(span)
        source.spans.append(span)


def _looks_like_json(head: bytes) -> bool:
    """Tell text from protobuf, which too may begin with a line feed and a brace: its next bytes are no text."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] not in (b"{", b"["):
        return bool(start) and b"\0" not in head and head[:1] != b"\n" and head.isascii()
    return not (head[:1] == b"\n" and any(byte < 9 for byte in head))  # noqa: PLR2004 - control characters


def _documents(file: io.BufferedReader, problems: Problems) -> Iterator[Any]:
    """Yield the JSON values of a file: one for each line, or the whole of it."""
    lines = _lines(file, problems)
    first = next(lines, (0, b""))[1]
    parsed = _parsed(first, problems)
    if parsed is None:
        yield _whole(first + read_up_to(file, MAX_DOCUMENT + 1 - len(first)), problems)
        return
    yield parsed[0]
    del parsed, first
    for number, line in lines:
        document = _parsed(line, problems)
        if document is not None:
            yield document[0]
        else:
            where = f": line {number}" if sum(problems.values()) < MAX_NOTED else ""
            problems[f"lines that are no JSON, or too deep{where}"] += 1


def _lines(file: io.BufferedReader, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers, up to the place where a file is nothing but blank ones."""
    last = size = 0
    for number, line in enumerate(iter(lambda: file.readline(MAX_DOCUMENT), b""), 1):
        size += len(line)
        if size > MAX_FILE:
            raise NotImportableError(f"more than {MAX_FILE:,} bytes, unpacked; at most so many can be read")
        if line.strip():
            last = number
            yield number, line
        elif number - last == _BLANK_LINES:
            problems[f"{_BLANK_LINES:,} blank lines in a row: what stands behind line {number:,} is not read"] += 1
            return


def _parsed(line: bytes, problems: Problems) -> tuple[Any] | None:
    """Return the JSON value in a tuple, for it may be null; None when the line is none, or nested too deep."""
    _check(line)
    try:
        return (read_json(line, problems),)
    except ValueError:
        return None


def _whole(content: bytes, problems: Problems) -> Any:  # noqa: ANN401 - any JSON value
    if len(content) > MAX_DOCUMENT:
        raise NotImportableError(
            f"one JSON document of more than {MAX_DOCUMENT:,} bytes, which is what can be read at once: export lines"
        )
    _check(content)
    try:
        return read_json(content, problems)
    except ValueError as error:
        raise NotImportableError(f"it is neither JSON nor JSON lines nor OTLP protobuf ({str(error)[:100]})") from None


def _check(content: bytes) -> None:
    """Refuse what would take too much memory once it is parsed."""
    if too_many_in_json(content, MAX_VALUES):
        raise NotImportableError(
            f"one JSON document of it has more than {MAX_VALUES:,} values: write it as lines, or {SMALLER}"
        )


def _shown(document: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return what a document holds, in a few words."""
    document = document[0] if isinstance(document, list) and document else document
    if isinstance(document, dict):
        return f"an object with {', '.join(sorted(str(name)[:40] for name in islice(document, 1000))[:8])}"
    return "an empty list" if document == [] else f"{document!r:.80}"
