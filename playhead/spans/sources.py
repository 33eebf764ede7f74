"""Where the records of a run come from: its file, also while it is written, or, of a run without one, a queue."""

from __future__ import annotations

import errno
import os
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from playhead.errors import TraceError
from playhead.spans.open_files import OpenFiles, TraceFile
from playhead.spans.running import is_over
from playhead.trace.events import RunCompleted
from playhead.trace.reader import Following, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from playhead.trace.line import Record

MAX_QUEUED: Final = 5_000
"""Events of a run without a file that wait; what comes then is lost, and counted."""
_FOR_NOW: Final = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EINTR,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
"""What a system says when something cannot be done now, and may be later."""


class Source(Protocol):
    """A run's records, as they come."""

    lost: int
    """Events that will never come."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the file, as far as it was read."""
        ...

    def new(self) -> Iterator[Record]:
        """Yield what has come since the last time; may be called again when it has ended, not when it has raised."""
        ...

    @property
    def over(self) -> bool:
        """Whether everything was yielded that will ever come."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class TraceSource:
    """A run's file, read as far as it is written. The trace is the source: what waits in it is not in memory."""

    def __init__(self, path: Path, ended: Callable[[], bool] | None = None, files: OpenFiles | None = None) -> None:
        """Read a trace.

        Args:
            path: the file.
            ended: says whether a run whose end is not in the file has ended all the same; None: its lock does.
            files: those among which this one is open.

        Raises:
            TraceNotFoundError: there is no such file, or it cannot be read.
        """
        self._is_over = ended or (lambda: is_over(path))
        self._file = TraceFile(path, files or OpenFiles())
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
        self._file.raise_failure()
        if (over or self._ended) and not self.over:
            self.over = True
            self._file.rest()
            yield from self._records(self._lines.ending())

    def close(self) -> None:
        """Let go of the file."""
        self._lines.close()

    def _records(self, items: Iterator[Record | Problem]) -> Iterator[Record]:
        for item in items:
            if isinstance(item, Problem):
                _raise_for_now(item)
                self.problems.append(item)
                continue
            if isinstance(item.event, RunCompleted) and item.owner == "root":
                self._ended = True
            yield item


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

    def close(self) -> None:
        """Forget what is in the queue."""
        self._records.clear()


def is_for_now(error: BaseException) -> bool:
    """Return whether what could not be read may be readable later: files, memory or the disk are used up just now."""
    cause = error.__context__ if isinstance(error, TraceError) else error
    return isinstance(cause, OSError) and cause.errno in _FOR_NOW


def _raise_for_now(problem: Problem) -> None:
    """Raise what kept a part of a sound file from being read, when it may be readable later."""
    if problem.kind in {"blob", "truncated"}:
        for code in _FOR_NOW:
            if os.strerror(code) in problem.message:
                raise OSError(code, problem.message)
