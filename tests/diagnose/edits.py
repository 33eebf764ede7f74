"""The edit script of a diff, applied: what the property tests hold the script against."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from playhead.diagnose.diff_calls import RunCalls
from playhead.diagnose.diff_types import ToolEdit, ToolUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.diagnose.recording import Recording


def apply_edits(edits: Iterable[ToolEdit], original: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the replay's sequence of calls, made of the original's."""
    gone: set[int] = set()
    placed: dict[int, ToolUse] = {}
    for edit in edits:
        if edit.original_place is not None:
            gone.add(edit.original_place)
        if edit.replay_place is not None:
            placed[edit.replay_place] = ToolUse(edit.owner, edit.tool, edit.args_hash)
    kept = deque(use for place, use in enumerate(original) if place not in gone)
    places = range(len(kept) + len(placed))
    return tuple(placed[place] if place in placed else kept.popleft() for place in places)


def tool_sequence(recording: Recording, *, not_entered: Iterable[str] = ()) -> tuple[ToolUse, ...]:
    """Return the tool calls of a run in the order of asking, without those of owners that are not entered."""
    calls = RunCalls(recording)
    calls.leave_out(not_entered)
    return tuple(call.use for call in calls.all)
