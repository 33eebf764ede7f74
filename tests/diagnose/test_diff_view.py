"""A diff as a page: exactly this, in eighty columns, without colour."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.diagnose.diff import diff_recordings
from playhead.diagnose.diff_view import diff_document
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace.types import Usage
from tests.diagnose.planted import altered, recording_of
from tests.diagnose.recordings import printed
from tests.diagnose.test_diff_sequence import recording_of as calls_of
from tests.options import grouped

if TYPE_CHECKING:
    from playhead.diagnose.diff_types import RunDiff
    from playhead.diagnose.recording import Recording

GOLDEN = Path(__file__).with_name("diff.txt")
"""Rewritten, to be looked at and committed, by: PLAYHEAD_GOLDEN=write python -m pytest tests/diagnose"""
TRACES = Path(__file__).parents[2] / "traces"

PROMPT = "You answer questions on mountains.\nTake every height from the table.\nAnswer in feet."
STRICT = "You answer questions on mountains.\nTake every height from the table, and check it twice.\nAnswer in metres."


def plain(diff: RunDiff, width: int = 80) -> str:
    """Return what the diff looks like on paper."""
    return printed(diff_document(diff), width=width)


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a height up."""
    return {"Mount Zed": "4,180 feet", "Mount Ypsilon": "3,950 feet"}.get(key, "unknown")


@tool(read_only=True)
def convert(feet: float, digits: int = 0) -> float:
    """Return feet in metres."""
    return round(feet * 0.3048, digits)


def reason(why: str, number: int = 1) -> str:
    """Return a stated reason as a model writes it."""
    return f'<rationale call="{number}">{{"why": "{why}"}}</rationale>'


def run(folder: Path, run_id: str, turns: list[Any], **options: Any) -> Recording:
    """Run an agent on a script, and return its recording."""
    model = ScriptedModel(turns, name="scripted/guide")
    defaults: dict[str, Any] = {"system_prompt": PROMPT, "parameters": {"temperature": 0}, "meta_tools": ()}
    agent = Agent(
        model,
        **grouped(name="guide", tools=[lookup, convert], trace=folder, clock=TickingClock, **{**defaults, **options}),
    )
    agent.run_sync("Which is higher, Mount Zed or Mount Ypsilon?", run_id=run_id)
    return load_recording(folder / f"{run_id}.jsonl")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Recording, Recording]:
    """A run, and the same run with another prompt."""
    both = calls(
        call("lookup", key="Mount Zed"),
        call("lookup", key="Mount Ypsilon"),
        text=reason("the table has both heights") + reason("the other height", 2),
        usage=Usage(input_tokens=210, output_tokens=40),
    )
    original = run(tmp_path, "original", [both, text("Mount Zed, at 4,180 feet.")])
    checked = calls(
        call("lookup", key="Mount Zed"),
        call("convert", feet=4180),
        text=reason("I was told to check, and to answer in metres") + reason("metres are asked for", 2),
        usage=Usage(input_tokens=230, output_tokens=61),
    )
    replay = run(
        tmp_path,
        "replay",
        [both, checked, text("Mount Zed, at 1,274 metres.")],
        system_prompt=STRICT,
        parameters={"temperature": 0.7},
    )
    header = {"replay_of": "original", "overrides": {"system_prompt": STRICT, "temperature": 0.7}}
    return original, recording_of(altered(replay, 0, **header))


def test_the_page_of_a_replay_with_another_prompt(pair: tuple[Recording, Recording]) -> None:
    """What changed, where the runs part, what was decided and why, and what became of calls, answer and cost."""
    shown = plain(diff_recordings(*pair))
    if os.environ.get("PLAYHEAD_GOLDEN") == "write":
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [20, 80])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    """Whatever two runs are compared, at any width, and nothing raw reaches the terminal."""
    recordings = [load_recording(path) for path in sorted(TRACES.glob("*.jsonl"))]
    for one, other in zip(recordings, [*recordings[1:], recordings[0]], strict=True):
        shown = plain(diff_recordings(one, other), width)
        assert max(map(len, shown.splitlines())) <= width


def test_a_run_that_has_no_end_is_not_called_different(pair: tuple[Recording, Recording]) -> None:
    """Nobody knows how it would have ended; and a replay that was stopped is no answer to compare either."""
    original, replay = pair
    cut = recording_of(original.records[:-2])
    assert plain(diff_recordings(original, cut)).splitlines()[-1] == (
        "inconclusive: the replay has no recorded end; what is there does not differ"
    )
    assert plain(diff_recordings(cut, replay)).splitlines()[-1] == (
        "inconclusive: the original has no recorded end; what is there differs"
    )
    last = len(replay.records) - 1
    stopped = recording_of(altered(replay, last, status="failed", terminated_by="replay_stopped", error="a miss"))
    lines = plain(diff_recordings(original, stopped)).splitlines()
    assert lines[-1] == "stopped: the replay left the recording; its error above says where"
    assert "  + error: a miss" in lines


def test_long_lists_are_cut_and_say_so() -> None:
    """A page stays a page, however much differs."""
    made = [("lookup", str(number)) for number in range(200)]
    many = calls_of(made)
    shown = plain(diff_recordings(many, calls_of([])))
    assert "  … and 180 more edits (--json has all)" in shown.splitlines()
    assert len(shown.splitlines()) < 60
