"""From a reference to a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead.settings import load_settings
from playhead.trace.recording import read_recording
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from playhead.trace.recording import Recording


def read_reference(reference: str | Path, trace_dir: str | Path | None = None) -> Recording:
    """Return the recording that a reference means; see `playhead.load_recording`."""
    folder = Path(trace_dir) if trace_dir is not None else load_settings().trace_dir
    return read_recording(TraceStore(folder.expanduser()).resolve(reference))
