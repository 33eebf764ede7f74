from __future__ import annotations

import re
from typing import Any

import pytest

from playhead.errors import ModelRequestError
from playhead.testing import ScriptedModel, Turn, call, calls, text, with_match
from playhead.trace.types import Completion, Message, Request, ToolCall, Usage


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
