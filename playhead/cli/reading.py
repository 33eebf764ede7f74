"""From a reference to a recording, and what to say when its file is not whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.cli.output import note
from playhead.trace.recording import read_recording

if TYPE_CHECKING:
    from playhead.trace.recording import Recording
    from playhead.trace.store import TraceStore

STATES: Final = {
    "open": "has no end: it is still running, or was killed",
    "truncated": "is cut off: what came after is not known",
    "damaged": "is damaged, and what it says may not be what happened; `playhead check` says where",
}


def read_run(store: TraceStore, reference: str) -> Recording:
    """Return the recording that a reference means, however damaged.

    Raises:
        TraceNotFoundError, AmbiguousRunError, RunIdError, NotATraceError, TraceFormatError: there is none to read.
    """
    return read_recording(store.resolve(reference))


def note_state(recording: Recording) -> None:
    """Say on stderr when the file is not whole."""
    if recording.status != "closed":
        note(f"{recording.path.name} {STATES[recording.status]}")
