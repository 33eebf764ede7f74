"""Every policy of Playhead's own works in a replay that has nothing but the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from playhead import Overrides, load_recording, tool
from playhead.compose import policies
from playhead.compose.policies import LoopDetection, Switching
from playhead.compose.rebuilding import rebuilt
from playhead.errors import NotReplayableError
from playhead.replay import replay, reproduce, resume
from playhead.testing import ScriptedModel, call, text
from playhead.trace.events import NudgeIssued, ToolCallCompleted
from playhead.trace.header import HookInfo
from tests.kernel.runs import make_agent, record_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Agent

WORDS = "the lake is deep and cold and full of large grey fish today"


class Height(BaseModel):
    """How high something is."""

    metres: int


@tool(read_only=True)
async def look(key: str) -> str:
    """Look a fact up."""
    return f"{key}: {WORDS}"


@tool(read_only=True)
async def measure() -> str:
    """Measure it."""
    return "42 metres"


CHECKED = text('{"reason": "It does.", "verified": true}')
TURNS: tuple[Any, ...] = (
    text('{"reason": "It is asked for.", "tools": [{"tool": "measure"}]}'),
    call("look", key="a"),
    text('{"metres": 1}'),
    call("measure"),
    call("look", key="b"),
    call("look", key="b"),
    text("high"),
    text('{"metres": 41}'),
    text('{"metres": 42}'),
    CHECKED,
)


def agent_with_all(folder: Path | None, turns: Any = TURNS, **options: Any) -> Agent:
    """Return an agent that has every policy."""
    blocks = [
        policies.require_tools(infer=True),
        policies.tool_budgets({"look": 2}),
        policies.novelty(0.5),
        policies.detect_loops(LoopDetection(identical_calls=2)),
        policies.switch_strategy(Switching(fallback_strategy="reflexion"), LoopDetection(identical_calls=5)),
        policies.output_retries(3),
        policies.min_iterations(2),
        policies.validate(lambda height: height.metres > 40),
        policies.done_when(lambda height: height.metres != 41),
        policies.verify("loop"),
    ]
    return make_agent(
        folder, list(turns), look, measure, output_type=Height, compose=blocks, max_iterations=20, **options
    )


async def test_reproduced_and_replayed_without_code(tmp_path: Path):
    """Data in the header is enough: the same events come again, and a live model is held by the same rules."""
    run = await record_agent(agent_with_all(tmp_path), tmp_path)
    assert (run.result.output, run.result.verified, run.result.success) == (Height(metres=42), True, True)
    names = [(each.role, each.name) for each in run.recording.header.agent.hooks]
    assert names == [
        ("policy", each)
        for each in (
            "output_type", "require_tools", "tool_budgets", "novelty", "detect_loops", "switch_strategy", "output_retries",
            "min_iterations", "validate", "done_when", "verify",
        )
    ]  # fmt: skip
    nudges = [event.nudge for event in run.events("nudge-issued")]
    assert sorted(set(nudges)) == ["budget", "loop-detected", "novelty", "output-rejected", "required-tools"]
    again = await reproduce(tmp_path / "run.jsonl")
    assert again.identical, again.divergences
    same = await replay(tmp_path / "run.jsonl", Overrides(model=ScriptedModel(list(TURNS))), trace=None)
    assert (same.stopped, same.run.output, same.verdict) == (None, {"metres": 42}, "same")
    assert [record.event.nudge for record in same.recording.records if isinstance(record.event, NudgeIssued)] == nudges
    turns = [TURNS[0], *[call("look", key="a")] * 4, *TURNS[2:4], *TURNS[8:]]
    other = await replay(
        tmp_path / "run.jsonl", Overrides(model=ScriptedModel(turns)), on_missing="lenient", trace=None
    )
    refused = [
        record.event.call_id
        for record in other.recording.records
        if isinstance(record.event, ToolCallCompleted) and record.event.error and record.event.error.type == "Refused"
    ]
    assert len(refused) == 2
    assert other.run.output == {"metres": 42}


async def test_an_answer_without_a_recorded_verdict_stops_the_replay(tmp_path: Path):
    """A replay without the validator's code cannot judge a new answer: it stops and says what to pass."""
    await record_agent(agent_with_all(tmp_path), tmp_path)
    turns = [*TURNS[:7], text('{"metres": 77}')]
    other = await replay(tmp_path / "run.jsonl", Overrides(model=ScriptedModel(turns)), trace=None)
    assert other.verdict == "inconclusive"
    assert "pass agent=, whose code looks at the answers" in str(other.stopped)


async def test_resumed(tmp_path: Path):
    """A resumed run keeps its policies, which know the recorded calls; their recorded questions are not sent again."""
    run = await record_agent(agent_with_all(tmp_path), tmp_path)
    lines = (tmp_path / "run.jsonl").read_bytes().splitlines(keepends=True)
    responded = [record.seq for record in run.recording.records if record.kind == "tool-call-completed"]
    dead = tmp_path / "dead"
    dead.mkdir()
    (dead / "run.jsonl").write_bytes(b"".join(lines[: responded[-2] + 1]))
    result = await resume(agent_with_all(None, TURNS[4:]), load_recording(dead / "run.jsonl"), trace=None)
    assert (result.output, result.terminated_by) == (Height(metres=42), "end_turn")


def test_a_policy_that_this_version_does_not_know():
    """It is not left out without a word: what an agent was held to would not hold in the replay."""
    unknown = HookInfo(role="policy", at="", name="sworn", settings={})
    with pytest.raises(NotReplayableError, match="sworn of the recorded agent cannot be rebuilt"):
        rebuilt([unknown])
