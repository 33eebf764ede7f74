"""Reads a trace as a stream and verifies it line by line. Malformed content becomes a `Problem`, never an exception."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic_core import from_json

from playhead.errors import MissingBlobError, MissingDependencyError, NotATraceError, TraceNotFoundError
from playhead.trace.blobs import BlobFolder
from playhead.trace.events import Erased, RunCompleted
from playhead.trace.format import require_format
from playhead.trace.line import ENVELOPE, HASH_TAIL, TAIL, TORN, Record, decode_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.events import EventBase

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of a line; events are far shorter, and a hostile file must not fill the memory."""
CHUNK: Final = 1024 * 1024
"""Bytes read at a time."""
MAX_PROBLEMS: Final = 1000
"""Malformed or misplaced lines after which reading stops, because scanning junk must not take minutes."""
_tuple: Final = tuple.__new__
"""Creates a named tuple without calling its own `__new__`, which is slow because it is written in Python."""
_OF_ONE_EVENT: Final = frozenset({"blob", "erased", "lost-events"})
"""Problems that leave the events after them trustworthy."""

_LAST: Final = frozenset({b"run-completed", b"erased"})
"""Kinds that end a file."""
_FIRST_LINE: Final = re.compile(rb'\{"seq":\d+,"ts":\d+,"kind":"')

ProblemKind = Literal[
    "truncated", "bad-line", "chain", "gap", "duplicate", "reordered", "after-end", "blob", "lost-events", "erased"
]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a trace, and where."""

    kind: ProblemKind
    """`truncated`: the last line is incomplete. `lost-events`: the writer could not write events; the hash chain shows that
    nobody removed them. The rest of the file is sound in both cases. `blob`: a value is missing. `erased`: content was
    erased on request, and an event records the erasure. All other kinds mean damage."""
    line: int
    """Line number, from 1."""
    message: str
    """The problem."""
    events: int = 0
    """Events that are missing here, for `lost-events` and `gap`."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"line {self.line}: {self.kind}: {self.message}"


def scan(path: Path) -> Iterator[Record | Problem]:
    """Yield every event of a trace, and every problem in its place; stop after `MAX_PROBLEMS`.

    Raises:
        TraceNotFoundError: there is no such file, or it cannot be read.
        NotATraceError: it does not start with an event.
        TraceFormatError: it has another major format.
    """
    with open_trace(path) as file:
        reading = Following(path, file)
        yield from reading.new()
        yield from reading.ending()


def open_trace(path: Path) -> io.BufferedIOBase:
    """Open a trace for reading, plain or compressed.

    Raises:
        TraceNotFoundError: it cannot be opened.
        MissingDependencyError: no installed library reads its compression.
    """
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rb")
        if path.suffix == ".zst":
            return zstd().open(path, "rb")  # type: ignore[no-any-return]
        return io.BufferedReader(io.FileIO(path))
    except FileNotFoundError:
        raise TraceNotFoundError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise TraceNotFoundError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def zstd() -> Any:  # noqa: ANN401 - a module
    """Return the module that reads and writes Zstandard; raises `MissingDependencyError`."""
    for name in ("compression.zstd", "backports.zstd"):  # of Python 3.14, or of an extra
        with suppress(ImportError):
            return import_module(name)
    raise MissingDependencyError("reading .zst traces needs: pip install 'playhead[zstd]'")


