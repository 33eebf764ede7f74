"""The litellm adapter: answers from a real local model (cassettes), failures from a loopback server."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from playhead.errors import (
    MissingDependencyError,
    ModelRequestError,
)
from playhead.kernel.models import litellm as adapter
from playhead.kernel.models import resolve_model
from playhead.kernel.models.base import Model
from playhead.kernel.models.litellm import LiteLLM
from playhead.kernel.models.openai_format import to_openai
from playhead.trace.types import Completion, Message, Prices, Request, ToolCall, ToolSpec, Usage

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # litellm takes seconds to import

REAL = "openai/qwen2.5-coder-1.5b"
SERVER = "http://127.0.0.1:8095/v1"
"""Where `real-models/serve.sh 8095` was when the cassettes were recorded."""
KEY = "sk-test-key-0123456789"
WEATHER = ToolSpec(
    name="get_weather",
    description="Return the weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def ask(text="Say hi", model="openai/gpt-4o-mini", tools=(), **parameters):
    """Return a request with one question in it."""
    return Request(
        model=model, messages=(Message(id=0, role="user", content=text),), tools=tools, parameters=parameters
    )


def said(message, **body):
    """Return the body of a chat completion in OpenAI's form."""
    choice = {
        "index": 0,
        "finish_reason": body.pop("finish_reason", "stop"),
        "message": {"role": "assistant", **message},
    }
    return {"id": "answer-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **body}


@pytest.fixture
def model(stub):
    """Return a model that the stub server answers for."""
    return LiteLLM("openai/gpt-4o-mini", api_base=f"{stub.url}/v1", api_key=KEY)


# What a real model says


async def test_a_tool_call_and_the_answer_to_its_result(cassette):
    """A call has its arguments as an object, and the model answers from the result that follows it."""
    llm = LiteLLM(REAL, api_base=SERVER, api_key="none")
    question = Message(id=0, role="user", content="What is the weather in Oslo? Use the tool.")
    with cassette("litellm_tool_round_trip.yaml"):
        asked = await llm.complete(
            Request(model=REAL, messages=(question,), tools=(WEATHER,), parameters={"temperature": 0})
        )
        (call,) = asked.tool_calls
        thread = (
            question,
            Message(id=1, role="assistant", content=asked.text, tool_calls=asked.tool_calls),
            Message(id=2, role="tool", content="-3 degrees, snow", tool_call_id=call.id, name=call.name),
        )
        answered = await llm.complete(Request(model=REAL, messages=thread, parameters={"temperature": 0}))
    assert asked == Completion(
        tool_calls=(ToolCall(id="FZcwtRoItyHgxjlOowb1LLGkDYyyZEQ2", name="get_weather", arguments={"city": "Oslo"}),),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=202, output_tokens=22, cache_read_tokens=201),
        model="qwen2.5-coder-1.5b",
    )
    assert answered == Completion(
        text="The weather in Oslo is -3 degrees Celsius with snow.",
        finish_reason="stop",
        usage=Usage(input_tokens=85, output_tokens=13, cache_read_tokens=24),
        model="qwen2.5-coder-1.5b",
    )


# What a response means


async def test_usage_and_cost_of_anthropic(stub):
    """Anthropic counts cached tokens separately; our input tokens include them."""
    stub.answers(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5-20251001",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "let me look"},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
            ],
            "stop_reason": "tool_use",
            "usage": {
                "input_tokens": 10,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 30,
                "output_tokens": 5,
            },
        }
    )
    llm = LiteLLM("anthropic/claude-haiku-4-5", api_base=stub.url, api_key=KEY)
    completion = await llm.complete(ask(model=llm.name, tools=(WEATHER,)))
    assert completion.cost_usd == pytest.approx(10 * 1e-06 + 20 * 1.25e-06 + 30 * 1e-07 + 5 * 5e-06)
    assert (
        completion.text,
        completion.thinking,
        completion.tool_calls,
        completion.finish_reason,
        completion.model,
    ) == (
        "let me look",
        "hm",
        (ToolCall(id="toolu_1", name="get_weather", arguments={"city": "Oslo"}),),
        "tool_calls",
        "claude-haiku-4-5-20251001",
    )
    assert (
        completion.usage.input_tokens,
        completion.usage.output_tokens,
        completion.usage.cache_read_tokens,
        completion.usage.cache_write_tokens,
    ) == (60, 5, 30, 20)


async def test_arguments_that_are_no_object_stay_text(stub, model):
    """Arguments are an object where the text is one, and the exact text elsewhere."""
    written = ['{"a": 1}', "{}", "", '{"a": ', "[1]", '"x"', "null", '{"a": NaN}']
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": text}}
        for number, text in enumerate(written)
    ]
    stub.answers(said({"content": None, "tool_calls": calls}, finish_reason="tool_calls"))
    completion = await model.complete(ask())
    assert [(call.arguments, call.raw_arguments) for call in completion.tool_calls] == [
        ({"a": 1}, None),
        ({}, None),
        ({}, None),
        (None, '{"a": '),
        (None, "[1]"),
        (None, '"x"'),
        (None, "null"),
        (None, '{"a": NaN}'),
    ]


# What is sent


@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream", "n", "api_key", "num_retries", "fallbacks"])
def test_a_parameter_cannot_change_what_the_recording_says(name):
    """A parameter that decides who answers, how often, or what is asked, is refused."""
    with pytest.raises(ModelRequestError, match=f"^{name}: not for a request to set"):
        to_openai(Request(model="openai/m", messages=(), parameters={name: 2}))


# Prices


async def test_prices_come_from_the_table_or_not_at_all():
    """Prices come from litellm's table; a model with no or half an entry has no price."""
    names = ("openai/gpt-4o-mini", "openai/no-such-model", "bedrock/twelvelabs.pegasus-1-2-v1:0", "ollama_chat/x")
    assert [await LiteLLM(name).prices() for name in names] == [
        Prices(input_usd=1.5e-07, output_usd=6e-07, cache_read_usd=7.5e-08),
        None,
        None,
        None,
    ]


# Living with litellm


def test_an_adapter_is_chosen_by_name():
    """Every name but `ollama/…` is a model of litellm, which is not imported before the first request."""
    script = """
        import sys
        from playhead.kernel.models import resolve_model
        model = resolve_model("openai/gpt-4o-mini", api_key="k")
        print(type(model).__name__, model.name, dict(model.secrets), sorted({"litellm", "openai", "httpx"} & set(sys.modules)))
    """
    assert run(script) == ("LiteLLM openai/gpt-4o-mini {'api_key': 'k'} []\n", "")
    assert isinstance(resolve_model("openai/gpt-4o-mini"), Model)


async def test_litellm_is_an_extra(monkeypatch):
    """Without litellm the error says how to install it."""
    adapter._litellm.cache_clear()
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'playhead\[litellm\]'$"):
        await LiteLLM("openai/m").prices()


def test_no_event_loop_leaves_a_connection_open(stub, model):
    """In loops one after another, and in threads at once, every call is answered and every connection is closed."""
    stub.answers(said({"content": "ok"}))
    answers = []

    async def three():
        answers.extend(await asyncio.gather(*[model.complete(ask()) for _ in "abc"]))

    for _ in "ab":
        asyncio.run(three())
    threads = [threading.Thread(target=asyncio.run, args=(three(),)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.text for answer in answers] == ["ok"] * 12
    deadline = time.monotonic() + 5
    while stub.connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not stub.connections


def run(script):
    """Return what a script prints, to stdout and to stderr, in a fresh interpreter where every warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDEVMODE": ""},
    )
    return done.stdout, done.stderr
