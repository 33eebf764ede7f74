"""The control folder of a run of this process: made for it, watched while it runs, and removed after it."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.trace.blobs import is_private, read_plain
from playhead.trace.control import LARGEST, PROCESS, Control, Process, folder_of, locked

if TYPE_CHECKING:
    from pathlib import Path

_NO_REASON: Final = "no reason was given"
_TRIES: Final = 25
"""Attempts to lock a folder that another process may be removing."""
_TRY_S: Final = 0.002
_swept: Final[set[Path]] = set()
"""Folders in which this process has cleaned up after killed runs."""


@dataclass(slots=True)
class OwnControl(Control):
    """The control folder of a run of this process."""

    _lock: int | None = None

    @classmethod
    def create(cls, trace_path: Path) -> OwnControl:
        """Make the folder for a run that starts now; it replaces the folder of a killed run with the same id.

        The first run of a process also removes the folders of all killed runs of this machine there.

        Raises:
            OSError: it cannot be made, others can write into it, or a run of this id is running.
        """
        folder = folder_of(trace_path)
        process = Process(pid=os.getpid(), created_us=time.time_ns() // 1000, host=os.uname().nodename)
        lock = _make(folder)
        _clear(folder)
        os.truncate(lock, 0)
        os.write(lock, process.content())
        if folder.parent not in _swept:
            _swept.add(folder.parent)
            for each in list(folder.parent.iterdir()):
                remove_leftover(each)
        return cls(folder, process, os.geteuid(), lock)

    def kill_requested(self) -> str | None:
        """Return the reason of a request to stop the run, or None, after one check of the folder. Never raises.

        Any file of this name stops the run, whatever its content, because stopping is the safe choice.
        """
        path = self.folder / "kill"
        if not path.is_file() or path.is_symlink():
            return None
        try:
            return read_plain(path, LARGEST, self.owner).decode() or _NO_REASON
        except (OSError, ValueError):
            return _NO_REASON

    def close(self) -> None:
        """Remove the folder. A second call, or a call in the child of a fork, does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None and os.getpid() == self.process.pid:
            _remove(self.folder, lock)


def remove_leftover(folder: Path) -> None:
    """Remove the folder of a killed run; that of another machine stays, since its lock may not show here. Never raises."""
    with suppress(OSError):
        control = Control.of(folder.parent.parent / f"{folder.name}.jsonl")
        is_local = control is None or control.process.host == os.uname().nodename
        if is_local and is_private(folder, os.geteuid()):
            _remove(folder, locked(folder / PROCESS, fcntl.LOCK_EX))


def _make(folder: Path) -> int:
    """Make a control folder; return the descriptor of its `process.json`, which is locked.

    Raises:
        OSError: another process holds the lock, they cannot be made, or others can write there.
    """
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, BlockingIOError):  # another process may be removing the folder
            for each in (folder.parent, folder):
                each.mkdir(mode=0o700, exist_ok=True)
                if not is_private(each, os.geteuid()):
                    raise PermissionError(errno.EPERM, "others can write into it", str(each))
            return locked(folder / PROCESS, fcntl.LOCK_EX, os.O_RDWR | os.O_CREAT)
        time.sleep(_TRY_S)
    raise OSError(errno.EBUSY, "a run of this id is running", str(folder))


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock this process holds; give the lock back."""
    with suppress(OSError):
        _clear(folder)
        (folder / PROCESS).unlink()  # last, because from here on another process may use the folder
    os.close(lock)
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def _clear(folder: Path) -> None:
    """Remove every file of a folder but `process.json`."""
    for path in folder.iterdir():
        if path.name != PROCESS:
            with suppress(OSError):
                path.unlink()
