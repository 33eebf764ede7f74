"""Autonomous: the agent works until the model calls `finish`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.testing import Turn, call
from playhead.trace.types import ToolCall
from tests.kernel.runs import ended, ending
from tests.kernel.strategies.looking import broken, lookup, run

if TYPE_CHECKING:
    from pathlib import Path


async def work(folder: Path, turns: Any, *tools: Any, settings: dict[str, Any] | None = None, **options: Any):
    """Run it with the usual tools."""
    options = {"strategy": "autonomous", "meta_tools": None, "strategy_settings": settings, **options}
    return await run(folder, turns, *(tools or (lookup, broken)), **options)


async def test_it_works_until_it_finishes(tmp_path: Path):
    """`finish` is offered from the first turn on, its result is the output, and nothing else ends the run."""
    ran = await work(tmp_path, [call("lookup", key="a"), call("lookup", key="b"), call("finish", result="a and b")])
    assert ending(ran) == ended("done", "final_answer_tool", "a and b", 3)
    assert ran.result.success
    assert [tool.name for tool in ran.model.requests[0].tools] == ["lookup", "broken", "finish"]
    (defined,) = ran.events("tools-defined")
    finish = defined.tools[-1]
    assert (finish.kind, finish.parameters["required"]) == ("meta", ["result"])
    assert finish.parameters["properties"]["result"]["type"] == "string"
    system = ran.model.requests[0].messages[0].content
    assert "call the tool `finish`" in system
    assert "reply with it in plain text" not in system


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "result: is missing; it has to be string"),
        ({"result": ""}, "result: "),
    ],
    ids=["nothing", "empty"],
)
async def test_finish_without_a_result(tmp_path: Path, arguments: dict[str, Any], problem: str):
    """The model is told and may finish again; its text does not replace the result."""
    first = Turn(text="I am done.", calls=(ToolCall(id="", name="finish", arguments=arguments),))
    ran = await work(tmp_path, [first, call("finish", result="42")])
    assert ending(ran) == ended("done", "final_answer_tool", "42", 2)
    assert problem in ran.events("tool-call-completed")[0].error.message
