from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import ToolContext, tool
from playhead.errors import ToolCallError
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.types import Usage
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def lookup(key: str, name: str = "", self: str = "") -> str:
    """Look up."""
    return f"{key}{name}{self}"


async def test_what_a_body_does_through_the_ports_is_recorded(tmp_path: Path):
    """Model and tool calls of a body are recorded under its own owner and paid for by the agent."""

    @tool
    async def research(topic: str, context: ToolContext) -> str:
        """Research."""
        first = await context.model.ask(f"What of {topic}?", temperature=0)
        found = await context.tools.call("lookup", key=first.text)
        second = await context.model.ask(f"And {found}?")
        return f"{first.text} {second.text}"

    turns = [call("research", topic="x"), text("one"), text("two"), text("done")]
    run = await record(tmp_path, turns, lookup, research)
    inner = "root/research@0.0"
    assert list(run.recording.owners) == ["root", inner]
    assert run.kinds(inner) == [
        "message-added",
        "llm-requested",
        "llm-responded",
        "tool-call-started",
        "tool-call-completed",
        "message-added",
        "llm-requested",
        "llm-responded",
    ]
    asked = [data(event) for event in run.events("llm-requested", owner=inner)]
    assert asked == [
        {"request": 0, "model": "scripted/model", "messages": ((0, 0),), "parameters": {"temperature": 0}, "purpose": "tool"},
        {"request": 1, "model": "scripted/model", "messages": ((1, 1),), "purpose": "tool"},
    ]  # fmt: skip
    (started,) = run.events("tool-call-started", owner=inner)
    assert (started.call_id, started.source, started.request, started.args) == ("call_0", "tool", None, {"key": "one"})
    assert run.result.usage == sum(
        (event.usage for event in run.events("llm-responded")), start=Usage()
    )  # of the agent's own two and of the body's two
    assert len(run.events("llm-responded")) == 4
    assert run.result.steps[1].content == "one two"
    reproduced = await reproduce(run.recording)
    assert (reproduced.identical, reproduced.not_entered) == (True, (inner,))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fails", {}, "fails: no way"),
        ("lookup", {}, "lookup: the arguments do not fit lookup: key: Field required. Parameters: key, name, self"),
        ("outer", {}, "outer: there is no tool 'outer'. Known: fails, lookup."),
    ],
)
async def test_a_failed_call_is_an_error_in_the_body(tmp_path: Path, name: str, arguments: Any, message: str):
    """A body gets the reason of a failure; it can call neither itself nor the tools that end the run."""
    heard: list[str] = []

    @tool
    def fails() -> None:
        """Fail."""
        raise ValueError("no way")

    @tool
    async def outer(context: ToolContext) -> str:
        """Call."""
        with pytest.raises(ToolCallError) as caught:
            await context.tools.call(name, **arguments)
        heard.append(str(caught.value))
        return "went on"

    run = await record(tmp_path, [call("outer"), text("done")], lookup, fails, outer, meta_tools=("final-answer",))
    assert (heard, run.result.output) == ([message], "done")
