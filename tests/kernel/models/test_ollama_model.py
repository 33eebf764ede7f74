"""The Ollama adapter, streams of both adapters, and the bodies on the wire.

No registry has the real Ollama, so answers come from two sources. Plain ones are cassettes of a real local model behind a proxy
that speaks Ollama's protocol (`*_proxied.yaml`; it counts words as tokens). Calls, thinking and failures are written after
Ollama's API documentation, on a loopback server.
"""

from __future__ import annotations

import copy
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelRequestError,
    ModelUnavailableError,
    UnknownModelError,
)
from playhead.kernel.models.base import StreamsText, TextPiece
from playhead.kernel.models.litellm import LiteLLM
from playhead.kernel.models.ollama import Ollama, to_ollama
from playhead.trace.types import Completion, ImagePart, Message, Prices, Request, TextPart, ToolCall, ToolSpec, Usage
from tests.proving import sample
from tests.trace.strategies import json_values, texts

if TYPE_CHECKING:
    from tests.kernel.models.conftest import StubServer

pytestmark = [
    pytest.mark.anyio,
    # of litellm's own code, when it streams
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*ReadOnly:UserWarning"),
]

PROXIED = "ollama/local/qwen2.5-coder-1.5b"


OLLAMA, OPENAI = "ollama/qwen3:8b", "openai/gpt-4o-mini"


def ask(name: str = OLLAMA, text: str = "Say hi", tools: tuple[ToolSpec, ...] = (), **parameters: Any) -> Request:
    """Return a request with one question in it."""
    return Request(name, (Message(id=0, role="user", content=text),), tools, parameters)


def ollama_model(stub: StubServer) -> Ollama:
    """Return a model that the server answers for."""
    return Ollama(OLLAMA, api_base=stub.url)


async def test_a_plain_answer(cassette):
    """Text, done reason, token counts and the model's name are returned, at no cost."""
    with cassette("ollama_plain_proxied.yaml"):
        completion = await Ollama(PROXIED).complete(
            ask(PROXIED, "Reply with exactly one word: pong", temperature=0, max_tokens=8)
        )
    assert completion == Completion(
        text="pong",
        finish_reason="stop",
        usage=Usage(input_tokens=6, output_tokens=1),
        cost_usd=0.0,
        model="local/qwen2.5-coder-1.5b",
    )


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
async def test_every_refusal_is_one_clear_error(stub, status, body, kind, message):
    """A failed request is sent once and raises one of our errors with the server's words and the fix."""
    stub.answers(body, status)
    with pytest.raises(kind) as caught:
        await ollama_model(stub).complete(ask())
    assert (type(caught.value), str(caught.value).replace(stub.url, "URL")) == (kind, message)
    assert len(stub.requests) == 1


async def test_the_client_is_an_extra(monkeypatch):
    """Without the client the error says how to install it."""
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'playhead\[ollama\]'$"):
        await Ollama("ollama/m").complete(ask("ollama/m"))


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


KEY = "sk-test-key-0123456789"

WEATHER = ToolSpec(name="get_weather", description="Return the weather in a city.")


async def pieces(model: StreamsText, request: Request) -> tuple[list[str], Completion]:
    """Return the pieces of an answer and the answer, which has to come last."""
    found = [piece async for piece in model.stream(request)]
    assert [type(piece) for piece in found] == [TextPiece] * (len(found) - 1) + [Completion]
    return [piece.text for piece in found if isinstance(piece, TextPiece)], found[-1]  # type: ignore[return-value]


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


DELTAS: list[dict[str, Any]] = [
    {"role": "assistant", "reasoning_content": "hm, "},
    {"reasoning_content": "yes"},
    {"content": "I"},
    {"content": " look ✓"},
    call_part(0, "", id="call_1", type="function", name="get_weather"),
    call_part(0, '{"city":'),
    call_part(0, ' "Oslo"}'),
    call_part(1, '{"city": "Rome"}', id="call_2", type="function", name="get_weather"),
]


