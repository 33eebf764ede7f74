"""A file of spans, which takes the place of another one only when there are spans to write."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, Self

from playhead.cli.output import note
from playhead.errors import PlayheadError, UsageError
from playhead.trace.reader import open_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGINNING: Final = 200
"""Bytes of a file in which a trace says that it is one."""


class OutputFile:
    """A text file readable by its owner only; until something is written, what was there stays as it is."""

    def __init__(self, path: Path, traces: Sequence[Path]) -> None:
        """Open it.

        Raises:
            UsageError: it cannot be written, or is one of the traces, or a recording.
        """
        _refuse_recordings(path, traces)
        self._path = path.resolve() if path.is_symlink() else path
        self._aside: Path | None = None
        try:
            self._file = self._open()
        except OSError as error:
            raise UsageError(f"-o {path} cannot be written: {_why(error, path)}") from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it; when nothing was written, say so."""
        self._file.close()
        if self._aside is not None:
            note(f"there were no spans to write: {self._path} is as it was")
            with suppress(OSError):
                self._aside.unlink()

    def write(self, text: str) -> int:
        """Write text."""
        return self._file.write(text)

    def flush(self) -> None:
        """Hand over what was written; from then on it is there under its name, also for who reads while it grows."""
        self._file.flush()
        if self._aside is not None and self._file.tell():
            aside, self._aside = self._aside, None
            self._put(aside)

    def _put(self, aside: Path) -> None:
        try:
            aside.replace(self._path)
        except OSError:  # a file that is mounted by itself, as containers have them, cannot be replaced
            self._file.close()
            shutil.copyfile(aside, self._path)
            aside.unlink()
            self._file = self._path.open("a", encoding="utf-8")

    def _open(self) -> IO[str]:
        """Open a file beside it; what is no plain file, such as a pipe, is opened itself."""
        if self._path.exists() and not self._path.is_file():
            return self._path.open("w", encoding="utf-8")
        if self._path.exists() and not os.access(self._path, os.W_OK):
            raise PermissionError(13, "Permission denied")
        self._aside = self._path.with_name(f".{self._path.name[:100]}.{os.urandom(4).hex()}.tmp")
        try:
            descriptor = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except PermissionError:
            if not self._path.exists():
                raise
            self._aside = None
            return self._path.open("w", encoding="utf-8")  # the file is ours to write, the folder is not
        return open(descriptor, "w", encoding="utf-8")  # noqa: PTH123 - readable by its owner only


def _why(error: OSError, path: Path) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a folder; name a file in it"
    if isinstance(error, FileNotFoundError):
        return f"there is no folder {path.parent}"
    return error.strerror or type(error).__name__


def _refuse_recordings(output: Path, traces: Sequence[Path]) -> None:
    """Refuse to write over what was recorded."""
    if any(output.exists() and path.exists() and output.samefile(path) for path in traces):
        raise UsageError(f"-o {output} is the trace itself")
    if _is_recording(output):
        raise UsageError(f"-o {output} is a recording, and is not written over")


def _is_recording(path: Path) -> bool:
    """Return whether a file begins as every trace does."""
    if not path.is_file():
        return False
    with suppress(OSError, EOFError, PlayheadError), open_trace(path) as file:
        return b'"kind":"run-started"' in file.read(BEGINNING)
    return False