class Lines:
    """The complete lines of an open trace, without newlines, and the bytes after the last one."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self.rest = b""
        """Bytes after the last newline; at the end of the file, the incomplete last line."""
        self.broken = ""
        """Why reading stopped before the end of the file: the compressed data are damaged or cut off."""

    def __iter__(self) -> Iterator[bytes]:
        while (chunk := self._read()) and len(self.rest) < MAX_LINE:
            if b"\n" not in chunk:
                self.rest += chunk
                continue
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            yield from lines

    def _read(self) -> bytes:
        try:
            return self._file.read1(CHUNK)
        except Exception as error:  # noqa: BLE001 - each compression library raises its own errors
            self.broken = str(error) or type(error).__name__
            return b""


class Following:
    """Reads a trace while it is being written: first its current events, then those appended later."""

    def __init__(self, path: Path, file: io.BufferedIOBase) -> None:
        """Read the open trace `file`; the methods raise like `scan`."""
        self._lines = Lines(file)
        self._name = path.name
        self._blobs = BlobFolder(path)
        self._number = 0
        self._previous = b""
        self._next_seq = 0
        self._seen = -1
        self._lost = 0
        self._ended = False
        self._erased: dict[int, tuple[str, str]] = {}  # the hash of the line before, and the one of what is left
        self._erasures: dict[int, str | None] = {}
        self._problems: list[Problem] = []  # not yielded yet
        self._damage = 0
        self._has_unread = False

    def new(self) -> Iterator[Record | Problem]:
        """Yield the events appended since the last call; an incomplete last line is left for the next call."""
        for line in self._lines:
            if self._damage >= MAX_PROBLEMS:
                self._has_unread = True
                return
            if not self._number:
                _require_trace(line, self._name)
            self._number += 1
            record = self._read(line)
            if self._problems:
                yield from self._pop_problems()
            if record is not None:
                yield record

    def ending(self) -> Iterator[Record | Problem]:
        """Yield the problems at the end of the file; call it once the run has ended."""
        if unexplained := ", ".join(map(str, sorted(self._erased.keys() - self._erasures.keys())[:10])):
            self._add("chain", f"no event records the erasure of content in event {unexplained}")
        for seq, kept in self._erasures.items():
            if kept is not None and kept != self._erased.get(seq, ("", kept))[1]:
                self._add("chain", f"event {seq} is not what its erasure left")
        if self._has_unread:
            self._add("bad-line", f"{MAX_PROBLEMS:,} problems up to here: the rest is not read")
        elif self._lines.rest or self._lines.broken:
            self._add_cut_off()
        elif not self._number:
            raise NotATraceError(f"{self._name} is empty")
        yield from self._pop_problems()

    def _read(self, line: bytes) -> Record | None:
        """Return the event of a line, and note its problems."""
        match = ENVELOPE.match(line)
        h = hashlib.sha256(self._previous + line[:-TAIL]).hexdigest()
        is_intact = line.endswith(b',"h":"%b"}' % h.encode())
        if match is None or not (is_intact or HASH_TAIL.fullmatch(line, len(line) - TAIL)):
            self._add_malformed(line)
            return None
        number, ts, kind, quoted, iteration, is_erased = match.groups()
        seq = int(number)
        if is_erased:
            self._erased[seq] = self._previous.decode(), h
            self._add("erased", f"content of event {seq} was erased")
        elif not is_intact:
            self._add("chain", f"event {seq} or the line before it is not what was written")
        self._previous = line[-66:-2]
        if seq != self._next_seq:
            self._add_disorder(seq, is_intact=is_intact)
        self._seen, self._next_seq = seq, max(self._next_seq, seq + 1)
        try:
            event = decode_data(kind, line[match.end() : -TAIL], self._blobs.resolve)
            owner = "root" if quoted == b'"root"' else from_json(quoted)
        except (MissingBlobError, ValueError) as error:
            self._add("blob" if isinstance(error, MissingBlobError) else "bad-line", str(error))
            return None
        if self._ended or kind in _LAST:
            self._check_end(seq, event)
        turn = None if iteration is None else int(iteration)
        return _tuple(Record, (seq, int(ts), owner, turn, event, self._previous.decode()))

    def _add_malformed(self, line: bytes) -> None:
        if line.endswith(TORN):
            self._add("lost-events", "a part of an event that could not be written whole")
        else:
            self._add("bad-line", "it is not in the form of a trace event")

    def _add_disorder(self, seq: int, *, is_intact: bool) -> None:
        missing = seq - self._next_seq
        if seq == self._seen:
            self._add("duplicate", f"event {seq} appears here again")
        elif missing < 0:
            self._add("reordered", f"event {seq} comes after event {self._next_seq - 1}")
        elif is_intact:  # only the writer itself can skip events and still continue the chain
            self._lost += missing
            self._add("lost-events", f"{missing} events before event {seq} could not be written", missing)
        else:
            self._add("gap", f"{missing} events are missing before event {seq}", missing)

    def _check_end(self, seq: int, event: EventBase) -> None:
        if isinstance(event, Erased):
            for line in event.lines:
                self._erasures[line.seq] = line.kept
                if self._erased.get(line.seq, (None, ""))[0] != line.previous:
                    self._add("chain", f"event {line.seq} or a line before it is not what it was at the erasure")
        elif self._ended:
            self._add("after-end", f"event {seq} comes after the end of the run")
        if isinstance(event, RunCompleted):
            self._ended = True
            more = event.lost_events - self._lost
            if more > 0:  # events that could not even be redacted get no number
                self._add("lost-events", f"{more} more events could not be written", more)

    def _add_cut_off(self) -> None:
        rest = self._lines.rest
        if not self._number:
            reason = self._lines.broken or "it was cut within its first line"
            raise NotATraceError(f"{self._name} is not a trace that can be read: {reason}")
        self._number += 1
        if len(rest) >= MAX_LINE:
            self._add("bad-line", f"it is longer than {MAX_LINE} bytes")
        elif self._lines.broken:
            self._add("truncated", f"the compressed data end here: {self._lines.broken}")
        else:
            self._add("truncated", f"it ends after {len(rest)} bytes without a newline")

    def _add(self, kind: ProblemKind, message: str, events: int = 0) -> None:
        self._damage += kind not in _OF_ONE_EVENT
        self._problems.append(Problem(kind, self._number, message, events))

    def _pop_problems(self) -> list[Problem]:
        problems, self._problems = self._problems, []
        return problems


def _require_trace(line: bytes, name: str) -> None:
    """Refuse a file that is not a trace, or has another major format, before reading the rest of it."""
    require_format(name, line)
    if not _FIRST_LINE.match(line) and not line.endswith(TORN):
        raise NotATraceError(f"{name} is not a Playhead trace: its first line is not an event")
