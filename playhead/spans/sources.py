"""Where the records of a run come from: its file, also while it is written, or, of a run without one, a queue."""

from __future__ import annotations

import io
import os
import time
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError, RunIdError, TraceNotFoundError
from playhead.trace.events import RunCompleted
from playhead.trace.reader import Following, Problem, open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from playhead.trace.control import Control
    from playhead.trace.line import Record

MAX_QUEUED: Final = 5_000
"""Events of a run without a file that wait; what comes then is lost, and counted."""
SILENT_S: Final = 600.0
"""Seconds without a word in its trace after which a run of another machine is over, if nobody holds its lock. A call of a
model ends by then; and what goes on after all sends its spans when they close."""


class TraceSource:
    """A run's file, read as far as it is written. The trace is the source: what waits in it is not in memory."""

    def __init__(self, path: Path, ended: Callable[[], bool] | None = None) -> None:
        """Read a trace.

        Args:
            path: the file.
            ended: says whether a run whose end is not in the file has ended all the same; None: its lock does.

        Raises:
            TraceNotFoundError: there is no such file, or it cannot be read.
        """
        self._is_over = ended or (lambda: is_over(path))
        self._file = _TraceFile(path)
        self._lines = Following(path, self._file)
        self._ended = False
        self.lost = 0
        self.over = False
        """Whether everything was read that will ever be there."""
        self.problems: list[Problem] = []
        """What is wrong with the file; at most 1,000."""

    def new(self) -> Iterator[Record]:
        """Yield the records of the lines that are whole by now; raises like `playhead.trace.reader.scan`."""
        over = self._ended or self._is_over()  # asked before: what is written until then is read
        yield from self._records(self._lines.new())
        if self._file.failure is not None:
            raise self._file.failure
        if (over or self._ended) and not self.over:
            self.over = True
            self.rest()
            yield from self._records(self._lines.ending())

    def rest(self) -> None:
        """Hold no file open until it is read on: an agent needs the descriptors of its process."""
        self._file.rest()

    def _records(self, items: Iterator[Record | Problem]) -> Iterator[Record]:
        for item in items:
            if isinstance(item, Problem):
                self.problems.append(item)
                continue
            if isinstance(item.event, RunCompleted) and item.owner == "root":
                self._ended = True
            yield item


class _TraceFile(io.BufferedIOBase):
    """A trace that is read as it grows, and need not be open in between."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._identity: tuple[int, int] | None = None
        self.failure: PlayheadError | None = None
        """Why it could not be opened again."""
        self._opened = ExitStack()
        self._file: io.BufferedIOBase | None = None
        self._open()

    def read1(self, size: int = -1, /) -> bytes:
        """Return what comes next; nothing when it cannot be opened again."""
        try:
            file = self._file or self._open()
        except PlayheadError as error:
            self.failure = error
            return b""
        content = file.read1(size)
        self._offset += len(content)
        return content

    def rest(self) -> None:
        """Be closed until it is read on."""
        self._file = None
        self._opened.close()

    def close(self) -> None:
        """Close it for good."""
        self.rest()
        super().close()

    def _open(self) -> io.BufferedIOBase:
        """Open it where it was left; raises like `open_trace`, and when another file has its name by now."""
        file = self._opened.enter_context(open_trace(self._path))
        status = os.fstat(file.fileno())
        identity = status.st_dev, status.st_ino
        if self._identity not in (None, identity):
            raise TraceNotFoundError(f"{self._path} is another file now than the one that was read")
        self._identity = identity
        if self._offset:
            file.seek(self._offset)
        self._file = file
        return file


class QueueSource:
    """The records of a run that no file holds: some wait here, and what does not fit in is lost and counted."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        """Begin with nothing; `is_over` says whether the run has ended."""
        self._records: deque[Record] = deque()
        self._is_over = is_over
        self.next_seq = 0
        """The number of the event that comes next."""
        self.problems: Sequence[Problem] = ()
        self.lost = 0
        """Events that did not fit in. What came before the first of them is delivered, nothing after it."""

    def put(self, record: Record) -> None:
        """Take one more record, from the agent's side."""
        self.next_seq = record.seq + 1
        if self.lost or len(self._records) >= MAX_QUEUED:
            self.lost += 1
        else:
            self._records.append(record)

    def new(self) -> Iterator[Record]:
        """Yield what is in the queue."""
        while self._records:
            yield self._records.popleft()

    @property
    def over(self) -> bool:
        """Whether everything was yielded that will ever come."""
        return (self._is_over() or self.lost > 0) and not self._records

    def rest(self) -> None:
        """Do nothing: there is no file."""


Source = TraceSource | QueueSource
"""Where the records of a run come from."""


# --- whether a run whose trace has no end goes on ---------------------------------------------------------------------


def is_over(path: Path, *, assume_dead: bool = False) -> bool:
    """Return whether nothing more comes; `assume_dead`: also when that cannot be seen from here."""
    return not is_running(path) and (assume_dead or perhaps_on(path) is None)


def is_running(path: Path) -> bool:
    """Return whether a run goes on for certain: its process, wherever it is, holds the lock."""
    control = _control_of(path)
    return control is not None and control.held


def perhaps_on(path: Path) -> str | None:
    """Return the other machine on which a run may go on, as it calls itself; None when it does not, or the lock tells.

    A lock is not seen on every machine that sees the file, and a container that starts again has another name. So one
    that was silent for `SILENT_S` is over.
    """
    control = _control_of(path)
    if control is None or control.process.host == os.uname().nodename or control.held:
        return None
    return control.process.host if silent_s(path) < SILENT_S else None


def silent_s(path: Path) -> float:
    """Return the seconds since something was written into a trace."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return SILENT_S


def _control_of(path: Path) -> Control | None:
    try:
        from playhead.trace.control import Control  # noqa: PLC0415 - not on Windows, where nothing is known of it

        return Control.of(path)
    except (ImportError, RunIdError):
        return None
