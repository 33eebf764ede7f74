"""Writes a run's file: one line per event, acknowledged when the operating system has taken the whole line.

The file is created with its first line, so a process that dies before its first event leaves no file.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, ParamSpec, TypeVar

from playhead.errors import TraceExistsError
from playhead.trace.blobs import BLOB_BYTES, BlobFolder, create_file, sync_folder, write_all
from playhead.trace.line import TORN, encode_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

P = ParamSpec("P")
T = TypeVar("T")
Durability = Literal["write", "group", "fsync"]
"""What survives a crash. `write`: all events, if only the process crashes. `group`: if the machine crashes, all events up to
`GROUP_S` seconds earlier. `fsync`: all events, even if the machine crashes."""

GROUP_S: Final = 0.1
"""Seconds from an event to the sync that covers it under `durability="group"`."""

_END: Final = "run-completed"
_fdatasync: Final = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
named_tuple: Final = tuple.__new__
"""Creates a named tuple without calling its own `__new__`, which is slow because it is written in Python."""


class Written(NamedTuple):
    """The envelope of a written event; `ok` is False when its line is not safely in the file.

    `seq` is -1 when the event got no number: it came after the end of the run, or from a forked child process.
    """

    seq: int
    ts: int
    h: str
    ok: bool


class Tail(NamedTuple):
    """The end of the file. It is replaced as a whole, so that a raising signal handler never leaves it half updated."""

    seq: int = 0
    """The number of the next event."""
    h: str = ""
    """The hash of the last complete line."""
    size: int = 0
    """Size of the file in bytes; 0 when there is no file."""
    lost: int = 0
    """Number of events that could not be written."""
    torn: bool = False
    """Whether the last line is incomplete."""
    ended: bool = False
    """Whether the last line is `run-completed`."""


class TraceWriter:
    """Appends events to one trace file, from any thread.

    An event that cannot be written is lost and counted: its `seq` is missing from the file, and the next event starts on a
    new line. After a fork, only the parent writes. Nothing is written after `run-completed` or `close`. A signal handler
    may raise while the writer runs, but must not call the writer, because it may have interrupted the writing thread.
    """

    def __init__(self, path: Path, now_us: Callable[[], int], durability: Durability = "write") -> None:
        """Prepare to write a file that only its owner can read; `append` creates it.

        Raises:
            TraceExistsError: a trace with this run id exists.
            OSError: no file can be created in the folder.
        """
        self.path = path
        self.error: Exception | None = None
        """The first error from writing, syncing or closing."""
        self._now_us = now_us
        self._durability = durability
        self._blobs = BlobFolder(path)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()  # separate, so that a slow disk delays the next sync but not the next event
        self._sync_timer: threading.Timer | None = None
        self._ts = 0
        self.tail = Tail()
        """The end of the file."""
        self._in_flight: Tail | None = None
        self._descriptor: int | None = None
        self._state: Literal["new", "open", "closed"] = "new"
        if os.path.lexists(path):
            raise TraceExistsError(_exists(path))
        os.stat(os.path.join(path.parent, "."))  # noqa: PTH116, PTH118 - pathlib would drop the dot, which requires a folder
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))

    def append(self, kind: str, owner: str, iteration: int | None, data: bytes) -> Written:
        """Write one event whose fields are the JSON object `data`.

        Raises:
            TraceExistsError: this is the first event, and another writer created the file. No other error is raised.
        """
        if os.getpid() != self._pid:  # before the lock: another thread of the parent may have held it at the fork
            return Written(-1, self._now_us(), "", ok=False)
        if len(data) > BLOB_BYTES:
            data = self._guarded(self._blobs.store_large, data) or b""
        with self._lock:
            if self._in_flight is not None:
                self._settle()
            self._ts = now = max(self._now_us(), self._ts)
            if self.tail.ended or self._state == "closed":
                return Written(-1, now, "", ok=False)
            return self._write(kind, owner, iteration, data)

    def close(self) -> None:
        """Sync and close the file; nothing is written afterwards. A second close does nothing."""
        if os.getpid() != self._pid:
            return
        with self._sync_lock, self._lock:
            self._settle()
            self._state = "closed"
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                self._sync(descriptor)
                self._guarded(os.close, descriptor)
            timer, self._sync_timer = self._sync_timer, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def _write(self, kind: str, owner: str, iteration: int | None, data: bytes) -> Written:
        seq, previous, size, lost, torn, _ = tail = self.tail
        try:
            content, h = encode_line(seq, self._ts, kind, owner, iteration, data, previous)
        except Exception as error:  # noqa: BLE001 - an event that cannot be written must not end the run
            self._note(error)
            data = b""
        descriptor, ts = self._descriptor, self._ts
        if not data or (descriptor is None and self._state == "open"):
            self.tail = tail._replace(seq=seq + 1, lost=lost + 1)
            return Written(seq, ts, "", ok=False)
        if torn:
            content = TORN + b"\n" + content
        self._in_flight = whole = named_tuple(Tail, (seq + 1, h, size + len(content), lost, False, kind == _END))
        try:
            if descriptor is None:
                self._begin(content)
            else:
                write_all(descriptor, content)
        except OSError as error:
            self._note(error)
            self._settle()
            return Written(seq, ts, "", ok=False)
        self.tail, self._in_flight = whole, None
        if self._durability != "write" and not self._sync_as_asked():
            return Written(seq, ts, "", ok=False)
        return named_tuple(Written, (seq, ts, h, True))

    def _begin(self, content: bytes) -> None:
        """Create the file with its first line.

        Raises:
            TraceExistsError: another writer has created it.
            OSError: it cannot be created or written.
        """
        self._state = "open"
        try:
            self._descriptor = create_file(self.path, content)
        except FileExistsError:
            self._state, self._in_flight = "closed", None
            raise TraceExistsError(_exists(self.path)) from None

    def _settle(self) -> None:
        """Find out whether an interrupted write reached the file, after an error or an exception from a signal handler."""
        whole, self._in_flight = self._in_flight, None
        tail = self.tail
        if whole is None or whole is tail:
            return
        found = self._guarded(self._actual_size)
        size, torn = whole.size if found is None else found, tail.torn or found != tail.size
        lost = tail._replace(seq=whole.seq, lost=tail.lost + 1, torn=torn, size=size)
        self.tail = whole if found == whole.size else lost

    def _actual_size(self) -> int:
        return os.fstat(self._descriptor).st_size if self._descriptor is not None else 0

    def _sync_as_asked(self) -> bool:
        descriptor = self._descriptor
        if descriptor is None:
            return True
        if self.tail.seq == 1:  # the first event: its file is new
            self._guarded(sync_folder, self.path.parent)
        if self._durability == "fsync":
            return self._sync(descriptor)
        if self._durability == "group" and self._sync_timer is None:
            self._sync_timer = threading.Timer(GROUP_S, self._sync_group)
            self._sync_timer.daemon = True
            self._guarded(self._sync_timer.start)
        return True

    def _sync_group(self) -> None:
        with self._sync_lock:
            with self._lock:
                self._sync_timer = None
                descriptor = self._descriptor
            if descriptor is not None:
                self._sync(descriptor)

    def _sync(self, descriptor: int) -> bool:
        try:
            self._blobs.sync()
            _fdatasync(descriptor)
        except OSError as error:
            self._note(error)
            return False
        return True

    def _guarded(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - an error of the trace must not fail the run
            self._note(error)
            return None

    def _note(self, error: Exception) -> None:
        if self.error is None:
            self.error = error


def _exists(path: Path) -> str:
    return f"{path} exists: a run of this id has been or is being written"
