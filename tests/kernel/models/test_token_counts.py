"""Prompts are counted by the server that gets them: llama.cpp, vLLM, and servers that cannot count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.kernel.models.base import CountsTokens
from playhead.kernel.models.litellm import LiteLLM
from playhead.trace.types import Message, Request, ToolSpec

if TYPE_CHECKING:
    from tests.kernel.models.conftest import StubServer


REQUEST = Request(
    "openai/own",
    (Message(id=0, role="user", content="How high?"),),
    (ToolSpec(name="lookup", description="Look up."),),
    {"temperature": 0, "max_tokens": 9},
)
MESSAGES = [{"role": "user", "content": "How high?"}]
TOOLS = [
    {
        "type": "function",
        "function": {"name": "lookup", "description": "Look up.", "parameters": {"type": "object", "properties": {}}},
    }
]


async def test_llama_cpp(stub: StubServer):
    """The server's template makes the prompt, tools included, and its tokenizer counts it."""
    stub.paths = {"/apply-template": {"prompt": "<|im_start|>How high?"}, "/tokenize": {"tokens": [1, 2, 3]}}
    address, asked = f"{stub.url}/v1", stub.requests
    model = LiteLLM("openai/own", api_base=address, api_key="sk-own")
    assert isinstance(model, CountsTokens)
    assert await model.count_tokens(REQUEST) == 3
    template = {"messages": MESSAGES, "tools": TOOLS}
    text = {"content": "<|im_start|>How high?", "add_special": True, "parse_special": True}
    assert asked == [("/apply-template", template), ("/tokenize", text)]
    assert stub.keys == ["Bearer sk-own"] * 2


async def test_vllm(stub: StubServer):
    """A server that counts messages is asked once."""
    stub.paths = {"/tokenize": {"count": 17, "max_model_len": 4096}}
    address, asked = f"{stub.url}/v1", stub.requests
    assert await LiteLLM("openai/own", api_base=address, api_key="k").count_tokens(REQUEST) == 17
    body = {"model": "own", "add_generation_prompt": True, "messages": MESSAGES, "tools": TOOLS}
    assert asked[-1] == ("/tokenize", body)


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/tokenize": {"count": "many"}},
        {"/apply-template": {"prompt": "x"}, "/tokenize": {"tokens": 3}},
        {"/apply-template": "<html>", "/tokenize": "\xff"},
    ],
)
async def test_a_server_without_counts_is_asked_once(
    stub: StubServer, answers: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    """The log says that prompts are estimated."""
    stub.paths = answers
    address, asked = f"{stub.url}/v1", stub.requests
    model = LiteLLM("openai/own", api_base=address, api_key="k")
    assert await model.count_tokens(REQUEST) is None
    before = len(asked)
    assert await model.count_tokens(REQUEST) is None
    assert len(asked) == before
    said = [record.getMessage() for record in caplog.records if record.name == "playhead"]
    assert said == [f"{address} does not count tokens: prompts of openai/own are estimated"]
