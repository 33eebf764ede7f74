"""The litellm adapter: answers from a real local model (cassettes), failures from a loopback server."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import (
    MissingApiKeyError,
    MissingDependencyError,
    ModelRequestError,
    ModelUnavailableError,
    PlayheadError,
    RateLimitError,
    UnknownModelError,
)
from playhead.kernel.models import litellm as adapter
from playhead.kernel.models.base import CountsTokens
from playhead.kernel.models.litellm import LiteLLM
from playhead.kernel.models.openai_format import to_openai
from playhead.trace.types import Completion, Message, Prices, Request, ToolCall, ToolSpec, Usage

if TYPE_CHECKING:
    from tests.kernel.models.conftest import StubServer

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
    reasoning = completion.usage.reasoning_tokens  # an estimate of litellm's
    assert completion == Completion(
        text="let me look",
        thinking="hm",
        tool_calls=(ToolCall(id="toolu_1", name="get_weather", arguments={"city": "Oslo"}),),
        finish_reason="tool_calls",
        usage=Usage(
            input_tokens=60, output_tokens=5, cache_read_tokens=30, cache_write_tokens=20, reasoning_tokens=reasoning
        ),
        cost_usd=completion.cost_usd,
        model="claude-haiku-4-5-20251001",
    )
    assert completion.cost_usd == pytest.approx(10 * 1e-06 + 20 * 1.25e-06 + 30 * 1e-07 + 5 * 5e-06)


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


@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream", "n", "api_key", "num_retries", "fallbacks"])
def test_a_parameter_cannot_change_what_the_recording_says(name):
    """A parameter that decides who answers, how often, or what is asked, is refused."""
    with pytest.raises(ModelRequestError, match=f"^{name}: a request cannot set this"):
        to_openai(Request(model="openai/m", messages=(), parameters={name: 2}))


async def test_prices_come_from_the_table_or_not_at_all():
    """Prices come from litellm's table; a model with no or half an entry has no price."""
    names = ("openai/gpt-4o-mini", "openai/no-such-model", "bedrock/twelvelabs.pegasus-1-2-v1:0", "ollama_chat/x")
    assert [await LiteLLM(name).prices() for name in names] == [
        Prices(input_usd=1.5e-07, output_usd=6e-07, cache_read_usd=7.5e-08),
        None,
        None,
        None,
    ]


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


@pytest.fixture
def dead_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answer_of(status, body=None):
    """Return what the stub server is told to answer."""
    return {"status": status, "body": body or {"error": {"message": f"said {status}", "type": "t", "code": "c"}}}


NOT_ACCEPTED, WRONG_KEY = "URL does not accept the key for MODEL, from api_key:", "API key not valid. Pass a valid one."


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (answer_of(400), ModelRequestError, "URL refused the request (MODEL): said 400"),
        (answer_of(400, {"error": {"message": WRONG_KEY}}), MissingApiKeyError, f"{NOT_ACCEPTED} {WRONG_KEY}"),
        (answer_of(401), MissingApiKeyError, f"{NOT_ACCEPTED} said 401"),
        (answer_of(404), UnknownModelError, "URL does not know the model 'MODEL' (said 404)."),
        (answer_of(408), ModelUnavailableError, "URL failed (MODEL): said 408"),
        (answer_of(429), RateLimitError, "URL refused the request (MODEL): said 429"),
        (answer_of(500), ModelUnavailableError, "URL failed (MODEL): said 500"),
        (answer_of(200, "<html>"), ModelUnavailableError, "URL failed (MODEL): Empty or invalid response from LLM"),
    ],
    ids=lambda value: str(value.get("status")) if isinstance(value, dict) else "",
)
async def test_every_refusal_is_one_clear_error(stub, model, capfd, caplog, answer, kind, message):
    """A failed request is sent once, raises one of our errors with the provider's words, and prints nothing."""
    caplog.set_level(logging.DEBUG)
    adapter._litellm.cache_clear()  # and so the level is set again
    logging.getLogger("LiteLLM").setLevel(logging.NOTSET)
    stub.answers(**answer)
    with pytest.raises(kind) as caught:
        await model.complete(ask())
    text = str(caught.value).replace(stub.url + "/v1", "URL").replace("openai/gpt-4o-mini", "MODEL")
    assert (type(caught.value), text[: len(message)]) == (kind, message)
    assert len(stub.requests) == 1
    logged = [record.message for record in caplog.records if "LiteLLM" in record.name]
    assert (*capfd.readouterr(), logged) == ("", "", [])


