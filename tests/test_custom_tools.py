"""Tools that come and go between the runs of an agent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from playhead import UsageError, load_recording, tool
from playhead.errors import ToolDefinitionError
from playhead.replay import reproduce
from playhead.testing import call, text
from tests.kernel.runs import make_agent, record_agent

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def look(key: str = "a") -> str:
    """Look."""
    return f"found {key}"


def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


@tool(requires_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


async def test_runs_have_the_tools_of_their_beginning(tmp_path: Path):
    """A tool that is added is there in the next run, one that is removed is not; each recording holds those of its run."""
    agent = make_agent(tmp_path, [text("one"), call("greet", name="Ann"), text("two"), text("three")], look)
    first = await record_agent(agent, tmp_path, run_id="first")
    agent.add_tool(greet)
    second = await record_agent(agent, tmp_path, run_id="second")
    agent.remove_tool("look")
    await record_agent(agent, tmp_path, run_id="third")
    offered = [[spec.name for spec in request.tools] for request in first.model.requests]
    assert offered == [["look"], ["look", "greet"], ["look", "greet"], ["greet"]]
    assert second.events("tool-call-completed")[0].result == "hello Ann"
    for name in ("first", "second", "third"):
        assert (await reproduce(load_recording(tmp_path / f"{name}.jsonl"))).identical


async def test_a_running_run_keeps_its_tools(tmp_path: Path):
    """Tools added or removed meanwhile affect later runs."""
    done = threading.Event()

    @tool
    async def change() -> str:
        """Change the agent."""
        agent.remove_tool("look")
        agent.add_tool(greet)
        done.set()
        return "changed"

    agent = make_agent(tmp_path, [call("change"), call("look"), call("greet", name="x"), text("done")], look, change)
    run = await record_agent(agent, tmp_path)
    assert done.is_set()
    assert [each.ok for each in run.events("tool-call-completed")] == [True, True, False]
    assert list(agent.tools) == ["change", "greet"]
    assert (await reproduce(run.recording)).identical


def test_the_kernels_own_stay():
    """And the one that reads on in results comes with the first tool."""
    agent = make_agent(None, [], compression=True, meta_tools=("final-answer",))
    assert list(agent.tools) == ["final-answer"]
    agent.add_tool(look)
    assert (list(agent.tools), agent.header.meta_tools) == (
        ["look", "final-answer", "recall"],
        ("final-answer", "recall"),
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda agent: agent.add_tool(look), ToolDefinitionError, "two tools are called 'look'"),
        (lambda agent: agent.add_tool(tool(name="final-answer")(greet)), ToolDefinitionError, "'final-answer' is a tool of the kernel"),
        (lambda agent: agent.add_tool(3), ToolDefinitionError, "3 is no tool"),
        (lambda agent: agent.add_tool(pay), UsageError, "a yes is required before pay may run"),
        (lambda agent: agent.remove_tool("loko"), UsageError, "the agent has no tool 'loko'. Did you mean 'look'?"),
        (lambda agent: agent.remove_tool("final-answer"), UsageError, "'final-answer' is a tool of the kernel"),
        (lambda agent: agent.remove_tool("look"), UsageError, "require_tools names 'look', which is no tool of this agent"),
    ],
    ids=["twice", "of the kernel", "no tool", "nobody to ask", "unknown", "one of the kernel", "required"],
)  # fmt: skip
def test_an_invalid_change(change: Any, error: type[Exception], message: str):
    """It is an error, and the agent is unchanged."""
    agent = make_agent(None, [], look, meta_tools=("final-answer",), required_tools=["look"])
    before = (dict(agent.tools), agent.header)
    with pytest.raises(error) as raised:
        change(agent)
    assert str(raised.value).startswith(message)
    assert (agent.tools, agent.header) == before
