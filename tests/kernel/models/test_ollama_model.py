"""The Ollama adapter. No registry has the real server, so answers come from two sources.

Plain ones are cassettes of a real local model behind a proxy that speaks Ollama's protocol (`*_proxied.yaml`; it counts
words as tokens). Calls, thinking and failures are written after Ollama's API documentation, on a loopback server.
"""

import socket
import sys

import pytest

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelRequestError,
    ModelUnavailableError,
    UnknownModelError,
)
from playhead.kernel.models.ollama import Ollama, to_ollama
from playhead.trace.types import Completion, Message, Prices, Request, ToolCall, ToolSpec, Usage

pytestmark = pytest.mark.anyio

PROXIED = "ollama/local/qwen2.5-coder-1.5b"
WEATHER = ToolSpec(
    name="get_weather",
    description="Return the weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def ask(text="Say hi", name="ollama/qwen3:8b", tools=(), **parameters):
    """Return a request with one question in it."""
    return Request(model=name, messages=(Message(id=0, role="user", content=text),), tools=tools, parameters=parameters)


def said(message, **body):
    """Return the body of a chat response as Ollama's documentation shows it."""
    return {
        "model": "qwen3:8b",
        "created_at": "2025-10-17T23:14:07.414671Z",
        "message": {"role": "assistant", "content": "", **message},
        "done_reason": "stop",
        "done": True,
        "total_duration": 174560334,
        "load_duration": 101397084,
        "prompt_eval_count": 11,
        "prompt_eval_duration": 13074791,
        "eval_count": 18,
        "eval_duration": 52479709,
        **body,
    }


@pytest.fixture
def model(stub):
    """Return a model that the stub server answers for."""
    return Ollama("ollama/qwen3:8b", api_base=stub.url)


# What a model says


async def test_a_plain_answer(cassette):
    """Text, done reason, token counts and the model's name are returned, at no cost."""
    with cassette("ollama_plain_proxied.yaml"):
        completion = await Ollama(PROXIED).complete(
            ask("Reply with exactly one word: pong", PROXIED, temperature=0, max_tokens=8)
        )
    assert completion == Completion(
        text="pong",
        finish_reason="stop",
        usage=Usage(input_tokens=6, output_tokens=1),
        cost_usd=0.0,
        model="local/qwen2.5-coder-1.5b",
    )


async def test_tool_calls_and_thinking(stub, model):
    """Arguments are objects; calls without ids get them from the session."""
    stub.answers(
        said(
            {
                "thinking": "hm",
                "tool_calls": [
                    {"function": {"name": "get_weather", "arguments": {"city": "Oslo", "days": [1, 2]}}},
                    {"id": "call_1", "function": {"index": 1, "name": "get_weather", "arguments": {}}},
                ],
            }
        )
    )
    assert await model.complete(ask(tools=(WEATHER,))) == Completion(
        thinking="hm",
        tool_calls=(
            ToolCall(id="", name="get_weather", arguments={"city": "Oslo", "days": [1, 2]}),
            ToolCall(id="call_1", name="get_weather", arguments={}),
        ),
        finish_reason="stop",
        usage=Usage(input_tokens=11, output_tokens=18),
        cost_usd=0.0,
        model="qwen3:8b",
    )


async def test_arguments_that_are_no_object_stay_text(stub, model):
    """Arguments that some servers send as text keep their exact text."""
    calls = [{"function": {"name": "f", "arguments": written}} for written in ('{"a": 1}', '{"a": ', [1], None)]
    stub.answers(said({"tool_calls": calls}))
    completion = await model.complete(ask())
    assert [(call.arguments, call.raw_arguments) for call in completion.tool_calls] == [
        ({"a": 1}, None),
        (None, '{"a": '),
        (None, "[1]"),
        ({}, None),
    ]


# What is sent


@pytest.mark.parametrize(
    ("parameters", "sent"),
    [
        ({"max_completion_tokens": 5, "num_ctx": 8192}, {"options": {"num_predict": 5, "num_ctx": 8192}}),
        ({"stop": ["a", "b"]}, {"options": {"stop": ["a", "b"]}}),
        ({"think": "high", "keep_alive": -1, "format": "json"}, {"think": "high", "keep_alive": -1, "format": "json"}),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"truncate": True}, {"truncate": True}),
    ],
)
def test_parameters_go_where_ollama_looks_for_them(parameters, sent):
    """Sampling goes into `options`, the rest beside it; prompts are truncated only on request."""
    body = to_ollama(ask(**parameters))
    rest = {"model": "qwen3:8b", "messages": [{"role": "user", "content": "Say hi"}], "stream": False}
    assert body == {**rest, "truncate": False, "shift": False, **sent}


# What goes wrong


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (
            400,
            {"error": "m does not support tools"},
            ModelRequestError,
            "URL refused the request (ollama/qwen3:8b): m does not support tools",
        ),
        (
            401,
            {"error": "unauthorized"},
            MissingApiKeyError,
            "no API key for ollama/qwen3:8b: set OLLAMA_API_KEY",
        ),
        (
            404,
            {"error": "model 'qwen3:8b' not found"},
            UnknownModelError,
            "URL does not know the model 'ollama/qwen3:8b' (model 'qwen3:8b' not found). Get it: ollama pull qwen3:8b",
        ),
        (
            200,
            "<html>",
            ModelUnavailableError,
            "URL failed (ollama/qwen3:8b): Expecting value: line 1 column 1 (char 0)",
        ),
        (
            200,
            {"choices": []},
            ModelUnavailableError,
            "the server answered, but with no message in it; is it an Ollama server?",
        ),
    ],
    ids=["400", "401", "404", "not JSON", "not Ollama"],
)
async def test_every_refusal_is_one_clear_error(stub, model, status, body, kind, message):
    """A failed request is sent once and raises one of our errors with the server's words and the fix."""
    stub.answers(body, status)
    with pytest.raises(kind) as caught:
        await model.complete(ask())
    assert (type(caught.value), str(caught.value).replace(stub.url, "URL")) == (kind, message)
    assert len(stub.requests) == 1


async def test_no_server_at_the_address():
    """The error names the address without its password, and what to start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelUnavailableError) as caught:
        await Ollama("ollama/m", api_base=f"http://me:hunter22@127.0.0.1:{port}").complete(ask(name="ollama/m"))
    assert str(caught.value) == f"no server answers at http://127.0.0.1:{port} (ollama/m). Is `ollama serve` running?"
    assert caught.value.retryable


async def test_the_client_is_an_extra(monkeypatch):
    """Without the client the error says how to install it."""
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'playhead\[ollama\]'$"):
        await Ollama("ollama/m").complete(ask(name="ollama/m"))


# Names, secrets, prices


async def test_only_local_models_are_free():
    """A local model costs nothing; the price of Ollama's cloud is not known."""
    assert [
        await model.prices()
        for model in (
            Ollama("ollama/m"),
            Ollama("ollama/gpt-oss:120b-cloud"),
            Ollama("ollama/m", api_base="https://ollama.com"),
        )
    ] == [Prices(input_usd=0.0, output_usd=0.0), None, None]
