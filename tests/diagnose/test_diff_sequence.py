"""The edit script makes the one sequence of the other, whatever they are, and in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.recording import Recording
from playhead.trace.events import RunStarted, ToolCallCompleted, ToolCallStarted
from playhead.trace.header import AgentHeader
from playhead.trace.line import Record
from playhead.trace.values import json_hash
from tests.diagnose.edits import apply_edits, tool_sequence
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead.diagnose.diff_types import ToolEdit

Calls = list[tuple[str, str]]
"""Tools and keys."""


def recording_of(made: Iterable[tuple[str, str]]) -> Recording:
    """Return a recording of these calls, one a turn; a tool's name may say which agent below makes the call."""
    header = AgentHeader(name="a", model="m/x")
    records = [Record(0, 0, "root", None, RunStarted(format="2.0", run_id="r", agent=header, task="go"))]
    for turn, (tool, key) in enumerate(made):
        owner, _, name = tool.rpartition(":")
        where = f"root/{owner}" if owner else "root"
        args = {"key": key}
        begin = ToolCallStarted(call_id=f"c{turn}", tool=name, position=0, args=args, args_hash=json_hash(args))
        end = ToolCallCompleted(call_id=f"c{turn}", tool=name, position=0, ok=True, result=key)
        records += [Record(len(records) + n, 0, where, turn, event) for n, event in enumerate((begin, end))]
    return Recording(Path("r.jsonl"), tuple(records), ())


def kinds(edits: Sequence[ToolEdit]) -> list[tuple[str, str, int | None, int | None]]:
    """Return the edits in short."""
    return [(each.kind, each.tool, each.original_place, each.replay_place) for each in edits]


def edits_of(original: Calls, replay: Calls) -> list[tuple[str, str, int | None, int | None]]:
    """Return the edits between two runs, which have to make the one of the other."""
    one, other = recording_of(original), recording_of(replay)
    edits = diff_recordings(one, other).tool_sequence
    assert apply_edits(edits, tool_sequence(one)) == tool_sequence(other)
    return kinds(edits)


few = st.lists(st.tuples(st.sampled_from(["a", "b", "x@0.0:a"]), st.sampled_from(["1", "2"])), max_size=30)
many = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("123456")), max_size=60)


@settings(max_examples=sample(100, 16), deadline=None)
@given(few | many, few | many)
def test_the_edits_make_the_replay_of_the_original(original: Calls, replay: Calls) -> None:
    """For any two sequences, with repetitions, empty or long; and no call that both have is added and removed."""
    one, other = recording_of(original), recording_of(replay)
    diff = diff_recordings(one, other)
    left, right = tool_sequence(one), tool_sequence(other)
    assert apply_edits(diff.tool_sequence, left) == right
    assert (diff.tool_sequence == ()) == (left == right)
    added = {(e.owner, e.tool, e.args_hash) for e in diff.tool_sequence if e.kind == "added"}
    removed = {(e.owner, e.tool, e.args_hash) for e in diff.tool_sequence if e.kind == "removed"}
    assert not added & removed


def test_each_kind_of_edit() -> None:
    """A call that was put in, left out, moved, or called otherwise is one edit, and marks no other call."""
    abc = [("a", "1"), ("b", "1"), ("c", "1")]
    assert edits_of(abc, abc) == []
    assert edits_of(abc, [("x", "1"), *abc]) == [("added", "x", None, 0)]
    assert edits_of(abc, abc[1:]) == [("removed", "a", 0, None)]
    assert edits_of(abc, [*abc[1:], abc[0]]) == [("reordered", "a", 0, 2)]
    assert edits_of(abc, [abc[0], ("b", "2"), abc[2]]) == [("arguments", "b", 1, 1)]
    assert edits_of([], abc[:1]) == [("added", "a", None, 0)]
    assert edits_of(abc[:1], []) == [("removed", "a", 0, None)]
    assert edits_of([("a", "1")] * 3, [("a", "1")] * 2) == [("removed", "a", 2, None)]
    assert edits_of([], []) == []


def test_a_call_that_became_another_tool_is_removed_and_added() -> None:
    """Only the same tool can have been called with other arguments."""
    found = edits_of([("a", "1"), ("b", "1")], [("a", "1"), ("c", "1")])
    assert sorted(found, key=str) == [("added", "c", None, 1), ("removed", "b", 1, None)]


def test_the_difference_of_arguments_is_told() -> None:
    """Which argument it is, and both values."""
    (edit,) = diff_recordings(recording_of([("a", "1")]), recording_of([("a", "2")])).tool_sequence
    assert [(each.path, each.original, each.replay) for each in edit.differences] == [("key", "1", "2")]
    assert (edit.original_args, edit.replay_args) == ({"key": "1"}, {"key": "2"})
