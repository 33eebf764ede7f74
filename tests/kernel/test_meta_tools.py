from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Context, tool
from playhead.errors import ToolDefinitionError, UsageError
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from tests.kernel.runs import data, record

if TYPE_CHECKING:
    from pathlib import Path

META = ("final-answer", "recall")


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    if key == "bad":
        raise ValueError("bad")
    return key


@tool(read_only=True)
async def other() -> str:
    """Do something else."""
    return "other"


async def offered(folder: Path, turns: list[Any], *tools: Any, **options: Any) -> list[list[str]]:
    """Return the names of the tools that were offered in each turn."""
    run = await record(folder, turns, *tools, meta_tools=META, **options)
    assert (await reproduce(run.recording)).identical
    return [[spec.name for spec in request.tools] for request in run.model.requests]


EVERYTHING = ["lookup", "other", *META]
BEFORE = ["lookup", "other", "recall"]


@pytest.mark.parametrize(
    ("turns", "required", "expected"),
    [
        ([call("lookup", key="a"), text("")], (), [BEFORE, EVERYTHING]),
        ([text(""), text("")], (), [BEFORE, EVERYTHING]),  # no tool is required, so none need be called first
        ([call("lookup", key="bad"), call("other"), text("")], (), [BEFORE, BEFORE, EVERYTHING]),
        ([call("lookup"), call("nothing"), text("")], (), [BEFORE, BEFORE, EVERYTHING]),
        ([call("lookup", key="a"), call("other"), text("")], ("other",), [BEFORE, BEFORE, EVERYTHING]),
        ([call("other"), call("lookup", key="bad"), text("")], ("lookup",), [BEFORE, BEFORE, BEFORE]),
        ([calls(call("other"), call("lookup", key="bad")), text("")], ("other",), [BEFORE, BEFORE]),
    ],
    ids=["a call", "no call", "a failed call", "a call that does not fit", "required", "required failed", "one failed"],
)
async def test_when_final_answer_is_offered(
    tmp_path: Path, turns: list[Any], required: tuple[str, ...], expected: list[list[str]]
):
    """From the second turn on, once every required tool has a result and the last turn had no failure."""
    assert await offered(tmp_path, turns, lookup, other, required_tools=required, max_iterations=len(turns)) == expected


@pytest.mark.parametrize(
    ("turns", "options", "reason"),
    [
        ([call("final-answer", output="42")], {}, "it is offered from turn 2 on"),
        (
            [call("final-answer", output="42")],
            {"required_tools": ("lookup", "other")},
            "it is offered from turn 2 on; call lookup first; call other first",
        ),
        (
            [call("lookup", key="bad"), call("final-answer", output="42")],
            {},
            "a call of the last turn failed; deal with it first",
        ),
    ],
)
async def test_final_answer_too_early(tmp_path: Path, turns: list[Any], options: dict[str, Any], reason: str):
    """A call before that fails, says why, and does not end the run."""
    run = await record(tmp_path, [*turns, text("done")], lookup, other, meta_tools=META, max_iterations=len(turns) + 1,
                       **options)  # fmt: skip
    (*_, completed) = run.events("tool-call-completed")
    assert data(completed)["error"] == {"type": "NotYet", "message": f"{completed.tool} is not available yet: {reason}"}
    assert run.result.terminated_by in ("end_turn", "required_tools_missing")
    assert run.result.output != "42"


def test_unknown_and_taken_names():
    """The error for an unknown tool of the kernel names the nearest; a tool of the user may not hide one."""

    @tool(name="final-answer")
    def mine() -> None:
        """End."""

    model = ScriptedModel([])
    with pytest.raises(UsageError, match=r"^there is no meta tool 'final_answer'. Did you mean 'final-answer'\?"):
        Agent(model, context=Context(meta_tools=("final_answer",)))
    with pytest.raises(ToolDefinitionError, match=r"^'final-answer' is a tool of the kernel; rename yours or leave"):
        Agent(model, tools=[mine])
    with pytest.raises(
        ToolDefinitionError, match=r"^two tools are called 'lookup', or nearly so; a model tells them apart by name"
    ):
        Agent(model, tools=[lookup, lookup])
    assert list(Agent(model, tools=[mine], context=Context(meta_tools=())).tools) == ["final-answer"]
