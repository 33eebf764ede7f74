"""`tool_format="text"`: tools in the prompt, calls in the reply, results in user messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.kernel.prompts import FORMAT
from playhead.kernel.strategies.base import list_strategies
from playhead.replay import reproduce, resume
from playhead.testing import text
from playhead.trace.types import Message
from tests.compose.hooked import sent
from tests.kernel.runs import Ran, make_agent, record
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request


@tool(read_only=True)
async def look(key: str) -> str:
    """Look something up."""
    return f"found {key}"


@tool(read_only=True)
def add(a: float, b: float = 1.5) -> float:
    """Add two numbers."""
    return a + b


TOOLS = (look, add)
CATALOGUE = (
    f"Tools:\n- look(key: string): Look something up.\n- add(a: number, b?: number = 1.5): Add two numbers.\n\n{FORMAT}"
)
EXAMPLES = (
    Message(id=0, role="user", content="Where is a?"),
    Message(id=1, role="assistant", content="I look."),
    Message(id=2, role="user", content="Result of look:\nfound a"),
    Message(id=3, role="assistant", content="There."),
)


def written(name: str, **arguments: Any) -> str:
    """Return a call as the model is told to write it."""
    return f"```json\n{json.dumps({'tool': name, 'arguments': arguments})}\n```"


def turns_of(request: Request) -> list[tuple[str, str]]:
    """Return what a request said, and that it said it in text alone."""
    assert request.tools == ()
    assert not any(each.tool_calls or each.tool_call_id for each in request.messages)
    return [(each.role, str(each.content)) for each in request.messages]


async def run_in_text(folder: Path, turns: list[Any], *tools: Any, **options: Any) -> Ran:
    """Run an agent that calls in text; what was sent is what was recorded, and the file alone gives it back."""
    run = await record(folder, turns, *(tools or TOOLS), **{"system_prompt": "Work.", "tool_format": "text", **options})
    assert sent(run) == run.model.requests
    reproduced = await reproduce(run.recording)
    assert reproduced.identical, reproduced.divergences
    return run


async def test_the_prompt_holds_the_tools_and_the_thread_the_calls(tmp_path: Path):
    """No request has native tools; a call is text of the model, its result a user message."""
    run = await run_in_text(tmp_path, [text(written("look", key="b")), text("b is there")])
    assert turns_of(run.model.requests[1]) == [
        ("system", f"Work.\n\n{CATALOGUE}"),
        ("user", "Do it."),
        ("assistant", written("look", key="b")),
        ("user", "Result of look:\nfound b"),
    ]
    assert (run.result.output, run.result.success) == ("b is there", True)
    asked = run.events("llm-requested")
    assert [(each.tools, each.tools_in_text) for each in asked] == [((), ((0, 1),))] * 2
    assert [(each.tool, each.source) for each in run.events("tool-call-started")] == [("look", "text")]


async def test_an_unreadable_call(tmp_path: Path):
    """The model is told why, and may write the call again."""
    reply = 'I look.\n```json\n{"tool": "look", "arguments": {"key": "b\n```'
    run = await run_in_text(tmp_path, [text(reply), text(written("look", key="b")), text("done")])
    why = "the JSON ends inside a value: it was cut off"
    told = (
        f"Your reply is a call that could not be made: {why}. Make the call again as a whole, or reply with the answer."
    )
    assert turns_of(run.model.requests[1])[-1] == ("user", told)
    assert (run.result.output, len(run.model.requests)) == ("done", 3)


@pytest.mark.slow
async def test_a_dead_run_is_resumed(tmp_path: Path):
    """A run cut at any event resumes to the same answer."""
    turns = [text(written("look", key="b")), text(written("add", a=1)), text("done")]
    run = await run_in_text(tmp_path, turns, examples=EXAMPLES)
    lines = run.recording.path.read_bytes().splitlines(keepends=True)
    for cut in range(2, len(lines) - 1, 3):
        dead = tmp_path / f"dead{cut}" / "run.jsonl"
        dead.parent.mkdir()
        dead.write_bytes(b"".join(lines[:cut]))
        answered = sum(each.kind == "llm-responded" for each in run.recording.records[:cut])
        agent = make_agent(
            tmp_path, turns[answered:], *TOOLS, tool_format="text", system_prompt="Work.", examples=EXAMPLES
        )
        result = await resume(agent, dead, run_id="on")
        assert (result.output, result.success) == ("done", True)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sample(list_strategies(), ["reflexion", "autonomous", "code-action"]))
async def test_every_strategy_calls_in_text(tmp_path: Path, strategy: str):
    """No request of a strategy has native tools, and the file alone reproduces the run."""
    said = [text(written("look", key=str(number))) if number % 2 else text("It is there.") for number in range(60)]
    run = await record(tmp_path, said, *TOOLS, tool_format="text", strategy=strategy, meta_tools=None)
    assert run.model.requests
    assert all(each.tools == () for each in run.model.requests)
    assert sent(run) == run.model.requests
    assert (await reproduce(run.recording)).identical
