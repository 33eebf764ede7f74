"""Reads a run's records from its file, even while it is being written."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError, TraceNotFoundError
from playhead.trace.events import RunCompleted
from playhead.trace.reader import Following, Problem, open_trace
from playhead.trace.store import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.trace.line import Record


class TraceSource:
    """Reads a run's file as it grows. The file is closed between reads, because an agent needs the descriptors."""

    def __init__(self, path: Path, ended: Callable[[], bool] | None = None) -> None:
        """Read a trace.

        Args:
            path: the file.
            ended: returns whether the run has ended, for a file without `run-completed`; None: use the run's lock.

        Raises:
            TraceNotFoundError: the file does not exist, or cannot be read.
        """
        self._has_ended = ended or (lambda: is_over(path))
        self._file = _TraceFile(path)
        self._lines = Following(path, self._file)
        self._end_is_read = False
        self.over = False
        """Whether the run has ended and its file was read to the end."""
        self.problems: list[Problem] = []
        """Problems of the file; at most 1,000."""

    def new(self) -> Iterator[Record]:
        """Yield the records of the new complete lines; raises like `playhead.trace.reader.scan`."""
        ended = self._end_is_read or self._has_ended()  # before reading, so that all lines written until then are read
        yield from self._records(self._lines.new())
        if self._file.failure is not None:
            raise self._file.failure
        if (ended or self._end_is_read) and not self.over:
            self.over = True
            yield from self._records(self._lines.ending())

    def _records(self, items: Iterator[Record | Problem]) -> Iterator[Record]:
        for item in items:
            if isinstance(item, Problem):
                self.problems.append(item)
                continue
            if isinstance(item.event, RunCompleted) and item.owner == "root":
                self._end_is_read = True
            yield item


class _TraceFile(io.BufferedIOBase):
    """A growing trace. Each read opens the file; an error is kept in `failure`."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self.failure: PlayheadError | None = None
        self._identity: tuple[int, int] | None = None
        self._read(0)

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        try:
            content = self._read(size)
        except PlayheadError as error:
            self.failure, content = error, b""
        self._offset += len(content)
        return content

    def _read(self, size: int) -> bytes:
        with open_trace(self._path) as file:
            status = os.fstat(file.fileno())
            identity = status.st_dev, status.st_ino
            if self._identity not in (None, identity):
                raise TraceNotFoundError(f"{self._path} is another file now than the one that was read")
            self._identity = identity
            file.seek(self._offset)
            return file.read(size)


# --- whether a run whose trace has no end is still running ------------------------------------------------------------


def is_over(path: Path, *, assume_dead: bool = False) -> bool:
    """Return whether a run has ended; `assume_dead`: the result when this machine cannot tell."""
    alive = is_alive(path)
    return alive is False or (alive is None and assume_dead)
