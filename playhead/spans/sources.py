"""The trace of a run that may still be running: its file as it grows, and whether the run is over."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError, TraceNotFoundError
from playhead.trace.reader import open_trace
from playhead.trace.store import is_alive

if TYPE_CHECKING:
    from pathlib import Path


class GrowingFile(io.BufferedIOBase):
    """A growing trace. It is closed between reads, because an agent needs the descriptors; an error is kept in `failure`."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._identity: tuple[int, int] | None = None
        self.failure: PlayheadError | None = None

    def read1(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        try:
            with open_trace(self._path) as file:
                status = os.fstat(file.fileno())
                identity = status.st_dev, status.st_ino
                if self._identity not in (None, identity):
                    raise TraceNotFoundError(f"{self._path} is another file now than the one that was read")
                self._identity = identity
                file.seek(self._offset)
                content = file.read(size)
        except PlayheadError as error:
            self.failure, content = error, b""
        self._offset += len(content)
        return content


def is_over(path: Path, *, assume_dead: bool = False) -> bool:
    """Return whether a run has ended; `assume_dead`: the result when this machine cannot tell."""
    alive = is_alive(path)
    return alive is False or (alive is None and assume_dead)
