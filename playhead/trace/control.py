"""The control folder of a running run: how other processes of the same user find it, stop it and approve its tool calls.

`<folder of the trace>/.control/<run id>/` exists while the run does; the next process that records its first run there
removes the folders of killed runs. It holds `process.json` (who runs it; locked for as long as that process lives), `kill`
(a request to stop), and for every call awaiting approval `<n>.request.json` and `<n>.answer.json`. Only the user can write
there, and still nothing in it is trusted: an answer counts only when it is, byte for byte, what `playhead approve` writes
about exactly this request.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from playhead.errors import RunIdError
from playhead.trace.blobs import create_file, is_private, read_plain, run_id_of
from playhead.trace.format import checked_run_id
from playhead.trace.values import JsonValue, repair_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = ".control"
"""Beside the traces, where only files are looked at."""
LARGEST_REQUEST: Final = 16 * 1024**2
"""Bytes of a request; a call with larger arguments cannot be approved this way."""
_LARGEST: Final = 64 * 1024
"""Bytes of every other file."""
_LATEST_US: Final = 253_402_300_799_999_999
"""The last moment of the year 9999, in microseconds since the Unix epoch."""
_PROCESS: Final = "process.json"
_REQUEST: Final = re.compile(r"(\d{1,9})\.request\.json")
_OURS: Final = re.compile(r"(kill|\d{1,9}\.(request|answer)\.json)(\.[0-9a-f]{8}\.tmp)?")
_TRIES: Final = 25
"""Tries to lock a folder that another process may be removing."""
_TRY_S: Final = 0.002
_swept: Final[set[Path]] = set()
"""Folders from which this process has removed what killed runs left."""


class _File(BaseModel):
    """The content of a file: exactly these fields, of exactly these types."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, strict=True, extra="forbid")

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return self.model_dump()

    def content(self) -> bytes:
        """Return the one form in which it is written."""
        return json.dumps(self.model_dump(), allow_nan=False).encode()


F = TypeVar("F", bound=_File)


class Process(_File):
    """Who runs a run."""

    run_id: str
    """The run."""
    pid: int
    """The process."""
    created_us: int
    """When it made the control folder: microseconds since the Unix epoch."""
    host: str
    """The machine, as it calls itself."""


class PendingApproval(_File):
    """A tool call awaiting approval."""

    call_id: str
    """The call; unique in its agent."""
    owner: str
    """The agent that makes it."""
    tool: str
    """The tool."""
    arguments: JsonValue
    """What the body would get, without secrets."""
    args_hash: str
    """Hash of exactly these arguments, as the trace has it."""
    risk: str
    """How bad a wrong call is, as the tool declares."""
    why: str | None = None
    """The model's own reason."""
    redacted: bool = False
    """Whether secrets were taken out of the arguments that are shown."""
    asked_us: Annotated[int, Field(ge=0, le=_LATEST_US)] = 0
    """Microseconds since the Unix epoch."""
    number: Annotated[int, Field(ge=0, lt=10**9)] = 0
    """Its place among the requests of the run, from 1; 0 before it is written."""


class GivenAnswer(_File):
    """The answer to a request."""

    approved: bool
    """True only for an explicit approval of exactly this call."""
    why: str | None = None
    """The reason given, or what is wrong with the answer."""
    by: str | None = None
    """Who answered."""
    request: str = ""
    """SHA-256 of the request that it answers, as it was shown."""


