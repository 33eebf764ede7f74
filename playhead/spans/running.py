"""Whether a run whose trace has no end goes on: what its lock says, and what cannot be known of another machine."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from playhead.errors import RunIdError

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.control import Control

SILENT_S: Final = 600.0
"""Seconds without a word in its trace after which a run of another machine is over, if nobody holds its lock. A call of a
model ends by then; and what goes on after all sends its spans when they close."""


def is_over(path: Path, *, assume_dead: bool = False) -> bool:
    """Return whether nothing more comes; `assume_dead`: also when that cannot be seen from here."""
    return not is_running(path) and (assume_dead or perhaps_on(path) is None)


def is_running(path: Path) -> bool:
    """Return whether a run goes on for certain: its process, wherever it is, holds the lock."""
    control = _control_of(path)
    return control is not None and control.held


def perhaps_on(path: Path) -> str | None:
    """Return the other machine on which a run may go on, as it calls itself; None when it does not, or the lock tells.

    A lock is not seen on every machine that sees the file, and a container that starts again has another name. So one
    that was silent for `SILENT_S` is over.
    """
    control = _control_of(path)
    if control is None or control.process.host == os.uname().nodename or control.held:
        return None
    return control.process.host if silent_s(path) < SILENT_S else None


def silent_s(path: Path) -> float:
    """Return the seconds since something was written into a trace."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return SILENT_S


def _control_of(path: Path) -> Control | None:
    try:
        from playhead.trace.control import Control  # noqa: PLC0415 - not on Windows, where nothing is known of it

        return Control.of(path)
    except (ImportError, RunIdError):
        return None
