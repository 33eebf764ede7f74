"""What a comparison says, and that it cannot fail in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent
from playhead.diagnose.divergence import Comparison
from playhead.replay import load_recording
from playhead.replay.divergence import divergences_of
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import FinalAnswer
from tests.diagnose.test_diff import lookup

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording
    from playhead.trace.line import Record


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A recording with two calls in one turn."""
    model = ScriptedModel([calls(call("lookup", key="a"), call("lookup", key="b")), text("done")])
    result = Agent(model, tools=[lookup], trace=tmp_path).run_sync("go")
    return load_recording(result.trace_path or "")


@pytest.mark.parametrize(
    ("recorded", "replayed", "what"),
    [
        (1, True, "output of final-answer differs"),
        (1, 1.0, "output of final-answer differs"),
        ({"a": [0, {"b": 1}]}, {"a": [0, {"b": 1.0}]}, "output.a[1].b of final-answer differs"),
        ({"a": None}, {}, "output.a of final-answer differs"),
        ([1], [1, 2], "output[1] of final-answer differs"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, None),
        ({"a": [float("nan")]}, {"a": [float("nan")]}, None),
        ("1", 1, "output of final-answer differs"),
    ],
)
def test_values_are_compared_as_they_are_written(
    recording: Recording, recorded: Any, replayed: Any, what: str | None
) -> None:
    """1, 1.0 and true are three values in a file; the order of keys is none, and not-a-number is itself."""

    def answered(output: Any) -> list[Record]:
        event = FinalAnswer(output=output)
        return [recording.records[0], recording.records[0]._replace(owner="root", event=event)]

    comparison = Comparison(answered(recorded), open_ended=False)
    for each in answered(replayed):
        comparison.add(each)
    assert [each.what for each in divergences_of(comparison, cut_short=False)] == ([what] if what else [])


def test_a_changed_an_extra_and_a_missing_event_are_named(recording: Recording) -> None:
    """Each is a divergence of its own, whatever else is the same."""
    records = list(recording.records)
    answer = next(index for index, record in enumerate(records) if record.kind == "final-answer")
    changed = records[answer]._replace(event=FinalAnswer(output="other"))
    for replayed, what in (
        ([*records[:answer], changed, *records[answer + 1 :]], "output of final-answer differs"),
        ([*records, records[1]._replace(owner="root/else@0.0")], "only the replay has tools-defined here"),
        (records[:-1], "the replay has no run-completed here"),
    ):
        comparison = Comparison(recording.records, open_ended=False)
        for record in replayed:
            comparison.add(record)
        assert [each.what for each in divergences_of(comparison, cut_short=False)] == [what]
