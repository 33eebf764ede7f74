from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.compose.killswitches.prompt_bound import Bound, PromptMeter
from playhead.trace.types import Message, Request, ToolCall, ToolSpec
from tests.compose.killswitches.provider import Provider, RandomModel
from tests.proving import sample

TEXT = st.text(max_size=40)
JSON = st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT, max_size=3), max_size=3)
MESSAGES = st.lists(
    st.builds(
        Message,
        id=st.integers(0, 9),
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=TEXT,
        name=TEXT | st.none(),
        tool_call_id=TEXT | st.none(),
        tool_calls=st.lists(st.builds(ToolCall, id=TEXT, name=TEXT, arguments=JSON), max_size=2).map(tuple),
    ),
    max_size=5,
).map(tuple)
TOOLS = st.lists(st.builds(ToolSpec, name=TEXT, description=TEXT, parameters=JSON), max_size=3).map(tuple)


def said(request: Request) -> int:
    """Return the bytes of all words that a model is sent."""
    size = 0
    for message in request.messages:
        size += sum(len(str(each or "").encode()) for each in (message.content, message.name, message.tool_call_id))
        size += sum(len(f"{each.id}{each.name}{each.arguments}".encode()) for each in message.tool_calls)
    return size + sum(len(f"{each.name}{each.description}{each.parameters}".encode()) for each in request.tools)


@pytest.mark.slow
@settings(max_examples=sample(200, 25))
@given(MESSAGES, TOOLS)
def test_bytes_are_never_too_few(messages: Any, tools: Any):
    """Every word that is sent is counted with all its bytes."""
    request = Request("a/b", messages, tools)
    assert PromptMeter("bytes").bytes_of(request) >= said(request)


async def test_an_estimate_learns():
    """What was counted too low is not counted too low again; an exact count is left alone."""
    model = RandomModel(None, Provider(), "a/b", [])  # type: ignore[arg-type]
    request = Request("a/b", (Message(id=0, role="user", content="x" * 3_000),))
    meter = PromptMeter(None)
    first = await meter.bound(model, request)
    assert first.how == "estimate"
    meter.learn(first, first.tokens // 2)
    assert await meter.bound(model, request) == first
    for _ in range(8):  # as many in flight, each counted too low alike
        meter.learn(first, first.tokens * 3)
    assert first.tokens * 3 <= (await meter.bound(model, request)).tokens <= first.tokens * 3 + 3
    meter.learn(Bound(10, "counted"), 1_000)
    assert (await meter.bound(model, request)).tokens <= first.tokens * 3 + 3