async def test_no_server_at_the_address(dead_port):
    """The error names the address without its query, and what to check."""
    llm = LiteLLM("openai/m", api_base=f"http://127.0.0.1:{dead_port}/v1?key=k", api_key=KEY)
    with pytest.raises(
        ModelUnavailableError, match=rf"^no server answers at http://127.0.0.1:{dead_port}/v1 \("
    ) as caught:
        await llm.complete(ask(model="openai/m"))
    assert str(caught.value).endswith("(openai/m). Is the server running?")
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("gemini/gemini-2.5-flash", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key(name, variables):
    """The error names the environment variable, and nothing is sent."""
    with pytest.raises(MissingApiKeyError) as caught:
        await LiteLLM(name).complete(ask(model=name))
    assert str(caught.value) == (
        f"no API key for {name}: set {variables}, or pass api_key= to LiteLLM(…) (any text, if the server needs none)"
    )


async def test_a_reset_connection(stub, model):
    """The tokens of a request whose connection was reset are not known."""
    stub.resets = True
    with pytest.raises(ModelUnavailableError) as caught:
        await model.complete(ask())
    assert str(caught.value).startswith(f"{stub.url}/v1 failed (openai/gpt-4o-mini): ")
    assert "usage" not in vars(caught.value)
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("said_by_litellm", "message"),
    [
        ("litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - too long", "too long"),
        (
            'litellm.InternalServerError: AnthropicException - {"type":"error","error":{"message":"sick"}}. Handle with `litellm.X`.',
            '{"type":"error","error":{"message":"sick"}}',
        ),
        ("litellm.APIConnectionError: bad\nTraceback (most recent call last):\n  File", "bad"),
        ("a" * 400, "a" * 299 + "…"),
        (f"no{' ' * 1_000_000}page", "no page"),
        (f"key is {KEY}", "key is [redacted:api_key]"),
        ("", "OSError"),
    ],
)
async def test_an_error_holds_the_providers_own_words(monkeypatch, model, said_by_litellm, message):
    """Class names, advice, tracebacks and secrets are removed from the message."""

    async def raising(**_):
        raise OSError(said_by_litellm)

    monkeypatch.setattr(adapter._litellm(), "acompletion", raising)
    with pytest.raises(PlayheadError) as caught:
        await model.complete(ask())
    assert str(caught.value).partition(" failed (openai/gpt-4o-mini): ")[2] == message


@pytest.mark.parametrize(
    ("name", "environment", "arguments", "secrets"),
    [
        ("openai/m", {"OPENAI_API_KEY": "a"}, {"api_key": "c"}, {"OPENAI_API_KEY": "a", "api_key": "c"}),
        (
            "together_ai/m",
            {"TOGETHERAI_API_KEY": "a", "TOGETHER_AI_TOKEN": "b"},
            {},
            {"TOGETHERAI_API_KEY": "a", "TOGETHER_AI_TOKEN": "b"},
        ),
        ("bedrock/m", {"AWS_SECRET_ACCESS_KEY": "a", "AWS_REGION": "eu"}, {}, {"AWS_SECRET_ACCESS_KEY": "a"}),
        (
            "openai/m",
            {},
            {"api_base": "http://me:p%40ss@127.0.0.1:9/v1"},
            {"address of api_base: password": "p%40ss", "address of api_base: password decoded": "p@ss"},
        ),
        (
            "openai/m",
            {"OPENAI_BASE_URL": "http://token@127.0.0.1?sig=a%2Bb&api-version=2024-06-01"},
            {},
            {
                "address of OPENAI_BASE_URL: password": "token",
                "address of OPENAI_BASE_URL: password decoded": "token",
                "address of OPENAI_BASE_URL: sig": "a+b",
                "address of OPENAI_BASE_URL: sig decoded": "a+b",
            },
        ),
    ],
)
def test_secrets_are_known_before_anything_is_sent(monkeypatch, name, environment, arguments, secrets):
    """Keys given or found in the environment, and passwords in addresses, are the secrets that the recorder redacts."""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert LiteLLM(name, **arguments).secrets == secrets


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
