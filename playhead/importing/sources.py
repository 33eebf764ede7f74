"""Reads a file of spans: its format, its spans, and the parts that cannot be read."""

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

from playhead.errors import NotImportableError
from playhead.importing.limits import MAX_FILE, SMALLER, Quota
from playhead.importing.otlp import (
    MORE_PAGES,
    NO_START,
    OTLP_JSON,
    OTLP_PROTOBUF,
    is_otlp,
    spans_of_json,
    spans_of_message,
)
from playhead.importing.values import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.importing.otlp import ForeignSpan, Problems

STDIN: Final = "-"
"""The path of standard input."""
_NEITHER: Final = "it is neither OTLP JSON nor OTLP protobuf (with Phoenix and Langfuse, export OTLP)"
_PIECE: Final = 1 << 20


@dataclass
class Source:
    """The spans of one file."""

    path: Path
    format: str = ""
    spans: list[ForeignSpan] = field(default_factory=list)
    problems: Problems = field(default_factory=Counter)
    """Number of left-out parts, by reason."""

    @property
    def is_partial(self) -> bool:
        """Whether a missing part may belong to a run."""
        return any(count and why not in (NO_START, MORE_PAGES) for why, count in self.problems.items())

    @property
    def is_followed(self) -> bool:
        """Whether its last document is an API page that names a next page."""
        return self.problems[MORE_PAGES] > 0


def read_source(path: Path, quota: Quota | None = None) -> Source:
    """Read all spans of a file; the format is detected from the content.

    Args:
        path: the file, or a named pipe, plain or compressed with gzip; `-` is standard input.
        quota: the limits of files that are imported together; None: limits for this one.

    Raises:
        NotImportableError: it cannot be read, contains no spans of a known format, or is too large.
        MissingDependencyError: it is protobuf, which is not installed.
    """
    source, quota = Source(path), quota or Quota()
    try:
        with _opened(path) as file:
            source.spans += _spans(_read(file), source, quota)
    except (OSError, EOFError, zlib.error) as error:
        raise NotImportableError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except NotImportableError as error:
        raise NotImportableError(f"{path}: {error}") from None
    return source


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, a pipe or standard input, and decompress gzip; nothing is read twice."""
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


def _spans(content: bytes, source: Source, quota: Quota) -> Iterator[ForeignSpan]:
    """Yield the spans of a file; documents that are not OTLP are counted."""
    if not content:
        raise NotImportableError("it is empty")
    if content.startswith(b"\n"):  # the first field of a request; JSON begins otherwise
        source.format = OTLP_PROTOBUF
        yield from spans_of_message(content, source.problems, quota)
        return
    quota.add_json(content)
    others = 0
    for document in _documents(content, source.problems):
        if not is_otlp(document):
            others += 1
            continue
        source.format = OTLP_JSON
        source.problems.pop(MORE_PAGES, None)  # the next page is this one
        yield from spans_of_json(document, source.problems)
    if not source.format:
        raise NotImportableError(_NEITHER)
    source.problems.update({"documents that are not OTLP": others} if others else {})


def _read(file: io.BufferedReader) -> bytes:
    """Return the content of a file; memory grows only with its actual size."""
    pieces = iter(lambda: file.read(_PIECE), b"")
    content = b"".join(islice(pieces, MAX_FILE // _PIECE + 1))
    if len(content) > MAX_FILE:
        raise NotImportableError(f"it has more than {MAX_FILE:,} bytes: {SMALLER}")
    return content


def _documents(content: bytes, problems: Problems) -> Iterator[Any]:
    """Yield the JSON values of a file: one for the whole file, or one per line."""
    try:
        yield read_json(content)
    except ValueError:
        for line in content.splitlines():
            if line.strip():
                try:
                    yield read_json(line)
                except ValueError:
                    problems["lines that are not JSON"] += 1
