"""What was acknowledged, on disk until it is recorded: a file for each body, written whole before anybody is told.

The files are what `playhead import` reads, so that nothing is lost even when no collector is started again.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.importing.collect.bodies import SUFFIXES, Body, RefusedError, read_body
from playhead.trace.blobs import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = ".collect"
"""The spool's name in a folder of traces."""
_PARTIAL: Final = ".part"


class Spool:
    """The bodies that are not recorded yet. One collector at a time may have it."""

    def __init__(self, folder: Path) -> None:
        """Open the spool.

        Raises:
            UsageError: another collector has it.
            OSError: the folder cannot be made.
        """
        self.folder = folder
        self._numbers = count()
        self.unread: list[Path] = []
        """Files of an earlier collector that cannot be read; they are left where they are."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
        self._lock: Any = (folder / "lock").open("w")  # held as long as the collector runs
        if not _locked(self._lock):
            self._lock.close()
            raise UsageError(
                f"another `playhead collect` writes into {folder.parent}; stop it, or give another --trace-dir"
            )

    def put(self, body: Body) -> Path:
        """Write a body so that it survives a crash of the machine, and return its file.

        Raises:
            OSError: it cannot be written.
        """
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(self._numbers)}{SUFFIXES[body.content_type]}"
        partial, path = self.folder / f"{name}{_PARTIAL}", self.folder / name
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body.content)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
            sync_folder(self.folder)  # its name too
        except OSError:
            with suppress(OSError):  # a full disk: nothing of it stays
                partial.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            raise
        return path

    def left(self) -> Iterator[tuple[Path, Body]]:
        """Yield the bodies that an earlier collector had acknowledged and not recorded, in their order.

        One that was never acknowledged, because its file is not whole, is removed.
        """
        types = {suffix: content_type for content_type, suffix in SUFFIXES.items()}
        for path in sorted(self.folder.iterdir()):
            if path.suffix == _PARTIAL:
                path.unlink(missing_ok=True)
            elif path.suffix in types:
                try:
                    yield path, read_body(types[path.suffix], path.read_bytes())
                except (RefusedError, OSError):
                    self.unread.append(path)

    def close(self) -> None:
        """Let another collector have it."""
        self._lock.close()


def _locked(file: Any) -> bool:  # noqa: ANN401 - an open file
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
