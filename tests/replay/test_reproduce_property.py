"""`reproduce(record(x)) == x`, for random agents."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from playhead import PlayheadError, load_recording
from playhead.replay import reproduce
from playhead.trace.events import ToolCallCompleted
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = sample(360, 40)
GROUPS = sample(20, 2)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
async def test_every_event_comes_out_the_same(group: int, tmp_path: Path) -> None:
    """Whatever random agents did, a replay from the file alone, and one with the agent's code, repeat every event."""
    for seed in range(group * AGENTS // GROUPS, (group + 1) * AGENTS // GROUPS):
        outside = Outside()
        agent = random_agent(seed, outside, trace=tmp_path)
        with suppress(PlayheadError):
            await agent.run("Do it.", run_id=f"run-{seed}")
        before = outside.copy()
        recording = load_recording(tmp_path / f"run-{seed}.jsonl")
        assert (recording.status, recording.problems) == ("closed", ()), seed
        for outcome in (await reproduce(recording), await reproduce(recording, agent=agent)):
            assert outcome.divergences == (), (seed, outcome.divergences[0])
            assert outcome.identical
            assert not outcome.cut_short
        assert outside == before, seed


@pytest.mark.slow
@pytest.mark.parametrize("group", range(sample(4, 1)))
async def test_a_recording_cut_anywhere_is_reproduced_up_to_there(group: int, tmp_path: Path) -> None:
    """A run that was killed between any two events gives back what it had done, and says that it was cut short."""
    for seed in range(group * 3, group * 3 + 3):
        with suppress(PlayheadError):
            await random_agent(seed, Outside(), trace=tmp_path).run("Do it.", run_id=f"run-{seed}")
        lines = (tmp_path / f"run-{seed}.jsonl").read_bytes().splitlines(keepends=True)
        for kept in range(1, len(lines)):
            path = tmp_path / f"cut-{seed}-{kept}.jsonl"
            path.write_bytes(b"".join(lines[:kept]))
            outcome = await reproduce(load_recording(path))
            assert outcome.divergences == (), (seed, kept, outcome.divergences[0])
            assert outcome.status == "open"


@pytest.mark.slow
async def test_the_random_agents_cover_the_kernel(tmp_path: Path) -> None:
    """The property says something: the agents end in every way, and do what makes replays go wrong elsewhere."""
    endings, errors, kinds = set(), set(), set()
    out_of_order = same_agent_beside_itself = 0
    for seed in range(160):
        with suppress(PlayheadError):
            await random_agent(seed, Outside(), trace=tmp_path).run("Do it.", run_id=f"run-{seed}")
        recording = load_recording(tmp_path / f"run-{seed}.jsonl")
        assert recording.ending is not None
        endings.add(recording.ending.terminated_by)
        kinds |= set(recording.counts())
        done = [(each, each.event) for each in recording.records if isinstance(each.event, ToolCallCompleted)]
        errors |= {event.error.type for _, event in done if event.error}
        places = [(record.iteration, event.position) for record, event in done if record.owner == "root"]
        out_of_order += places != sorted(places)
        turns = [owner.rsplit(".", 1)[0] for owner in recording.owners if owner != "root"]
        same_agent_beside_itself += len(turns) > len(set(turns))
    assert endings >= {
        "end_turn", "final_answer", "final_answer_tool", "llm_error", "max_iterations", "output_truncated",
        "required_tools_missing",
    }  # fmt: skip
    assert errors >= {
        "AgentFailed", "ApprovalDenied", "InvalidArguments", "NotYet", "Timeout", "ToolCallError", "UnknownTool",
        "ValueError",
    }  # fmt: skip
    assert kinds >= {"agent-started", "approval-decided", "llm-retried", "nudge-issued"}
    assert out_of_order > 16
    assert same_agent_beside_itself > 10
