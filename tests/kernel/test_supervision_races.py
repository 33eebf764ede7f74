"""Ends that meet: hostile ids, slow code of the user's, a second cancellation, and a clock that nobody could look at."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.compose.killswitches import timeout_after
from playhead.testing import ScriptedModel, call, text
from playhead.trace.integrity import check_trace
from playhead.trace.types import ToolCall
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: dict[str, Any] = {"rationale": False, "meta_tools": ()}


@tool(read_only=True)
def look(key: str) -> str:
    """Look."""
    return f"found {key}"


@tool(timeout=None)
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(3600)
    return "late"


def kinds(path: Path) -> list[str]:
    """Return the kinds of a trace that is closed and sound."""
    assert check_trace(path).ok
    return [record.kind for record in load_recording(path).records]


@pytest.mark.parametrize("name", ["agent", "", "request 0.0", "0.0", "1.0", "call agent"])
def test_a_call_may_have_any_id(tmp_path: Path, name: str):
    """Whatever a provider calls a call: the run that made it ends, and is recorded to its end."""
    turn = text("")
    turns = [type(turn)(calls=(ToolCall(id=name, name="look", arguments={"key": "a"}),)), text("fine")]
    result = Agent(ScriptedModel(turns), **grouped(tools=[look], trace=tmp_path, **OPTIONS)).run_sync("x", run_id="run")
    assert (result.output, result.trace_complete) == ("fine", True)
    assert kinds(tmp_path / "run.jsonl")[-1] == "run-completed"


@pytest.mark.parametrize("limit", [1e18, timedelta.max, "999999999999h"])
def test_a_limit_beyond_all_time(limit: Any):
    """It never fires, and keeps no other one from firing."""
    far = Agent(ScriptedModel([text("a")]), **grouped(compose=[timeout_after(limit)], trace=None, **OPTIONS))
    assert far.run_sync("x").output == "a"
    near = Agent(
        ScriptedModel([call("wait")]), **grouped(tools=[wait], compose=[timeout_after(0.1)], trace=None, **OPTIONS)
    )
    assert near.run_sync("x").terminated_by == "timeout_after"


@pytest.mark.parametrize("kind", ["llm-requested", "tool-call-started"])
def test_nothing_starts_after_the_end_however_slow_redaction_is(tmp_path: Path, kind: str):
    """A rule of the user's that takes its time keeps nobody from ending the run, and lets nothing start after that."""
    for number in range(sample(12, 3)):
        limit_s = 0.02 + number * 0.004

        def slow(content: str) -> str:
            if "slow" in content:
                time.sleep(0.03)
            return content

        asked: list[float] = []

        class Model(ScriptedModel):
            async def complete(self, request: Any, asked: list[float] = asked) -> Any:
                asked.append(time.monotonic())
                return await super().complete(request)

        turns = [call("look", key="slow")] * 9 if kind == "tool-call-started" else [call("look", key="a")] * 9
        prompt = "slow" if kind == "llm-requested" else "quick"
        agent = Agent(
            Model(turns),
            **grouped(
                tools=[look],
                compose=[timeout_after(limit_s)],
                redact=[slow],
                parameters={"stop": prompt},
                trace=tmp_path,
                **OPTIONS,
            ),
        )
        agent.run_sync("x", run_id=f"run-{number}")
        found = kinds(tmp_path / f"run-{number}.jsonl")
        if "killswitch-fired" in found:
            after = found[found.index("killswitch-fired") :]
            assert "llm-requested" not in after
            assert "tool-call-started" not in after
            assert len(asked) == found.count("llm-requested")


async def test_a_second_cancellation(tmp_path: Path):
    """Whoever does not wait for what is put in order gets a closed trace all the same."""

    @tool(timeout=None)
    async def stubborn() -> str:
        """Take long to tidy up."""
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)
        return "x"

    agent = Agent(ScriptedModel([call("stubborn")]), **grouped(tools=[stubborn], trace=tmp_path, **OPTIONS))
    task = asyncio.create_task(agent.run("x", run_id="run"))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = kinds(tmp_path / "run.jsonl")
    assert found[-3:] == ["tool-call-completed", "kernel-state-snapshot", "run-completed"]


def test_a_hook_that_was_left_behind_is_named(tmp_path: Path):
    """Whoever reads the trace finds what hung."""

    def block(harness: Any) -> None:
        harness.before("think", lambda _: time.sleep(1), name="slow one")

    agent = Agent(
        ScriptedModel([text("x")]), **grouped(compose=[timeout_after(0.05), block], trace=tmp_path, **OPTIONS)
    )
    agent.run_sync("x", run_id="run")
    failed: Any = next(r.event for r in load_recording(tmp_path / "run.jsonl").records if r.kind == "hook-failed")
    assert (failed.hook, failed.where) == ("slow one", "before think")
    assert failed.error == "it had not come back when the run ended"
