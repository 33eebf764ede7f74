"""The control folder of a run that goes on: how other processes of the same user find it, end it and answer it.

`<folder of the trace>/.control/<run id>/` is made when a run starts and removed when it ends; that of a killed run, when the
next process records its first run there. It holds `process.json` (who runs it; locked for as long as that process lives),
`kill` (somebody wants it to end), and for every call that waits for a yes `<n>.request.json` and `<n>.answer.json`. Nobody
but the user can write there, and still nothing in it is trusted: whatever is not exactly right is no answer, or a no.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import RunIdError
from playhead.trace import asked
from playhead.trace.blobs import run_id_of, write_all
from playhead.trace.control_files import is_plain, is_private, read_object, write_new, write_over
from playhead.trace.format import checked_run_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.trace.asked import GivenAnswer, PendingApproval

FOLDER: Final = ".control"
"""Beside the traces; the folder of traces looks at files alone, so it does not see it."""
_PROCESS: Final = "process.json"
_KILL: Final = "kill"
_REQUEST: Final = re.compile(r"(\d{1,9})\.request\.json")
_OURS: Final = re.compile(r"(process\.json|kill|\d{1,9}\.(request|answer)\.json)(\.[0-9a-f]{8}\.tmp)?")
_LOOKS: Final = 500
"""Looks at a folder that another process is changing, until it is given up."""
_LOOK_S: Final = 0.002
_LOOK: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_swept: Final[set[Path]] = set()
"""Folders of which this process has removed what killed runs had left."""
_UNSAID: Final = "no reason was given"


@dataclass(frozen=True, slots=True)
class Process:
    """Who runs a run."""

    pid: int
    """The process."""
    created_us: int
    """When it made the control folder: microseconds since the Unix epoch."""
    host: str
    """The machine, as it calls itself."""


class Control:
    """The control folder of one run: made and watched by the process that runs it, written to by others."""

    def __init__(self, folder: Path, process: Process, owner: int, lock: int | None = None) -> None:
        self.folder = folder
        self.process = process
        """Who runs it."""
        self._owner = owner
        self._lock = lock
        self._kill = folder / _KILL
        self._numbers = count(1)

    # --- the process that runs the run --------------------------------------------------------------------------------

    @classmethod
    def create(cls, trace_path: Path) -> Control:
        """Make the folder for a run that starts now, in place of what a killed run of the same id has left.

        The first run of a process removes the folders of all killed runs of this machine there.

        Raises:
            OSError: it cannot be made, others can write into it, or a run of this id goes on.
        """
        folder = _folder_of(trace_path)
        process = Process(os.getpid(), time.time_ns() // 1000, os.uname().nodename)
        said = {"run_id": folder.name, "pid": process.pid, "created_us": process.created_us, "host": process.host}
        with _alone_in(folder.parent):
            owner = _make(folder)
            lock = os.open(folder / _PROCESS, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                write_all(lock, json.dumps(said).encode())
            except BaseException:
                os.close(lock)
                raise
            if folder.parent not in _swept:
                _swept.add(folder.parent)
                _clear_dead(folder.parent)
        return cls(folder, process, owner, lock)

    def kill_requested(self) -> str | None:
        """Return why somebody wants the run to end, or None when nobody does: one look at the folder. Never raises.

        That the file is there is enough, whatever it says: to stop is the safe side.
        """
        if not is_plain(self._kill, self._owner):
            return None
        try:
            why = read_object(self._kill, self._owner).get("why")
        except (OSError, ValueError):
            why = None
        return why if isinstance(why, str) and why else _UNSAID

    def ask(self, pending: PendingApproval) -> PendingApproval:
        """Let other processes see a call that waits; return it with its number.

        Raises:
            OSError, ValueError: it cannot be shown.
        """
        pending = replace(pending, number=next(self._numbers), asked_us=time.time_ns() // 1000)
        if len(json.dumps(pending.as_json())) > asked.LARGEST_REQUEST:
            raise ValueError(f"its arguments are larger than {asked.LARGEST_REQUEST:,} bytes")
        write_new(self._request(pending.number), pending.as_json())
        return pending

    def take_answer(self, pending: PendingApproval) -> GivenAnswer | None:
        """Return what was answered, or None when nothing was yet; what is not an exact answer is a no. Never raises."""
        path = self._answer(pending)
        if not os.path.lexists(path):
            return None
        try:
            return asked.answer_from(pending, read_object(path, self._owner))
        except FileNotFoundError:
            return None
        except ValueError as error:
            return asked.refusal(str(error))

    def withdraw(self, pending: PendingApproval) -> None:
        """Wait for no answer any more: who answers from now on is told that it is too late. Never raises."""
        with suppress(OSError):
            write_new(self._answer(pending), asked.answer_to(pending, approved=False, why="withdrawn", by=None))
        with suppress(OSError):
            self._request(pending.number).unlink()

    def close(self) -> None:
        """Remove the folder, with what Playhead wrote there. In the child of a fork, and again, it does nothing."""
        lock, self._lock = self._lock, None
        if lock is None or os.getpid() != self.process.pid:
            return
        with suppress(OSError), _alone_in(self.folder.parent):
            _clear(self.folder)
        with suppress(OSError):
            os.close(lock)

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
            process = _process_from(folder.name, read_object(folder / _PROCESS, owner))
        except (OSError, ValueError, RunIdError):
            return None
        return cls(folder, process, owner)

    @classmethod
    def all_in(cls, trace_folder: Path) -> Iterator[Control]:
        """Yield the control folders of all runs in a folder of traces, of those that were killed too."""
        try:
            names = sorted(each.name for each in (trace_folder / FOLDER).iterdir())
        except OSError:
            return
        for name in names:
            found = cls.of(trace_folder / f"{name}.jsonl")
            if found is not None:
                yield found

    @property
    def run_id(self) -> str:
        """The run."""
        return self.folder.name

    @property
    def trace_path(self) -> Path:
        """The run's trace."""
        return self.folder.parent.parent / f"{self.folder.name}.jsonl"

    @property
    def process_file(self) -> Path:
        """The file that the process which runs the run holds open and locked."""
        return self.folder / _PROCESS

    @property
    def held(self) -> bool:
        """Whether the process that made the folder (or a fork of it) still lives: its lock is there as long."""
        return _is_held(self.folder / _PROCESS)

    def request_kill(self, why: str) -> None:
        """Ask the run to end; it looks every 50 ms. Raises `OSError` when that cannot be written."""
        write_over(self._kill, {"why": why, "asked_us": time.time_ns() // 1000})

    def pending(self) -> list[PendingApproval]:
        """Return the calls that wait for an answer, in asking order; what is no sound request is left out."""
        return [each for _, each in self._requests() if each and not os.path.lexists(self._answer(each))]

    def left_out(self) -> list[str]:
        """Return the names of the files that should hold requests and hold none: somebody else has written there."""
        return [name for name, each in self._requests() if each is None]

    def answer(
        self, pending: PendingApproval, *, approved: bool, why: str | None = None, by: str | None = None
    ) -> bool:
        """Answer exactly this call; return False when it has been answered, or waits no more.

        Raises:
            OSError: the answer cannot be written.
        """
        if pending not in self.pending():
            return False
        try:
            write_new(self._answer(pending), asked.answer_to(pending, approved=approved, why=why, by=by))
        except (FileExistsError, FileNotFoundError):
            return False
        return True

    def remove_leftover(self) -> None:
        """Remove the folder of a run whose process is gone; does nothing while it lives. Never raises."""
        with suppress(OSError), _alone_in(self.folder.parent):
            if not self.held:
                _clear(self.folder)

    def _requests(self) -> list[tuple[str, PendingApproval | None]]:
        """Return the files that are named as requests, and what they ask; None for one that holds no sound request."""
        found = []
        try:
            names = [_REQUEST.fullmatch(each.name) for each in self.folder.iterdir()]
        except OSError:
            return []
        for number in sorted({int(name[1]) for name in names if name}):
            with suppress(FileNotFoundError):  # withdrawn in this moment
                found.append((self._request(number).name, self._read(number)))
        return found

    def _read(self, number: int) -> PendingApproval | None:
        try:
            found = asked.pending_from(read_object(self._request(number), self._owner, asked.LARGEST_REQUEST))
        except ValueError:
            return None
        return found if found.number == number else None

    def _request(self, number: int) -> Path:
        return self.folder / f"{number}.request.json"

    def _answer(self, pending: PendingApproval) -> Path:
        return self.folder / f"{pending.number}.answer.json"


def _folder_of(trace_path: Path) -> Path:
    return trace_path.parent / FOLDER / checked_run_id(run_id_of(trace_path))


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """Let nobody else make or remove a folder in this one meanwhile; it is there only as long as something is in it.

    Raises:
        OSError: it cannot be made, or somebody does not let go of it.
    """
    lock = _lock_of(parent)
    try:
        yield
    finally:
        with suppress(OSError):
            parent.rmdir()
        fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile holds it open, too
        os.close(lock)


def _lock_of(parent: Path) -> int:
    for _ in range(_LOOKS):
        with suppress(FileExistsError):
            parent.mkdir(mode=0o700)
        with suppress(BlockingIOError, FileNotFoundError), ExitStack() as stack:
            lock = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.lstat(parent)):  # else it was removed and made anew
                stack.pop_all()
                return lock
        time.sleep(_LOOK_S)
    raise OSError(errno.EBUSY, "another process does not let go of it", str(parent))


def _make(folder: Path) -> int:
    """Make a folder, in place of one that a killed process has left, and return whose it is; alone in its parent."""
    if _is_held(folder / _PROCESS):
        raise OSError(errno.EBUSY, "a run of this id goes on", str(folder))
    _clear(folder)
    folder.mkdir(mode=0o700)
    owner = os.lstat(folder).st_uid
    if not (is_private(folder.parent, owner) and is_private(folder, owner)):
        raise PermissionError(errno.EPERM, "others can write into it", str(folder))
    return owner


def _clear_dead(parent: Path) -> None:
    """Remove the folders of runs whose process is gone; one of another machine stays, for its lock may not be seen here."""
    here = os.uname().nodename
    for folder in list(parent.iterdir()):
        try:
            host = read_object(folder / _PROCESS, os.geteuid()).get("host")
        except (OSError, ValueError):  # killed before it had said so
            host = here
        if host == here and not _is_held(folder / _PROCESS):
            _clear(folder)


def _clear(folder: Path) -> None:
    """Remove what Playhead writes there, and the folder if nothing else is in it."""
    with suppress(OSError):
        if not is_private(folder, os.lstat(folder).st_uid):  # a link leads elsewhere
            return
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()
        folder.rmdir()


def _is_held(path: Path) -> bool:
    with suppress(OSError), open(os.open(path, _LOOK), "rb") as file:  # noqa: PTH123 - of a descriptor
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _process_from(run_id: str, said: dict[str, Any]) -> Process:
    pid, created_us, host = said.get("pid"), said.get("created_us"), said.get("host")
    if said.get("run_id") != run_id or type(pid) is not int or type(created_us) is not int or not isinstance(host, str):
        raise ValueError("says of no process that it runs this run")
    return Process(pid, created_us, host)
