"""A stream of an adapter holds the same answer as a whole response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead.errors import ModelUnavailableError
from playhead.kernel.models.base import StreamsText, TextPiece
from playhead.kernel.models.litellm import LiteLLM
from playhead.kernel.models.ollama import Ollama
from playhead.testing import ScriptedModel, call, calls
from playhead.trace.types import Completion, Message, Request, ToolCall, ToolSpec, Usage

if TYPE_CHECKING:
    from tests.kernel.models.conftest import StubServer

pytestmark = [
    pytest.mark.slow,  # litellm takes seconds to import
    # of litellm's own code, when it streams
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*ReadOnly:UserWarning"),
]

KEY = "sk-test-key-0123456789"
WEATHER = ToolSpec(name="get_weather", description="Return the weather in a city.")


def ask(name: str, tools: tuple[ToolSpec, ...] = (), **parameters: Any) -> Request:
    """Return a request with one question in it."""
    return Request(name, (Message(id=0, role="user", content="Say hi"),), tools, parameters)


async def pieces(model: StreamsText, request: Request) -> tuple[list[str], Completion]:
    """Return the pieces of an answer and the answer, which has to come last."""
    found = [piece async for piece in model.stream(request)]
    assert [type(piece) for piece in found] == [TextPiece] * (len(found) - 1) + [Completion]
    return [piece.text for piece in found if isinstance(piece, TextPiece)], found[-1]  # type: ignore[return-value]


# --- OpenAI's form, through litellm -----------------------------------------------------------------------------------

OPENAI = "openai/gpt-4o-mini"
USAGE = {
    "prompt_tokens": 36,
    "completion_tokens": 7,
    "total_tokens": 43,
    "prompt_tokens_details": {"cached_tokens": 24},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def openai_model(stub: StubServer) -> LiteLLM:
    """Return a model that the server answers for."""
    return LiteLLM(OPENAI, api_base=f"{stub.url}/v1", api_key=KEY)


def sse(*deltas: dict[str, Any], finish: str | None = "stop", usage: Any = USAGE) -> list[str]:
    """Return a streamed chat completion, as OpenAI sends it."""
    base = {"id": "answer-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[Any] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if finish is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    chunks: list[Any] = [{**base, "choices": [choice]} for choice in choices]
    if usage is not None:
        chunks.append({**base, "choices": [], "usage": usage})
    return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def whole(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """Return the same answer in one."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None, **message}}
    base = {"id": "answer-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**base, "choices": [choice], "usage": USAGE}


def call_part(index: int, arguments: str, **first: Any) -> dict[str, Any]:
    """Return a part of a call."""
    function = {"arguments": arguments, **({"name": first.pop("name")} if "name" in first else {})}
    return {"tool_calls": [{"index": index, "function": function, **first}]}


CASES: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "text": (
        sse({"role": "assistant", "content": ""}, {"content": "It"}, {"content": " is"}, {"content": " 42 + ✓"}),
        whole({"content": "It is 42 + ✓"}),
        ["It", " is", " 42 + ✓"],
    ),
    "calls": (
        sse(
            {"role": "assistant", "content": "I look."},
            call_part(0, "", id="call_1", type="function", name="get_weather"),
            call_part(0, '{"city":'),
            call_part(0, ' "Oslo"}'),
            call_part(1, '{"city": "Rome"}', id="call_2", type="function", name="get_weather"),
            finish="tool_calls",
        ),
        whole(
            {
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": f"call_{number}",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
                    }
                    for number, city in ((1, "Oslo"), (2, "Rome"))
                ],
            },
            "tool_calls",
        ),
        ["I look."],
    ),
    "reasoning": (
        sse({"role": "assistant", "reasoning_content": "hm, "}, {"reasoning_content": "yes"}, {"content": "42"}),
        whole({"content": "42", "reasoning_content": "hm, yes"}),
        ["42"],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_stream_of_litellm_is_the_whole_answer(stub: StubServer, name: str):
    """Text, calls, reasoning, tokens and finish reason of a stream are those of the whole answer."""
    stub.parts, stub.body, expected = CASES[name]
    model, request = openai_model(stub), ask(OPENAI, (WEATHER,), temperature=0)
    said, streamed = await pieces(model, request)
    assert said == expected
    assert streamed == await model.complete(request)
    assert streamed.usage == Usage(input_tokens=36, output_tokens=7, cache_read_tokens=24, reasoning_tokens=3)
    (_, first), (_, second) = stub.requests
    assert {key: value for key, value in first.items() if key not in ("stream", "stream_options")} == second
    assert (first["stream"], first["stream_options"]) == (True, {"include_usage": True})


HALF_A_CALL = [
    {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "lookup", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
]
"""A call that may or may not be whole."""


@pytest.mark.parametrize("end", ["break", "end"])
@pytest.mark.parametrize("deltas", [[{"content": "It"}, {"content": " is"}], HALF_A_CALL], ids=["text", "call"])
async def test_a_stream_of_litellm_that_breaks(stub: StubServer, deltas: list[Any], end: str):
    """A broken connection, or an answer without its last part, is a failure that may be retried."""
    stub.parts, stub.end = sse(*deltas, finish=None, usage=None)[:-1], end
    with pytest.raises(ModelUnavailableError):
        await pieces(openai_model(stub), ask(OPENAI))


@pytest.mark.parametrize("name", ["openai", "ollama"])
async def test_a_reader_that_leaves_closes_the_connection(stub: StubServer, name: str):
    """A stream that is cancelled closes its connection, so that the server stops working."""
    stub.end = "wait"
    model: Any
    if name == "openai":
        stub.parts, model, request = (
            sse({"content": "It"}, finish=None, usage=None)[:-1],
            openai_model(stub),
            ask(OPENAI),
        )
    else:
        stub.parts, model, request = lines({"content": "It"})[:1], ollama_model(stub), ask(OLLAMA)
    with anyio.move_on_after(1) as scope:
        async for piece in model.stream(request):
            assert piece == TextPiece("It")
            scope.deadline = anyio.current_time() + 0.02
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(stub.gone.wait, 2)


# --- Ollama -----------------------------------------------------------------------------------------------------------

OLLAMA = "ollama/qwen3:8b"
COUNTS = {"done_reason": "stop", "done": True, "prompt_eval_count": 11, "eval_count": 18, "eval_duration": 5}


def ollama_model(stub: StubServer) -> Ollama:
    """Return a model that the server answers for."""
    return Ollama(OLLAMA, api_base=stub.url)


def lines(*messages: dict[str, Any], last: Any = COUNTS) -> list[str]:
    """Return a streamed chat response as Ollama's documentation shows it."""
    base = {"model": "qwen3:8b", "created_at": "2025-10-17T23:14:07.414671Z"}
    parts = [{**base, "message": {"role": "assistant", "content": "", **each}, "done": False} for each in messages]
    parts.append({**base, "message": {"role": "assistant", "content": ""}, **last})
    return [f"{json.dumps(part)}\n" for part in parts]


@pytest.mark.parametrize(
    ("messages", "message", "expected"),
    [
        ([{"content": "It"}, {"content": " is 42"}], {"content": "It is 42"}, ["It", " is 42"]),
        (
            [
                {"thinking": "hm, "},
                {"thinking": "yes"},
                {"content": "I look."},
                {"tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]},
                {"tool_calls": [{"id": "c", "function": {"name": "get_weather", "arguments": {}}}]},
            ],
            {
                "content": "I look.",
                "thinking": "hm, yes",
                "tool_calls": [
                    {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}},
                    {"id": "c", "function": {"name": "get_weather", "arguments": {}}},
                ],
            },
            ["I look."],
        ),
    ],
    ids=["text", "calls"],
)
async def test_a_stream_of_ollama_is_the_whole_answer(
    stub: StubServer, messages: Any, message: Any, expected: list[str]
):
    """Text, calls, thinking and tokens of a stream are those of the whole answer."""
    stub.parts = lines(*messages)
    stub.body = {"model": "qwen3:8b", "message": {"role": "assistant", "content": "", **message}, **COUNTS}
    model, request = ollama_model(stub), ask(OLLAMA, (WEATHER,), temperature=0)
    said, streamed = await pieces(model, request)
    assert said == expected
    assert streamed == await model.complete(request)
    assert (streamed.usage, streamed.cost_usd) == (Usage(input_tokens=11, output_tokens=18), 0.0)
    (_, first), (_, second) = stub.requests
    assert first == {**second, "stream": True}


@pytest.mark.parametrize("end", ["break", "end"])
async def test_a_stream_of_ollama_that_breaks(stub: StubServer, end: str):
    """A broken connection, or an answer without its last part, is a failure that may be retried."""
    stub.parts, stub.end = lines({"content": "It"}, {"content": " is"})[:-1], end
    with pytest.raises(ModelUnavailableError):
        await pieces(ollama_model(stub), ask(OLLAMA))


async def test_an_error_inside_a_stream_of_ollama(stub: StubServer):
    """An error that the server writes into its stream is raised."""
    stub.parts = [*lines({"content": "It"})[:1], '{"error": "an unexpected error was encountered"}\n']
    with pytest.raises(ModelUnavailableError, match="an unexpected error"):
        await pieces(ollama_model(stub), ask(OLLAMA))


# --- the script -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["", "\n It\tis \n\n"])
async def test_a_script_streams_words(said: str):
    """A scripted model streams word by word, always in the same pieces."""
    turn = calls(call("lookup", key="a"), text=said)
    found, streamed = await pieces(ScriptedModel([turn]), ask("scripted/model"))
    assert "".join(found) == said
    assert (found, streamed) == (await pieces(ScriptedModel([turn]), ask("scripted/model")))
    assert streamed == await ScriptedModel([turn]).complete(ask("scripted/model"))
    assert streamed.tool_calls == (ToolCall(id="", name="lookup", arguments={"key": "a"}),)
