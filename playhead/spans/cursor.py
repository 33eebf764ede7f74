"""What is known of a run at a destination: the spans that are settled there, and which process sends it now.

The cursor is `<folder of the trace>/.export/<destination>/<run id>.json`, written atomically and readable by its owner only. It
states that every span that closed up to the event `seq` is settled: accepted, or permanently refused. A missing, old or broken
cursor loses no span: unsettled spans are sent again with the same ids.

Who sends a run holds a lock on the file `<run id>.claim` beside it. The system ends the lock with its process; a forked child does not have it.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from playhead.trace.blobs import create_file, is_private, read_plain, run_id_of
from playhead.trace.format import checked_run_id

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.spans.destination import Destination

FOLDER: Final = ".export"
"""The folder of cursors, beside the traces."""
NOTHING: Final = -1
_LARGEST: Final = 1024 * 1024
"""Largest size of a cursor in bytes."""
_LONGEST_PID: Final = 20


class Reached(BaseModel, strict=True):
    """The progress of a run: the content of a cursor."""

    first: str = ""
    """The hash of the trace's first event."""
    destination: str = ""
    """The address, for people who read the file."""
    seq: int = NOTHING
    """Every span that closed up to this event is settled; -1: none."""
    accepted: int = 0
    """Spans that were accepted."""
    refused: int = 0
    """Spans that were refused for good."""
    complete: bool = False
    """Whether the run has ended and all of its spans are settled."""
    interrupted_at: int | None = None
    """The last event of the run when its open spans were sent as interrupted."""


class Cursor:
    """The file that stores the progress of a run's export."""

    def __init__(self, trace_path: Path, destination: Destination) -> None:
        self._destination = destination
        self.path = trace_path.parent / FOLDER / destination.key / f"{checked_run_id(run_id_of(trace_path))}.json"
        self._claim: int | None = None
        self._claim_path = self.path.with_suffix(".claim")
        self._saved = NOTHING

    def load(self, first: str) -> Reached:
        """Return the progress for the trace whose first event has this hash; no progress if the file is about another trace."""
        nothing = Reached(first=first, destination=self._destination.name)
        try:
            found = Reached.model_validate_json(read_plain(self.path, _LARGEST, os.geteuid()))
        except (OSError, ValueError):
            return nothing
        if (found.first, found.destination) != (first, self._destination.name):
            return nothing
        self._saved = found.seq
        return found

    def save(self, reached: Reached) -> None:
        """Save the progress, which never decreases. An error is logged, not raised: what is not saved is sent again."""
        if reached.seq < self._saved:
            return
        try:
            _make(self.path.parent)
            os.close(create_file(self.path, reached.model_dump_json().encode(), replace=True))
        except OSError as error:
            _warn_unwritten(error.strerror or type(error).__name__, self.path.parent)
            return
        self._saved = reached.seq

    def claim(self) -> int | None:
        """Claim the run for this process; return the process that sends it there already.

        Where files cannot be locked (on Windows, or in a folder that cannot be written), nothing is claimed.
        """
        try:
            import fcntl  # noqa: PLC0415 - not on Windows

            _make(self.path.parent)
            claim = os.open(self._claim_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.lockf(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(claim, 0)
            os.write(claim, str(os.getpid()).encode())
            self._claim = claim
        except BlockingIOError:
            holder = os.read(claim, _LONGEST_PID)
            os.close(claim)
            return int(holder) if holder.isdigit() else 0
        except (ImportError, OSError):
            pass
        return None

    def release(self) -> None:
        """Give the claim up; does nothing without one."""
        claim, self._claim = self._claim, None
        if claim is not None:
            self._claim_path.unlink(missing_ok=True)  # before another process can lock it
            os.close(claim)


@lru_cache(maxsize=16)
def _warn_unwritten(why: str, folder: Path) -> None:
    """Warn about a folder in which progress cannot be saved; once each."""
    logging.getLogger("playhead").warning("what was sent cannot be written down: %s: %s", why, folder)


def _make(folder: Path) -> None:
    """Create the folder for its owner only; raises `OSError` when others can write to it."""
    for each in (folder.parent, folder):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700)
        if not is_private(each, os.geteuid()):
            raise PermissionError(1, "others can write into it", str(each))
