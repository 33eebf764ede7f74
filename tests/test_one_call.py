"""One call for one task: react, plan_and_execute and reflexion, and the limits that each takes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Context, plan_and_execute, react, reflexion, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Usage
from tests.kernel.plan.steps import plan, tool_step, verdict

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def height(place: str) -> int:
    """Return the height of a mountain."""
    return len(place)


ASKED = [call("height", place="Zed"), text("3")]
PLANNED = [plan(tool_step("height", args={"place": "Zed"})), verdict(), text("3")]
JUDGED = [*ASKED, text(json.dumps({"issues": [], "score": 9, "satisfied": True}))]


@pytest.mark.parametrize(
    ("one_call", "turns", "strategy"),
    [
        (react, ASKED, "reactive"),
        (plan_and_execute, PLANNED, "plan-execute-reflect"),
        (reflexion, JUDGED, "reflexion"),
    ],
)
async def test_a_task_is_answered(tmp_path: Path, one_call: Any, turns: list[Any], strategy: str):
    """Each runs a task on its strategy with the tools; the run has a trace that reproduces."""
    result = await one_call(
        "How high?", ScriptedModel(turns), tools=[height], context=Context(rationale=False), trace=tmp_path
    )
    assert (result.output, result.success, result.strategy_used) == ("3", True, strategy)
    assert (await reproduce(result.trace_path)).identical


async def test_a_limit_of_tokens_stops_the_run():
    """It is a clean stop that says what was spent, with the steps until then."""
    turns = [replace(call("height", place="Zed"), usage=Usage(input_tokens=2_000, output_tokens=100))] * 8
    result = await react("How high?", ScriptedModel(turns), tools=[height], max_tokens=6_000, trace=None)
    assert (result.status, result.terminated_by, result.error) == ("done", "budget_limit", None)
    assert result.usage.total_tokens <= 6_000
    assert [step.content for step in result.steps if step.type == "observation"] == ["3", "3"]


async def test_a_limit_of_time_stops_the_run():
    """The call in flight is cancelled."""

    @tool(read_only=True)
    async def wait() -> str:
        """Wait for nothing."""
        await anyio.sleep(30)
        return "never"

    result = await react("Go.", ScriptedModel([call("wait")]), tools=[wait], max_time=0.2, trace=None)
    assert (result.status, result.terminated_by, result.output) == ("done", "timeout_after", None)
