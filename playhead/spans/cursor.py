"""How far a run has come on its way to a destination, so that no span is sent again.

`<folder of the trace>/.export/<destination>/<run id>.json`, written whole and readable by its owner only. It says that
every span which closed up to the event `seq` is settled: accepted, or refused for good. A file that is missing, older or
broken loses no span: spans that it does not mention are sent again, under the same ids.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from playhead.trace.blobs import create_file, is_private, read_plain, run_id_of
from playhead.trace.format import checked_run_id

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.spans.destination import Destination

FOLDER: Final = ".export"
"""Beside the traces."""
_LARGEST: Final = 1024 * 1024
"""Bytes of a cursor's file."""
NOTHING: Final = -1


class Reached(BaseModel, strict=True):
    """How far a run has come."""

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


class _File(BaseModel, strict=True):
    """The content of a cursor's file."""

    destination: str
    account: str
    run: str
    first: str
    """The hash of the trace's first event."""
    reached: Reached


class Cursor:
    """The file that says how far a run has come."""

    def __init__(self, trace_path: Path, destination: Destination) -> None:
        self._run, self._destination = checked_run_id(run_id_of(trace_path)), destination
        self.path = trace_path.parent / FOLDER / destination.key / f"{self._run}.json"
        self._saved = NOTHING
        self.error: str | None = None
        """Why it could not be written the last time; None when it could."""

    def load(self, first: str) -> Reached:
        """Return what was reached by the trace whose first event has this hash; nothing when the file is not about it."""
        try:
            file = _File.model_validate_json(read_plain(self.path, _LARGEST, os.geteuid()))
        except (OSError, ValueError):
            return Reached()
        if file != self._file(first, file.reached):
            return Reached()
        self._saved = file.reached.seq
        return file.reached

    def save(self, first: str, reached: Reached) -> None:
        """Write down what was reached; never less than before, and never raises. A full disk may have room later."""
        if reached.seq < self._saved:
            return
        try:
            _make(self.path.parent)
            os.close(create_file(self.path, self._file(first, reached).model_dump_json().encode(), replace=True))
        except OSError as error:
            self.error = error.strerror or type(error).__name__
            return
        self._saved, self.error = reached.seq, None

    def _file(self, first: str, reached: Reached) -> _File:
        there = self._destination
        return _File(destination=there.name, account=there.account, run=self._run, first=first, reached=reached)

    @property
    def warning(self) -> str:
        """The sentence about a cursor that could not be written."""
        return f"what was sent cannot be written down: {self.error}: {self.path}"


def _make(folder: Path) -> None:
    """Make the folder for its owner only; raises `OSError` when others can write into it."""
    for each in (folder.parent, folder):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700)
        if not is_private(each, os.geteuid()):
            raise PermissionError(1, "others can write into it", str(each))
