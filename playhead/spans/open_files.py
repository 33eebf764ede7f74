"""A few open files for any number of traces: one that is read on is opened again, where it was left."""

from __future__ import annotations

import io
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import PlayheadError, TraceNotFoundError
from playhead.trace.reader import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_OPEN: Final = 16
"""Files that are open at once. A process may often have no more than 256 in all, and its agents need them."""


class _Opened(NamedTuple):
    file: io.BufferedIOBase
    close: Callable[[], None]


class OpenFiles:
    """Closes the file that was not read for longest when another one is opened. For one thread."""

    def __init__(self, at_most: int = MAX_OPEN) -> None:
        self._at_most = at_most
        self._opened: dict[TraceFile, _Opened] = {}  # what was read last stands last

    def of(self, trace: TraceFile) -> io.BufferedIOBase:
        """Return a trace's file at the place where it was left; raises like `open_trace`."""
        opened = self._opened.pop(trace, None)
        if opened is None:
            while len(self._opened) >= self._at_most:
                self.close(next(iter(self._opened)))
            opened = trace.open()
        self._opened[trace] = opened
        return opened.file

    def close(self, trace: TraceFile) -> None:
        """Close a trace's file, if it is open."""
        opened = self._opened.pop(trace, None)
        if opened is not None:
            opened.close()


class TraceFile(io.BufferedIOBase):
    """A trace that is read as it grows, and need not be open in between."""

    def __init__(self, path: Path, files: OpenFiles) -> None:
        """Open a trace; raises like `open_trace`."""
        self._path, self._files = path, files
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self._failure: PlayheadError | None = None
        files.of(self)

    def read1(self, size: int = -1, /) -> bytes:
        """Return what comes next; nothing when it cannot be opened again, for which see `raise_failure`."""
        try:
            file = self._files.of(self)
        except PlayheadError as error:
            self._failure = error
            return b""
        content = file.read1(size)
        self._offset += len(content)
        return content

    def raise_failure(self) -> None:
        """Raise why it could not be opened again, if that was so."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def rest(self) -> None:
        """Be closed until it is read on."""
        self._files.close(self)

    def close(self) -> None:
        """Close it for good."""
        self.rest()
        super().close()

    def open(self) -> _Opened:
        """Open it where it was left; raises like `open_trace`, and when another file has its name by now."""
        with ExitStack() as stack:
            file = stack.enter_context(open_trace(self._path))
            status = os.fstat(file.fileno())
            identity = status.st_dev, status.st_ino
            if self._identity not in (None, identity):
                raise TraceNotFoundError(f"{self._path} is another file now than the one that was read")
            self._identity = identity
            if self._offset:
                file.seek(self._offset)
            return _Opened(file, stack.pop_all().close)
