"""What `playhead.testing` ships: assertions, streams, scripted models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.agent.streaming import StreamCancelled, TextDelta, ToolCallCompleted, ToolCallStarted, collect
from playhead.errors import ModelRequestError
from playhead.testing import (
    ScriptedModel,
    Turn,
    assert_cost_under,
    assert_step_count,
    assert_stream,
    assert_tool_called,
    call,
    calls,
    text,
    with_match,
)
from playhead.trace.types import Completion, Message, Request, ToolCall, Usage
from tests.kernel.runs import make_agent, record

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import RunResult


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return key


@pytest.fixture
async def result(tmp_path: Path) -> RunResult:
    """Return the result of a run with two calls."""
    turn = calls(call("lookup", key="a"), call("lookup", key="b"), text="I look.")
    return (await record(tmp_path, [turn, text("done")], lookup)).result


async def test_results_can_be_asserted(result: RunResult):
    """Tool calls, step counts and costs; a failure says what there was, and an unknown cost is not under anything."""
    assert_tool_called(result, "lookup", times=2)
    assert_tool_called(result, "write", times=0)
    with pytest.raises(AssertionError, match=r"^write was called 0 times; calls: \['lookup', 'lookup'\]$"):
        assert_tool_called(result, "write")
    assert_step_count(result, minimum=5, maximum=5)
    with pytest.raises(AssertionError, match=r"^the run took 5 steps$"):
        assert_step_count(result, minimum=6)
    assert_cost_under(result, 0.01)
    with pytest.raises(AssertionError, match=r"^the run cost nobody knows what$"):
        assert_cost_under(result.model_copy(update={"cost_usd": None}), 1.0)


async def test_streams_can_be_asserted(tmp_path: Path):
    """Text, order of events and end of a stream; a failure says what there was."""
    turns = [call("lookup", key="a"), text("done")]
    found = await collect(make_agent(tmp_path, turns, lookup).start("Do it.", density="full"))
    assert_stream(found, ToolCallStarted, ToolCallCompleted, TextDelta, text="done")
    with pytest.raises(AssertionError, match=r"^the agent said 'done', not 'no'"):
        assert_stream(found, text="no")
    with pytest.raises(AssertionError, match="not with StreamCancelled"):
        assert_stream(found, end=StreamCancelled)
    with pytest.raises(AssertionError, match=r"^no ToolCallStarted came in its place; it was: \['IterationProgress', "):
        assert_stream(found, ToolCallCompleted, ToolCallStarted)
    for broken in (found[:-1], [*found, found[-1]], [found[-1], *found[:-1]], []):
        with pytest.raises(AssertionError, match=r"^a stream ends once, with its last event"):
            assert_stream(broken)


async def test_two_runs_on_ticking_clocks_are_the_same_file(tmp_path: Path):
    """The same script on ticking clocks gives the same trace, byte for byte."""
    for name in ("one", "two"):
        await record(tmp_path / name, [call("lookup", key="a"), text("done")], lookup)
    assert (tmp_path / "one" / "run.jsonl").read_bytes() == (tmp_path / "two" / "run.jsonl").read_bytes()


def request(*texts: str) -> Request:
    """Return a request whose messages say these things."""
    return Request(
        "scripted/model", tuple(Message(id=number, role="user", content=said) for number, said in enumerate(texts))
    )


async def test_turns_are_given_in_order():
    """Each request gets the next turn: text, calls, thinking, usage and finish reason."""
    usage = Usage(input_tokens=9, cache_read_tokens=5)
    model = ScriptedModel([
        text("two words"),
        call("look", key="a"),
        calls(call("look", key="a"), call("write", name="b"), text="Both.", thinking="hm", usage=usage),
        Turn(text="cut", finish_reason="length"),
    ])  # fmt: skip
    common: dict[str, Any] = {"cost_usd": 0.0, "model": "scripted/model"}
    look, write = (
        ToolCall(id="", name="look", arguments={"key": "a"}),
        ToolCall(id="", name="write", arguments={"name": "b"}),
    )
    assert [await model.complete(request("a", "b")) for _ in range(4)] == [
        Completion(text="two words", finish_reason="stop", usage=Usage(input_tokens=2, output_tokens=3), **common),
        Completion(
            tool_calls=(look,), finish_reason="tool_calls", usage=Usage(input_tokens=2, output_tokens=1), **common
        ),
        Completion(
            text="Both.", thinking="hm", tool_calls=(look, write), finish_reason="tool_calls", usage=usage, **common
        ),
        Completion(text="cut", finish_reason="length", usage=Usage(input_tokens=2, output_tokens=2), **common),
    ]


async def test_matching_turns():
    """A turn with a match answers every request that it fits; the longest match wins, and unmatched turns come last."""
    model = ScriptedModel([
        with_match(text("short"), "hei"),
        with_match(text("long"), "height"),
        with_match(text("pattern"), re.compile(r"heights? of \w+")),
        text("one"),
        text("two"),
    ])  # fmt: skip
    asked = ["heir", "what?", "height", "the heights of B", "height", "what?"]
    assert [(await model.complete(request("ignored", words))).text for words in asked] == [
        "short",
        "one",
        "long",
        "pattern",
        "long",
        "two",
    ]
    with pytest.raises(ModelRequestError, match="all 2 are used"):
        await model.complete(request("what?"))
