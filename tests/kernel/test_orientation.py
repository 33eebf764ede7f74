from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def look(key: str) -> str:
    """Look a key up.

    More about it.
    """
    if key == "bad":
        raise ValueError("there is no key bad")
    return f"the height of {key} is 61 metres"


@tool
async def save(value: str) -> str:
    """Save."""
    return f"saved {value}"


async def asked(folder: Path, turns: list[Any], **options: Any) -> Any:
    """Return what the last call was answered; the recording is reproduced from the file alone."""
    tools = {"meta_tools": ("brief", "recall")}
    run = await record(folder, [*turns, text("done")], look, save, task="How high is Zed?", **{**tools, **options})
    assert (await reproduce(run.recording)).identical
    return run.events("tool-call-completed")[-1].result


async def test_brief(tmp_path: Path):
    """The task, the tools with a line each, what is used and what is left, what failed and what was done twice."""
    note = call("recall", action="store", key="n", content="note")
    turns = [calls(call("look", key="a"), call("look", key="bad")), call("look", key="a"), note, call("brief")]
    assert await asked(tmp_path, turns, tool_budgets={"look": 3}, required_tools=["save"]) == {
        "task": "How high is Zed?",
        "tools": {"look": "Look a key up.", "save": "Save."},
        "iteration": 3,
        "max_iterations": 10,
        "tools_used": ["look", "recall"],
        "required": ["call save"],
        "messages": 11,
        "tokens": 29,
        "stored": ["n"],
        "recent_calls": 4,
        "recent_failures": 1,
        "last_error": "error: there is no key bad",
        "repeated_calls": ['look({"key": "a"}) 2 times'],
        "decisions": [],
    }


async def test_none_of_them_is_offered_unasked(tmp_path: Path):
    """What is offered by default stays as it is."""
    run = await record(tmp_path, [text("done")], look, meta_tools=None)
    assert [spec.name for spec in run.events("tools-defined")[0].tools] == ["look", "final-answer"]
