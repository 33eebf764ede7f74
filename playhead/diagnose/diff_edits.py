"""What became of the tool calls: edits, results and stated reasons, from calls that belong together."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from playhead.diagnose.diff_calls import longest_increasing
from playhead.diagnose.diff_types import RationaleChange, ResultChange, ToolEdit
from playhead.diagnose.diff_values import differences, same
from playhead.trace.values import repair_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.diagnose.diff_calls import Alignment, Call
    from playhead.diagnose.diff_types import EditKind
    from playhead.trace.events import ToolCallCompleted
    from playhead.trace.values import JsonValue


def call_script(alignment: Alignment) -> tuple[ToolEdit, ...]:
    """Return every call, edited or the same, as a reader of the replay comes to it; what was removed stands where it was."""
    in_place = set(longest_increasing((a.place, b.place) for a, b in alignment.pairs))
    rows = [_edit(_kind(a, b, in_place), a, b) for a, b in alignment.pairs]
    paired = {id(call) for pair in alignment.pairs for call in pair}
    rows += [_edit("removed", call, None) for call in alignment.original.all if id(call) not in paired]
    rows += [_edit("added", None, call) for call in alignment.replay.all if id(call) not in paired]
    both = sorted((a.place, b.place) for a, b in alignment.pairs if _kind(a, b, in_place) != "reordered")

    def order(row: ToolEdit) -> tuple[float, int]:
        if row.replay_place is not None:
            return row.replay_place, 0
        place = row.original_place or 0
        before = bisect_left(both, (place, -1)) - 1
        return (both[before][1] + 0.5 if before >= 0 else -0.5), place

    return tuple(sorted(rows, key=order))


def _kind(a: Call, b: Call, in_place: set[tuple[int, int]]) -> EditKind:
    if a.use != b.use:
        return "arguments"
    return "same" if (a.place, b.place) in in_place else "reordered"


def _edit(kind: EditKind, a: Call | None, b: Call | None) -> ToolEdit:
    call = b or a
    assert call is not None  # noqa: S101 - an edit is of a call
    return ToolEdit(
        kind=kind,
        owner=call.use.owner,
        tool=call.use.tool,
        args_hash=call.use.args_hash,
        original_place=a.place if a else None,
        replay_place=b.place if b else None,
        original_seq=a.record.seq if a else None,
        replay_seq=b.record.seq if b else None,
        original_args=repair_json(a.event.args) if a else None,
        replay_args=repair_json(b.event.args) if b else None,
        differences=differences(a.event.args, b.event.args) if a and b and kind == "arguments" else (),
    )


def result_changes(alignment: Alignment) -> tuple[ResultChange, ...]:
    """Return the calls with the same arguments that something else came back from."""
    closed = [run.recording.ending is not None for run in (alignment.original, alignment.replay)]
    found = (
        _result_change(a, b)
        for a, b in _in_order(alignment)
        if a.use == b.use and (a.end or closed[0]) and (b.end or closed[1])
    )
    return tuple(each for each in found if each is not None)


def _result_change(a: Call, b: Call) -> ResultChange | None:
    one, other = a.end, b.end
    if (one is None and other is None) or same(_outcome(one), _outcome(other)):
        return None
    original, replay = _shown(one), _shown(other)
    return ResultChange(
        owner=a.use.owner,
        tool=a.use.tool,
        args=repair_json(a.event.args),
        original_seq=a.completed.seq if a.completed else None,
        replay_seq=b.completed.seq if b.completed else None,
        original_ok=one.ok if one else None,
        replay_ok=other.ok if other else None,
        original=repair_json(original),
        replay=repair_json(replay),
        rung=other.rung if other else None,
        differences=differences(original, replay) if one and other else (),
    )


def _outcome(end: ToolCallCompleted | None) -> JsonValue:
    return None if end is None else [end.ok, _shown(end)]


def _shown(end: ToolCallCompleted | None) -> JsonValue:
    if end is None or end.ok:
        return end.result if end else None
    return {"type": end.error.type, "message": end.error.message} if end.error else {"type": "error", "message": ""}


def rationale_changes(alignment: Alignment) -> tuple[RationaleChange, ...]:
    """Return the calls of both runs whose stated reason differs."""
    return tuple(
        RationaleChange(
            owner=a.use.owner,
            tool=a.use.tool,
            original_seq=a.record.seq,
            replay_seq=b.record.seq,
            original=reason_of(a),
            replay=reason_of(b),
        )
        for a, b in _in_order(alignment)
        if reason_of(a) != reason_of(b)
    )


def reason_of(call: Call) -> str | None:
    """Return the reason that the model stated for a call."""
    return call.event.rationale.why if call.event.rationale else None


def _in_order(alignment: Alignment) -> Iterator[tuple[Call, Call]]:
    yield from sorted(alignment.pairs, key=lambda pair: pair[0].place)
