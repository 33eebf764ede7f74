from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import context_profile, tool
from playhead.kernel.context.profiles import GUIDANCE, TIERS
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.guidance import Guidance
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, record

if TYPE_CHECKING:
    from pathlib import Path

WORDS = Guidance(
    tool_guidance="Tools.", task_framing="Frame.", error_recovery="Recover.",
)  # fmt: skip


@tool(read_only=True)
async def look(key: str) -> str:
    """Look."""
    if key == "bad":
        raise ValueError("not there")
    return f"found {key}"


async def run_with(folder: Path, turns: list[Any], **options: Any) -> Ran:
    """Run an agent that is told everything, reproduced from its file alone."""
    settings = {"profile": context_profile("mid", guidance=WORDS), "compression": False, "required_tools": {"look": 2}}
    run = await record(folder, turns, look, **{**settings, **options})
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


def users(run: Ran) -> list[str]:
    """Return what the last request said to the model."""
    return [str(each.content) for each in run.model.requests[-1].messages if each.role == "user"]


async def test_each_at_its_place(tmp_path: Path):
    """A word is said where it belongs, as a nudge that hooks may change, and none of those that are said once twice."""
    turns = [call("look", key="bad"), call("look", key="a"), call("look", key="b"), text("last")]
    run = await run_with(tmp_path, turns)
    system = str(run.model.requests[0].messages[0].content)
    assert system.endswith("\n\nTools.")
    assert users(run) == ["Do it.", "Frame.", "Recover."]
    assert [event.nudge for event in run.events("nudge-issued")] == [
        "task-framing", "error-recovery",
    ]  # fmt: skip
    assert (run.result.output, run.result.terminated_by) == ("last", "end_turn")
    assert run.recording.header.agent.profile.guidance == WORDS  # type: ignore[union-attr]


async def test_without_a_profile(tmp_path: Path):
    """Nothing is said."""
    run = await run_with(tmp_path, [call("look", key="bad"), text("done")], profile=None, required_tools=())
    assert (users(run), run.events("nudge-issued")) == (["Do it."], [])


@pytest.mark.parametrize("tier", TIERS)
def test_the_texts_of_the_tiers(tier: Any):
    """Stand in the profile."""
    assert context_profile(tier).guidance == GUIDANCE.get(tier, Guidance())
