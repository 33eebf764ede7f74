"""The file of a run: one line per event, acknowledged when the whole line has been handed to the system.

There is no file before there is an event: it is made with its first line, so that a process that dies before leaves none.
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
"""What survives: `write` a crash of the process, `group` one of the machine up to `GROUP_S` before it, `fsync` all."""

GROUP_S: Final = 0.1
"""Seconds from an event to the sync that covers it under `durability="group"`."""

_END: Final = "run-completed"
_fdatasync: Final = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
_tuple: Final = tuple.__new__
"""Makes a named tuple without its own `__new__`, which is Python: an event makes two."""


class Written(NamedTuple):
    """The envelope that an event got; `ok` is False when its line is not safely where it belongs.

    `seq` is -1 when the event got no place: it came after the end of the run, or from the child of a fork.
    """

    seq: int
    ts: int
    h: str
    ok: bool


class Tail(NamedTuple):
    """Where a file ends. Replaced as a whole, so a signal handler that raises never leaves it half changed."""

    seq: int = 0
    """The number of the next event."""
    h: str = ""
    """The hash of the last whole line."""
    size: int = 0
    """Bytes so far; 0 when there is no file."""
    lost: int = 0
    """Events that are not in the file."""
    torn: bool = False
    """Whether the last line is only a part of one."""
    ended: bool = False
    """Whether the last line is the end of the run."""


class TraceWriter:
    """Appends events to one trace file, from any thread.

    An event that cannot be written is lost and counted; its `seq` stays missing from the file, and the next line starts
    on its own line. After a fork only the parent writes. Nothing is written after `run-completed` or `close`. A signal
    handler may raise at any point of it, but must not call it: it may have interrupted the very thread that writes.
    """

    def __init__(self, path: Path, now_us: Callable[[], int], durability: Durability = "write") -> None:
        """Prepare to write a file that its owner alone can read; `append` makes it.

        Raises:
            TraceExistsError: a run of this id exists.
            OSError: the folder can hold no file.
        """
        self.path = path
        self.error: Exception | None = None
        """The first failure: of a write, a sync or the close."""
        self._now_us = now_us
        self._durability = durability
        self._blobs = BlobFolder(path)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()  # its own, so that a slow disk holds up the next sync but not the next event
        self._sync_timer: threading.Timer | None = None
        self._ts = 0
        self.tail = Tail()
        """Where the file ends."""
        self._in_flight: Tail | None = None
        self._descriptor: int | None = None
        self._state: Literal["new", "open", "closed"] = "new"
        if os.path.lexists(path):
            raise TraceExistsError(_exists(path))
        os.stat(os.path.join(path.parent, "."))  # noqa: PTH116, PTH118 - pathlib would drop the dot, which wants a folder
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))

    def append(self, kind: str, owner: str, iteration: int | None, data: bytes) -> Written:
        """Write one event whose fields are the JSON object `data`.

        Raises:
            TraceExistsError: it is the first event, and the file exists by now. Nothing else is raised.
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
        self._in_flight = whole = _tuple(Tail, (seq + 1, h, size + len(content), lost, False, kind == _END))
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
        return _tuple(Written, (seq, ts, h, True))

    def _begin(self, content: bytes) -> None:
        """Make the file with its first line.

        Raises:
            TraceExistsError: another writer has made it.
            OSError: it cannot be made, or not written.
        """
        self._state = "open"
        try:
            self._descriptor = create_file(self.path, content)
        except FileExistsError:
            self._state, self._in_flight = "closed", None
            raise TraceExistsError(_exists(self.path)) from None

    def _settle(self) -> None:
        """Find out what became of a line whose write did not return: after an error, or an exception from a signal."""
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
        except Exception as error:  # noqa: BLE001 - whatever it is: the trace suffers, not the run
            self._note(error)
            return None

    def _note(self, error: Exception) -> None:
        if self.error is None:
            self.error = error


def _exists(path: Path) -> str:
    return f"{path} exists: a run of this id has been or is being written"
