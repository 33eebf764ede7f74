"""The control folder of a running run: how other processes of the same user find it and stop it.

`<folder of the trace>/.control/<run id>/` exists while the run does. `process.json` says who runs it, and stays locked for as
long as that process lives. `kill` is a request to stop. The calls awaiting approval stand there, too
(`playhead.compose.inbox`). The process that runs the run makes and removes it (`playhead.kernel.lifecycle.own_control`). Only
the user can write there, and still nothing in it is trusted: a file counts only when it is, byte for byte, what Playhead writes.
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
"""Bytes of a file, where nothing else is said."""
PROCESS: Final = "process.json"


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
    """The control folder of one run, as other processes find it."""

    folder: Path
    process: Process
    """Who runs it."""
    owner: int
    """The user whose files count in it, beside root's."""

    @classmethod
    def of(cls, trace_path: Path) -> Control | None:
        """Return the control folder of a trace; None when there is none, or none that this user can trust."""
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
        """The file that the process which runs the run holds open and locked."""
        return self.folder / PROCESS

    @property
    def held(self) -> bool:
        """Whether the process that made the folder (or a fork of it) still lives: its lock is there as long."""
        try:
            os.close(locked(self.process_file, fcntl.LOCK_SH))
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def request_kill(self, why: str) -> None:
        """Ask the run to stop; it looks every 50 ms. Raises `OSError` when that cannot be written."""
        os.close(create_file(self.folder / "kill", why.encode("utf-8", "replace"), replace=True))


def folder_of(trace_path: Path) -> Path:
    """Return where the control folder of a trace is; raises `RunIdError`."""
    return trace_path.parent / FOLDER / checked_run_id(run_id_of(trace_path))


def read_file(kind: type[F], path: Path, owner: int, largest: int = LARGEST) -> F:
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


def locked(path: Path, how: int, flags: int = os.O_RDONLY) -> int:
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
