"""The way to a run that goes on in another process, and in words why there is none."""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError, RunEndedError, TraceError
from playhead.trace.blobs import run_id_of
from playhead.trace.control import Control
from playhead.trace.store import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.store import RunSummary

ENDED = ("done", "failed")


def reach(path: Path, otherwise: str) -> Control:
    """Return the control folder of a run that goes on; `otherwise` says what that means when it does not.

    Raises:
        RunEndedError: it has ended, or its process has.
        TraceError: its file cannot be read.
        PlayheadError: it cannot be reached from here.
    """
    run, control = summarise(path), Control.of(path)
    if control is None and run.status == "unreadable":
        what = "is no trace that can be read" if run.format is None else f"is in trace format {run.format}"
        raise TraceError(f"run {run_id_of(path)} cannot be reached: {path.name} {what}")
    if run.status in ENDED:
        raise RunEndedError(f"run {run_id_of(path)} has ended by {run.terminated_by}; {otherwise}")
    if control is None:
        raise PlayheadError(
            f"run {run_id_of(path)} cannot be reached: it has no end, but no control folder of yours beside its trace "
            "either. Its process is gone, or it runs on another machine, as another user, or in an older Playhead"
        )
    if control.process.host != os.uname().nodename:
        raise PlayheadError(f"run {control.run_id} runs on the machine {control.process.host!r}; {otherwise} from here")
    if not control.held:
        raise RunEndedError(
            f"run {control.run_id} does not go on: its process {control.process.pid} is gone, and the trace has no end; "
            f"{otherwise}"
        )
    return control


def ending_of(path: Path) -> RunSummary | None:
    """Return how a run ended, once its trace is closed."""
    run = summarise(path)
    return run if run.status in ENDED else None


def user() -> str:
    """Return who types."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in containers
        return f"user {os.getuid()}"
