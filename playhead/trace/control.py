"""The control folder of a running run: how other processes of the same user find it and stop it.

`<folder of the trace>/.control/<run id>/` exists while the run does. `process.json` says who runs it, and stays locked for as
long as that process lives. `kill` is a request to stop. The calls awaiting approval stand there, too
(`playhead.compose.inbox`). Only the user can write there, and still nothing in it is trusted: a file counts only when it is, byte for byte,
what Playhead writes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from playhead.errors import RunIdError
from playhead.trace.blobs import create_file, is_private, read_plain, run_id_of
from playhead.trace.format import checked_run_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = ".control"
"""The folder beside the traces that holds the control folders."""
_LARGEST: Final = 64 * 1024
"""Bytes of a file, where nothing else is said."""
_PROCESS: Final = "process.json"
_NO_REASON: Final = "no reason was given"
_TRIES: Final = 25
"""Attempts to lock a folder that another process may be removing."""
_TRY_S: Final = 0.002
_swept: Final[set[Path]] = set()
"""Folders from which this process has removed what killed runs left."""


class ControlFile(BaseModel):
    """The content of a file: exactly these fields, of exactly these types."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, strict=True, extra="forbid")

    def content(self) -> bytes:
        """Return the one form in which it is written."""
        return json.dumps(self.model_dump(), allow_nan=False).encode()


F = TypeVar("F", bound=ControlFile)


class Process(ControlFile):
    """Who runs a run."""

    pid: int
    """The process."""
    created_us: int
    """When it made the control folder: microseconds since the Unix epoch."""
    host: str
    """The machine, as it calls itself."""


@dataclass(slots=True)
class Control:
    """The control folder of one run: made and watched by the process that runs it, written to by others."""

    folder: Path
    process: Process
    """Who runs it."""
    owner: int
    """The user whose files count in it, beside root's."""
    _lock: int | None = None

    # --- the process that runs the run --------------------------------------------------------------------------------

    @classmethod
    def create(cls, trace_path: Path) -> Control:
        """Make the folder for a run that starts now, in place of what a killed run of the same id has left.

        The first run of a process also removes the folders of all killed runs of this machine there.

        Raises:
            OSError: it cannot be made, others can write into it, or a run of this id is running.
        """
        folder = _folder_of(trace_path)
        process = Process(pid=os.getpid(), created_us=time.time_ns() // 1000, host=os.uname().nodename)
        lock = _make(folder)
        _clear(folder)
        os.truncate(lock, 0)
        os.write(lock, process.content())
        if folder.parent not in _swept:
            _swept.add(folder.parent)
            for each in list(folder.parent.iterdir()):
                _remove_dead(each)
        return cls(folder, process, os.geteuid(), lock)

    def kill_requested(self) -> str | None:
        """Return why somebody wants the run to stop, or None: one look at the folder. Never raises.

        The file's existence is enough, whatever it holds: to stop is the safe side.
        """
        path = self.folder / "kill"
        if not path.is_file() or path.is_symlink():
            return None
        try:
            return read_plain(path, _LARGEST, self.owner).decode() or _NO_REASON
        except (OSError, ValueError):
            return _NO_REASON

    def close(self) -> None:
        """Remove the folder. In the child of a fork, and again, it does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None and os.getpid() == self.process.pid:
            _remove(self.folder, lock)

    # --- other processes ----------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, trace_path: Path) -> Control | None:
        """Return the control folder of a trace; None when there is none, or none that this user can trust."""
        try:
            folder = _folder_of(trace_path)
            owner = os.lstat(folder).st_uid
            trusted = owner in (os.geteuid(), 0) or os.geteuid() == 0
            if not trusted or not is_private(folder.parent, owner) or not is_private(folder, owner):
                return None
            return cls(folder, read_file(Process, folder / _PROCESS, owner), owner)
        except (OSError, ValueError, RunIdError):
            return None

    @classmethod
    def all_in(cls, trace_folder: Path) -> Iterator[Control]:
        """Yield the control folders of all runs in a folder of traces, including those of killed runs."""
        try:
            names = sorted(each.name for each in (trace_folder / FOLDER).iterdir())
        except OSError:
            return
        yield from filter(None, (cls.of(trace_folder / f"{name}.jsonl") for name in names))

    @property
    def run_id(self) -> str:
        """The run."""
        return self.folder.name

    @property
    def process_file(self) -> Path:
        """The file that the process which runs the run holds open and locked."""
        return self.folder / _PROCESS

    @property
    def held(self) -> bool:
        """Whether the process that made the folder (or a fork of it) still lives: its lock is there as long."""
        try:
            os.close(_locked(self.process_file, fcntl.LOCK_SH))
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def request_kill(self, why: str) -> None:
        """Ask the run to stop; it looks every 50 ms. Raises `OSError` when that cannot be written."""
        os.close(create_file(self.folder / "kill", why.encode("utf-8", "replace"), replace=True))

    def remove_leftover(self) -> None:
        """Remove the folder of a run whose process is gone; does nothing while it lives. Never raises."""
        _remove_dead(self.folder)


def _folder_of(trace_path: Path) -> Path:
    return trace_path.parent / FOLDER / checked_run_id(run_id_of(trace_path))


def read_file(kind: type[F], path: Path, owner: int, largest: int = _LARGEST) -> F:
    """Return what a file holds, which has to be byte for byte what Playhead writes.

    Raises:
        OSError: it cannot be opened.
        ValueError: it holds anything else, or is no plain file of this user.
    """
    content = read_plain(path, largest, owner)
    with suppress(ValueError, RecursionError):
        found = kind.model_validate_json(content)
        if found.content() == content:
            return found
    raise ValueError("is not what Playhead writes")


def _make(folder: Path) -> int:
    """Make a control folder where there is none; return the descriptor of its `process.json`, which is locked.

    Raises:
        OSError: another process holds the lock, they cannot be made, or others can write there.
    """
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, BlockingIOError):  # another process may be removing the folder
            for each in (folder.parent, folder):
                each.mkdir(mode=0o700, exist_ok=True)
                if not is_private(each, os.geteuid()):
                    raise PermissionError(errno.EPERM, "others can write into it", str(each))
            return _locked(folder / _PROCESS, fcntl.LOCK_EX, os.O_RDWR | os.O_CREAT)
        time.sleep(_TRY_S)
    raise OSError(errno.EBUSY, "a run of this id is running", str(folder))


def _locked(path: Path, how: int, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of a file that is locked until it is closed.

    Raises:
        BlockingIOError: another process holds it.
        FileNotFoundError: there is none, or another process has just removed it.
        OSError: it cannot be opened.
    """
    with ExitStack() as stack:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, descriptor)
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            raise FileNotFoundError(errno.ENOENT, "it was replaced", str(path))
        stack.pop_all()
        return descriptor


def _remove_dead(folder: Path) -> None:
    """Remove the folder of a killed run; that of another machine stays, since its lock may not show here. Never raises."""
    with suppress(OSError):
        control = Control.of(folder.parent.parent / f"{folder.name}.jsonl")
        is_local = control is None or control.process.host == os.uname().nodename
        if is_local and is_private(folder, os.geteuid()):
            _remove(folder, _locked(folder / _PROCESS, fcntl.LOCK_EX))


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock this process holds; give the lock back."""
    with suppress(OSError):
        _clear(folder)
        (folder / _PROCESS).unlink()  # last: from here on another process may begin there
    os.close(lock)
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def _clear(folder: Path) -> None:
    """Remove every file of a folder but `process.json`."""
    for path in folder.iterdir():
        if path.name != _PROCESS:
            with suppress(OSError):
                path.unlink()
