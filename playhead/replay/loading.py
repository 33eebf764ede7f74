"""From a reference to a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead.settings import load_settings
from playhead.trace.recording import read_recording
from playhead.trace.store import TraceStore

if TYPE_CHECKING:
    from playhead.trace.recording import Recording


def load_recording(reference: str | Path, trace_dir: str | Path | None = None) -> Recording:
    """Return the recording that a reference means: a run id or its unique prefix, `latest`, `latest~2`, or a path.

    A damaged file loads too: `Recording.status` and `Recording.problems` say what is wrong, and replays refuse it.

    Raises:
        TraceNotFoundError, AmbiguousRunError, RunIdError: no run, or more than one, or no possible id.
        NotATraceError, NewerFormatError: the file cannot be read as a trace.
    """
    folder = Path(trace_dir) if trace_dir is not None else load_settings().trace_dir
    return read_recording(TraceStore(folder.expanduser()).resolve(reference))
