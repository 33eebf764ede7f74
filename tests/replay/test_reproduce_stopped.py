"""A replay that was stopped is a recording like any other: it reproduces up to there, and no further."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.replay import ReplayResult, ToolResult, replay, reproduce
from playhead.replay.reproduction import Reproduction
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.compose import Harness
    from playhead.trace.recording import Recording

QUIET: dict[str, Any] = {"rationale": False, "meta_tools": ()}
TAGS = [
    "prompt.system",
    "prompt.tools",
    "llm.request",
    "llm.response",
    "message.user",
    "message.assistant",
    "message.tool-result",
    "tool.call",
    "tool.result",
    "observation.tool-result",
    "answer.final",
]


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return f"value of {key}"


@tool
def write(key: str) -> str:
    """Write."""
    return f"wrote {key}"


@tool(requires_approval=True)
def launch(key: str) -> str:
    """Launch."""
    return f"launched {key}"


def guarding(tag: str) -> Callable[[Harness], None]:
    """Return a block with a required hook that looks at everything of a tag."""

    def block(harness: Harness) -> None:
        harness.on(tag, lambda payload, _: None, required=True, name="guard")

    return block


async def stopped(result: ReplayResult, why: str) -> Reproduction:
    """Reproduce a replay that was stopped, and say that it is the same."""
    assert result.run.terminated_by == "replay_stopped"
    assert why in str(result.stopped)
    again = await reproduce(result.recording)
    assert (again.divergences, again.status, again.cut_short) == ((), "closed", True)
    return again


MISSED = [
    [call("lookup", key="new")],
    [calls(call("lookup", key="a"), call("lookup", key="new"), call("lookup", key="b"))],
    [calls(call("lookup", key="a"), call("write", key="new"), call("lookup", key="b"))],
    [call("lookup", key="a"), call("launch", key="new")],
    [calls(call("lookup", key="a"), call("child", task="t"), call("lookup", key="new"))],
    [calls(call("child", task="t"), call("child", task="new"), call("lookup", key="a"))],
]


@pytest.mark.parametrize("turns", MISSED)
async def test_a_call_that_was_not_recorded(turns: list[Any], tmp_path: Path) -> None:
    """Alone, beside others, before an approval, in an agent."""
    child = Agent(ScriptedModel([call("lookup", key="a"), text("found")]), name="child", tools=[lookup], **QUIET)
    first = [calls(call("lookup", key="a"), call("child", task="t")), text("done")]
    recording = (
        await record(tmp_path, first, lookup, write, launch, child, approver=lambda request: True)
    ).recording
    answers = ScriptedModel([*turns, call("lookup", key="a"), text("found"), call("lookup", key="new"), text("x")])
    result = await replay(recording, {"model": answers, "agents": {"child": {"model": ScriptedModel([call("lookup", key="new")] * 3)}}}, trace=None)
    await stopped(result, "nearest recorded call")