@pytest.mark.slow
async def test_a_stream_of_litellm_is_the_whole_answer(stub: StubServer):
    """Text, calls, reasoning, tokens and finish reason of a stream are those of the whole answer."""
    stub.parts = sse(*DELTAS, finish="tool_calls")
    functions = [{"name": "get_weather", "arguments": json.dumps({"city": city})} for city in ("Oslo", "Rome")]
    called = [{"id": f"call_{n}", "type": "function", "function": each} for n, each in enumerate(functions, 1)]
    stub.body = whole({"content": "I look ✓", "reasoning_content": "hm, yes", "tool_calls": called}, "tool_calls")
    model, request = openai_model(stub), ask(OPENAI, tools=(WEATHER,), temperature=0)
    said, streamed = await pieces(model, request)
    assert said == ["I", " look ✓"]
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai", "ollama"])
async def test_a_reader_that_leaves_closes_the_connection(stub: StubServer, name: str):
    """A stream that is cancelled closes its connection, so that the server stops working."""
    stub.end = "wait"
    model: Any = openai_model(stub) if name == "openai" else ollama_model(stub)
    stub.parts = (sse if name == "openai" else lines)({"content": "It"})[:1]
    with anyio.move_on_after(1) as scope:
        async for piece in model.stream(ask(model.name)):
            assert piece == TextPiece("It")
            scope.deadline = anyio.current_time() + 0.02
    assert scope.cancelled_caught
    assert await anyio.to_thread.run_sync(stub.gone.wait, 2)


COUNTS = {"done_reason": "stop", "done": True, "prompt_eval_count": 11, "eval_count": 18, "eval_duration": 5}


def lines(*messages: dict[str, Any], last: Any = COUNTS) -> list[str]:
    """Return a streamed chat response as Ollama's documentation shows it."""
    base = {"model": "qwen3:8b", "created_at": "2025-10-17T23:14:07.414671Z"}
    parts = [{**base, "message": {"role": "assistant", "content": "", **each}, "done": False} for each in messages]
    parts.append({**base, "message": {"role": "assistant", "content": ""}, **last})
    return [f"{json.dumps(part)}\n" for part in parts]


async def test_a_stream_of_ollama_is_the_whole_answer(stub: StubServer):
    """Text, calls, thinking and tokens of a stream are those of the whole answer."""
    oslo = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    any_city = {"id": "c", "function": {"name": "get_weather", "arguments": {}}}
    said: list[dict[str, Any]] = [{"thinking": "hm, "}, {"thinking": "yes"}, {"content": "I"}, {"content": " look."}]
    stub.parts = lines(*said, {"tool_calls": [oslo]}, {"tool_calls": [any_city]})
    message = {"role": "assistant", "content": "I look.", "thinking": "hm, yes", "tool_calls": [oslo, any_city]}
    stub.body = {"model": "qwen3:8b", "message": message, **COUNTS}
    model, request = ollama_model(stub), ask(tools=(WEATHER,), temperature=0)
    heard, streamed = await pieces(model, request)
    assert heard == ["I", " look."]
    assert streamed == await model.complete(request)
    assert (streamed.usage, streamed.cost_usd) == (Usage(input_tokens=11, output_tokens=18), 0.0)
    (_, first), (_, second) = stub.requests
    assert first == {**second, "stream": True}


@pytest.mark.slow
@pytest.mark.parametrize("end", ["break", "end"])
@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (openai_model, sse({"content": "It"}, {"content": " is"}, finish=None, usage=None)[:-1]),
        (openai_model, sse(*HALF_A_CALL, finish=None, usage=None)[:-1]),
        (ollama_model, lines({"content": "It"}, {"content": " is"})[:-1]),
    ],
    ids=["text", "call", "ollama"],
)
async def test_a_stream_that_breaks(stub: StubServer, make: Any, parts: list[str], end: str):
    """A broken connection, or an answer without its last part, is a failure that may be retried."""
    stub.parts, stub.end = parts, end
    model = make(stub)
    with pytest.raises(ModelUnavailableError):
        await pieces(model, ask(model.name))


SCHEMA = {
    "type": "object",
    "properties": {
        "where": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
        "count": {"type": "integer", "minimum": 1, "description": "how many"},
    },
    "$defs": {"Place": {"type": "object", "properties": {"name": {"type": "string", "enum": ["a", "ä"]}}}},
    "required": ["where"],
    "additionalProperties": False,
}

PICTURE = "data:image/png;base64,iVBORw0KGgo="

MESSAGES = (
    Message(id=0, role="system", content="Be brief."),
    Message(id=1, role="user", content=(TextPart(text="What is this? 🏔"), ImagePart(url=PICTURE))),
    Message(
        id=4,
        role="assistant",
        tool_calls=(
            ToolCall(id="call_1", name="look", arguments={"where": {"name": "ä"}, "count": 2}),
            ToolCall(id="call_2", name="look", raw_arguments='{"where": '),
        ),
    ),
    Message(id=5, role="tool", content="a mountain", tool_call_id="call_1", name="look"),
    Message(id=6, role="tool", content="", tool_call_id="call_2", name="look"),
)

