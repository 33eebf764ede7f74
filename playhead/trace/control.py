"""The control folder of a running run: how other processes of the same user find it and stop it.

`<folder of the trace>/.control/<run id>/` exists while the run is active. `process.json` names the run's process and stays
locked while that process lives. `kill` is a request to stop. The folder also contains the calls awaiting approval
(`playhead.compose.inbox`). The run's process creates and removes the folder (`playhead.kernel.lifecycle.own_control`). Only
the user can write there. Its files are still not trusted: a file is accepted only if it is byte for byte what Playhead writes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
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
LARGEST: Final = 64 * 1024
"""The default limit on the size of a file, in bytes."""
PROCESS: Final = "process.json"


class ControlFile(BaseModel):
    """The content of a file, with exactly these fields of exactly these types."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, strict=True, extra="forbid")

    def content(self) -> bytes:
        """Return the exact bytes that Playhead writes."""
        return json.dumps(self.model_dump(), allow_nan=False).encode()


F = TypeVar("F", bound=ControlFile)


class Process(ControlFile):
    """The process that executes a run."""

    pid: int
    """The process id."""
    created_us: int
    """Creation time of the control folder, in microseconds since the Unix epoch."""
    host: str
    """The machine's host name."""


@dataclass(slots=True)
class Control:
    """The control folder of one run, for use by other processes."""

    folder: Path
    process: Process
    """The run's process."""
    owner: int
    """The user whose files are accepted, in addition to root's."""

    @classmethod
    def of(cls, trace_path: Path) -> Control | None:
        """Return the control folder of a trace; None when it does not exist or this user cannot trust it."""
        try:
            folder = folder_of(trace_path)
            owner = os.lstat(folder).st_uid
            trusted = owner in (os.geteuid(), 0) or os.geteuid() == 0
            if not trusted or not is_private(folder.parent, owner) or not is_private(folder, owner):
                return None
            return cls(folder, read_file(Process, folder / PROCESS, owner), owner)
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
        """The file that the run's process keeps open and locked."""
        return self.folder / PROCESS

    @property
    def held(self) -> bool:
        """Whether the process that created the folder, or a fork of it, still lives and holds the lock."""
        try:
            os.close(locked(self.process_file, fcntl.LOCK_SH))
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def request_kill(self, why: str) -> None:
        """Ask the run to stop; the run checks every 50 ms. Raises `OSError` when the request cannot be written."""
        os.close(create_file(self.folder / "kill", why.encode("utf-8", "replace"), replace=True))


def folder_of(trace_path: Path) -> Path:
    """Return the path of a trace's control folder; raises `RunIdError`."""
    return trace_path.parent / FOLDER / checked_run_id(run_id_of(trace_path))


def read_file(kind: type[F], path: Path, owner: int, largest: int = LARGEST) -> F:
    """Return the content of a file, which must be byte for byte what Playhead writes.

    Raises:
        OSError: it cannot be opened.
        ValueError: it has any other content, or is not a plain file of this user.
    """
    content = read_plain(path, largest, owner)
    with suppress(ValueError, RecursionError):
        found = kind.model_validate_json(content)
        if found.content() == content:
            return found
    raise ValueError("is not what Playhead writes")


def locked(path: Path, how: int, flags: int = os.O_RDONLY) -> int:
    """Lock a file and return its descriptor; closing the descriptor unlocks the file.

    Raises:
        BlockingIOError: another process holds the lock.
        FileNotFoundError: the file does not exist, or another process has just removed it.
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
