"""From the options of a command line to the folder of traces, and what to say of a file that is not whole."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import click

from playhead.cli.output import note

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording
    from playhead.trace.store import TraceStore

REPLAYS: Final = "playhead.replays"
"""Where a command keeps whether replays count as runs."""
NEWEST: Final = 20
"""Runs that are taken when none is named."""
STATES: Final = {
    "open": "has no end: it is still running, or was killed",
    "truncated": "is cut off: what came after is not known",
    "damaged": "is damaged, and what it says may not be what happened; `playhead check` says where",
}


def open_store(trace_dir: Path | None, context: click.Context | None = None) -> TraceStore:
    """Return the folder of traces that the option, the environment or the settings name."""
    from playhead.trace.store import TraceStore

    context = context or click.get_current_context(silent=True)
    replays = context is not None and context.meta.get(REPLAYS, False)
    return TraceStore((trace_dir or _default_trace_dir()).expanduser(), replays=replays)


def _default_trace_dir() -> Path:
    from playhead.settings import load_settings  # costs 70 ms, and only without --trace-dir

    return load_settings().trace_dir


def option_of(trace_dir: Path | None) -> str:
    """Return the option with which a command that is suggested finds the same traces."""
    return "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"


def noted(recording: Recording) -> Recording:
    """Return the recording; says on stderr when its file is not whole."""
    if recording.status != "closed":
        note(f"{recording.path.name} {STATES[recording.status]}")
    return recording