TOOLS = (ToolSpec(name="look", description="Look closely.", parameters=SCHEMA, read_only=True, risk="high"),)


async def test_the_whole_body_that_ollama_gets(stub):
    """The whole schema of a tool arrives, parameters are where Ollama reads them, and prompts may not be truncated."""
    parameters = {"temperature": 0, "seed": 7, "stop": "x", "max_tokens": 5, "think": False, "keep_alive": "5m"}
    request = Request(model="ollama/some-model", messages=MESSAGES, tools=TOOLS, parameters=parameters)
    untouched = copy.deepcopy(request)
    stub.answers({"model": "some-model", "message": {"role": "assistant", "content": "ok"}, "done": True})

    await Ollama("ollama/some-model", api_base=stub.url).complete(request)

    assert stub.requests == [
        (
            "/api/chat",
            {
                "model": "some-model",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "What is this? 🏔", "images": ["iVBORw0KGgo="]},
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [
                            {
                                "id": "call_1",
                                "type": "function",
                                "function": {"name": "look", "arguments": {"where": {"name": "ä"}, "count": 2}},
                            },
                            {
                                "id": "call_2",
                                "type": "function",
                                "function": {"name": "look", "arguments": {"malformed_arguments": '{"where": '}},
                            },
                        ],
                    },
                    {"role": "tool", "content": "a mountain", "tool_call_id": "call_1", "tool_name": "look"},
                    {"role": "tool", "content": "", "tool_call_id": "call_2", "tool_name": "look"},
                ],
                "stream": False,
                "truncate": False,
                "shift": False,
                "think": False,
                "keep_alive": "5m",
                "options": {"temperature": 0, "seed": 7, "stop": ["x"], "num_predict": 5},
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "look", "description": "Look closely.", "parameters": SCHEMA},
                    },
                ],
            },
        )
    ]
    assert request == untouched


names = st.from_regex(r"[a-zA-Z_-]{1,12}", fullmatch=True)

calls = st.builds(ToolCall, id=names, name=names, arguments=st.dictionaries(texts, json_values, max_size=3))

message = partial(st.builds, Message, id=st.just(0), content=texts)


def some(parts: st.SearchStrategy[Any], least: int = 1) -> st.SearchStrategy[Any]:
    """Return a few of these, as a tuple."""
    return st.lists(parts, min_size=least, max_size=3).map(tuple)


messages = st.one_of(
    message(role=st.sampled_from(["system", "user", "assistant"])),
    message(role=st.just("user"), content=some(st.builds(TextPart, text=texts) | st.just(ImagePart(url=PICTURE)))),
    message(role=st.just("assistant"), tool_calls=some(calls)),
    message(role=st.just("tool"), tool_call_id=names),
)

requests = st.builds(
    Request,
    model=st.just("openai/some-model"),
    messages=some(messages),
    tools=some(st.builds(ToolSpec, name=names, description=texts, parameters=st.just(SCHEMA)), least=0),
    parameters=st.fixed_dictionaries({}, optional={"temperature": st.floats(0, 2), "seed": st.integers(0, 9)}),
)


@pytest.mark.slow
@settings(max_examples=sample(60, 10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request_sent=requests)
async def test_any_request_can_be_read_back_from_the_wire(stub, request_sent):
    """The body that litellm sends holds the messages, tools and parameters of the request, no more and no less."""
    stub.answers(whole({"content": "ok"}))
    await LiteLLM("openai/some-model", api_base=f"{stub.url}/v1", api_key="k").complete(request_sent)
    assert _read_back(stub.requests.pop()[1]) == request_sent


def _read_back(body):
    tools = tuple(ToolSpec(**tool["function"]) for tool in body.pop("tools", ()))
    sent = tuple(_message_back(message) for message in body.pop("messages"))
    return Request(model="openai/" + body.pop("model"), messages=sent, tools=tools, parameters=body)


def _message_back(wire):
    tool_calls = tuple(
        ToolCall(id=call["id"], name=call["function"]["name"], arguments=json.loads(call["function"]["arguments"]))
        for call in wire.pop("tool_calls", ())
    )
    content = wire.pop("content", "")
    parts = content if isinstance(content, str) else tuple(map(_part_back, content))
    return Message(id=0, content=parts, tool_calls=tool_calls, **wire)


def _part_back(part):
    return TextPart(**part) if part["type"] == "text" else ImagePart(url=part["image_url"]["url"])