@dataclass(frozen=True, slots=True)
class Control:
    """The control folder of one run: made and watched by the process that runs it, written to by others."""

    folder: Path
    process: Process
    """Who runs it."""
    _owner: int
    _numbers: count[int]
    _locks: list[int]

    # --- the process that runs the run --------------------------------------------------------------------------------

    @classmethod
    def create(cls, trace_path: Path) -> Control:
        """Make the folder for a run that starts now, in place of what a killed run of the same id has left.

        The first run of a process removes the folders of all killed runs of this machine there.

        Raises:
            OSError: it cannot be made, others can write into it, or a run of this id is running.
        """
        folder = _folder_of(trace_path)
        process = Process(
            run_id=folder.name, pid=os.getpid(), created_us=time.time_ns() // 1000, host=os.uname().nodename
        )
        lock = _locked(folder)
        _clear(folder)
        os.truncate(lock, 0)
        os.write(lock, process.content())
        if folder.parent not in _swept:
            _swept.add(folder.parent)
            for each in list(folder.parent.iterdir()):
                _remove_dead(each)
        return cls(folder, process, os.geteuid(), count(1), [lock])

    def kill_requested(self) -> str | None:
        """Return why somebody wants the run to stop, or None: one look at the folder. Never raises.

        That the file is there is enough, whatever it says: to stop is the safe side.
        """
        path = self.folder / "kill"
        if not path.is_file() or path.is_symlink():
            return None
        try:
            return read_plain(path, _LARGEST, self._owner).decode() or "no reason was given"
        except (OSError, ValueError):
            return "no reason was given"

    def ask(self, pending: PendingApproval) -> PendingApproval:
        """Let other processes see a call awaiting approval; return it with its number.

        Raises:
            OSError, ValueError: it cannot be shown.
        """
        pending = pending.model_copy(update={"number": next(self._numbers), "asked_us": time.time_ns() // 1000})
        content = pending.content()
        if len(content) > LARGEST_REQUEST:
            raise ValueError(f"its arguments are larger than {LARGEST_REQUEST:,} bytes")
        os.close(create_file(self._request(pending.number), content))
        return pending

    def take_answer(self, pending: PendingApproval) -> GivenAnswer | None:
        """Return the answer, or None while there is none; anything but an exact answer is a refusal. Never raises."""
        try:
            answer = _read(GivenAnswer, self._answer(pending), self._owner)
            if answer.request == _digest(pending):
                return answer
            wrong = "is about another call"
        except FileNotFoundError:
            return None
        except OSError as error:
            wrong = f"cannot be read: {error.strerror}"
        except ValueError as error:
            wrong = str(error)
        return GivenAnswer(approved=False, why=f"the answer's file {wrong}")

    def withdraw(self, pending: PendingApproval) -> None:
        """Stop waiting for an answer: whoever answers from now on learns that it is too late. Never raises."""
        with suppress(OSError):
            self._write_answer(pending, approved=False, why="withdrawn", by=None)
        with suppress(OSError):
            self._request(pending.number).unlink()

    def close(self) -> None:
        """Remove the folder, with what Playhead wrote there. In the child of a fork, and again, it does nothing."""
        if self._locks and os.getpid() == self.process.pid:
            _remove(self.folder, self._locks.pop())

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
            process = _read(Process, folder / _PROCESS, owner)
        except (OSError, ValueError, RunIdError):
            return None
        return cls(folder, process, owner, count(1), []) if process.run_id == folder.name else None

    @classmethod
    def all_in(cls, trace_folder: Path) -> Iterator[Control]:
        """Yield the control folders of all runs in a folder of traces, of those that were killed too."""
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
        with suppress(OSError), ExitStack() as stack:
            return _try_lock(self.process_file, fcntl.LOCK_SH, stack) is None
        return False

    def request_kill(self, why: str) -> None:
        """Ask the run to stop; it looks every 50 ms. Raises `OSError` when that cannot be written."""
        os.close(create_file(self.folder / "kill", why.encode("utf-8", "replace"), replace=True))

    def pending(self) -> list[PendingApproval]:
        """Return the calls awaiting approval, in the order of the requests; a file that holds no request is left out."""
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
            self._write_answer(pending, approved=approved, why=why, by=by)
        except (FileExistsError, FileNotFoundError):
            return False
        return True

    def remove_leftover(self) -> None:
        """Remove the folder of a run whose process is gone; does nothing while it lives. Never raises."""
        _remove_dead(self.folder)

    def _write_answer(self, pending: PendingApproval, *, approved: bool, why: str | None, by: str | None) -> None:
        answer = GivenAnswer(approved=approved, why=why, by=by, request=_digest(pending))
        os.close(create_file(self._answer(pending), answer.content()))

    def _requests(self) -> list[tuple[str, PendingApproval | None]]:
        """Return the files that are named as requests, and what they hold; None for one that holds no sound request."""
        found: list[tuple[str, PendingApproval | None]] = []
        try:
            names = [_REQUEST.fullmatch(each.name) for each in self.folder.iterdir()]
        except OSError:
            return []
        for number in sorted({int(name[1]) for name in names if name}):
            path = self._request(number)
            try:
                pending = _read(PendingApproval, path, self._owner, LARGEST_REQUEST)
                is_sound = pending.number == number and repair_json(pending.arguments) == pending.arguments
                found.append((path.name, pending if is_sound else None))
            except FileNotFoundError:  # withdrawn in this moment
                continue
            except (OSError, ValueError):
                found.append((path.name, None))
        return found

    def _request(self, number: int) -> Path:
        return self.folder / f"{number}.request.json"

    def _answer(self, pending: PendingApproval) -> Path:
        return self.folder / f"{pending.number}.answer.json"


def _folder_of(trace_path: Path) -> Path:
    return trace_path.parent / FOLDER / checked_run_id(run_id_of(trace_path))


def _read(kind: type[F], path: Path, owner: int, largest: int = _LARGEST) -> F:
    """Return what a file holds, which has to be byte for byte what Playhead writes.

    Raises:
        OSError: it cannot be opened.
        ValueError: it holds anything else, or is no plain file of this user.
    """
    content = read_plain(path, largest, owner)
    try:
        found = kind.model_validate_json(content)
        if found.content() == content:
            return found
    except (ValidationError, ValueError, RecursionError):
        pass
    raise ValueError("is not what Playhead writes")


def _digest(pending: PendingApproval) -> str:
    return hashlib.sha256(pending.content()).hexdigest()


def _locked(folder: Path) -> int:
    """Return the descriptor of a folder's `process.json`, locked; both are made where they are not there.

    Raises:
        OSError: another process holds the lock, they cannot be made, or others can write there.
    """
    for _ in range(_TRIES):
        with suppress(FileNotFoundError), ExitStack() as stack:  # another process has just removed the folder
            for each in (folder.parent, folder):
                each.mkdir(mode=0o700, exist_ok=True)
                if not is_private(each, os.geteuid()):
                    raise PermissionError(errno.EPERM, "others can write into it", str(each))
            lock = _try_lock(folder / _PROCESS, fcntl.LOCK_EX, stack, os.O_RDWR | os.O_CREAT)
            if lock is not None:
                stack.pop_all()
                return lock
        time.sleep(_TRY_S)
    raise OSError(errno.EBUSY, "a run of this id is running", str(folder))


def _try_lock(path: Path, how: int, stack: ExitStack, flags: int = os.O_RDONLY) -> int | None:
    """Lock a file until the stack is closed; None when another process holds it, or has just removed it."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    return descriptor if os.path.samestat(os.fstat(descriptor), os.lstat(path)) else None


def _remove_dead(folder: Path) -> None:
    """Remove the folder of a killed run; that of another machine stays, since its lock may not show here. Never raises."""
    with suppress(OSError), ExitStack() as stack:
        if not is_private(folder, os.geteuid()):
            return
        control = Control.of(folder.parent.parent / f"{folder.name}.jsonl")
        if control is not None and control.process.host != os.uname().nodename:
            return
        if not (folder / _PROCESS).exists():  # its process is about to write it, or was killed before
            folder.rmdir()
        elif (lock := _try_lock(folder / _PROCESS, fcntl.LOCK_EX, stack)) is not None:
            stack.pop_all()
            _remove(folder, lock)


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock this process holds, if nothing but Playhead's files is in it; gives the lock back."""
    with suppress(OSError):
        _clear(folder)
        (folder / _PROCESS).unlink()  # last: from here on another process may begin there
    os.close(lock)
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
