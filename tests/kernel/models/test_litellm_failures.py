"""Every failure of a provider is one clear error that names the fix."""

import logging
import socket
import traceback

import pytest

from playhead.errors import (
    MissingApiKeyError,
    ModelRequestError,
    ModelUnavailableError,
    PlayheadError,
    RateLimitError,
    UnknownModelError,
)
from playhead.kernel.models import litellm as adapter
from playhead.kernel.models.litellm import LiteLLM
from playhead.trace.types import Message, Request

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # litellm takes seconds to import

KEY = "sk-test-key-0123456789"


def ask(text="Say hi", model="openai/gpt-4o-mini", tools=(), **parameters):
    """Return a request with one question in it."""
    return Request(
        model=model, messages=(Message(id=0, role="user", content=text),), tools=tools, parameters=parameters
    )


@pytest.fixture
def model(stub):
    """Return a model that the stub server answers for."""
    return LiteLLM("openai/gpt-4o-mini", api_base=f"{stub.url}/v1", api_key=KEY)


@pytest.fixture
def dead_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answer_of(status, body=None):
    """Return what the stub server is told to answer."""
    return {"status": status, "body": body or {"error": {"message": f"said {status}", "type": "t", "code": "c"}}}


TOO_LONG = {
    "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
}
BAD_KEY = "URL does not accept the key for openai/gpt-4o-mini, from api_key: API key not valid. Pass a valid one."
NOT_JSON = (
    "URL failed (openai/gpt-4o-mini): Empty or invalid response from LLM endpoint. Received: '<html>'. "
    "Check the reverse proxy or model server configuration."
)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (answer_of(400), ModelRequestError, "URL refused the request (openai/gpt-4o-mini): said 400"),
        (answer_of(400, {"error": {"message": "API key not valid. Pass a valid one."}}), MissingApiKeyError, BAD_KEY),
        (
            answer_of(401),
            MissingApiKeyError,
            "URL does not accept the key for openai/gpt-4o-mini, from api_key: said 401",
        ),
        (answer_of(404), UnknownModelError, "URL does not know the model 'openai/gpt-4o-mini' (said 404)."),
        (answer_of(408), ModelUnavailableError, "URL failed (openai/gpt-4o-mini): said 408"),
        (answer_of(429), RateLimitError, "URL refused the request (openai/gpt-4o-mini): said 429"),
        (answer_of(500), ModelUnavailableError, "URL failed (openai/gpt-4o-mini): said 500"),
        (answer_of(529), ModelUnavailableError, "URL failed (openai/gpt-4o-mini): said 529"),
        (
            answer_of(400, {"error": TOO_LONG}),
            ModelRequestError,
            "URL refused the request (openai/gpt-4o-mini): " + TOO_LONG["message"],
        ),
        (
            answer_of(200, "<html>"),
            ModelUnavailableError,
            NOT_JSON,
        ),
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
    text = str(caught.value).replace(stub.url + "/v1", "URL")
    assert (type(caught.value), text.partition(" Did you mean")[0]) == (kind, message)
    assert len(stub.requests) == 1
    assert (*capfd.readouterr(), [record.message for record in caplog.records if "LiteLLM" in record.name]) == (
        "",
        "",
        [],
    )


async def test_no_server_at_the_address(dead_port):
    """The error names the address without its password, and what to check."""
    llm = LiteLLM("openai/m", api_base=f"http://127.0.0.1:{dead_port}/v1", api_key=KEY)
    with pytest.raises(ModelUnavailableError) as caught:
        await llm.complete(ask(model="openai/m"))
    assert (
        str(caught.value) == f"no server answers at http://127.0.0.1:{dead_port}/v1 (openai/m). Is the server running?"
    )
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


async def test_a_key_that_the_server_repeats_is_not_shown(stub, model):
    """A key that the server quotes is neither in the error nor in its traceback."""
    stub.answers({"error": {"message": f"Incorrect API key provided: {KEY}."}}, status=401)
    with pytest.raises(MissingApiKeyError) as caught:
        await model.complete(ask())
    assert str(caught.value).endswith("from api_key: Incorrect API key provided: [redacted:api_key].")
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.fixture
def failing(monkeypatch, model):
    """Return a function that returns what comes of an error that litellm raises."""

    async def failure(error):
        async def raising(**_):
            raise error

        monkeypatch.setattr(adapter._litellm(), "acompletion", raising)
        with pytest.raises(PlayheadError) as caught:
            await model.complete(ask())
        return caught.value

    return failure


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
        ("litellm.BadRequestError: OpenAIException - no", "no"),
        ("litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - too long", "too long"),
        (
            'litellm.InternalServerError: AnthropicException - {"type":"error","error":{"message":"sick"}}. Handle with `litellm.X`.',
            '{"type":"error","error":{"message":"sick"}}',
        ),
        ("litellm.APIConnectionError: bad\nTraceback (most recent call last):\n  File", "bad"),
        ("no\n\nGive Feedback / Get Help: https://…", "no"),
        ("a" * 400, "a" * 299 + "…"),
        (f"no{' ' * 1_000_000}page", "no page"),
        (f"key is {KEY}", "key is [redacted:api_key]"),
        ("", "OSError"),
    ],
)
async def test_an_error_holds_the_providers_own_words(failing, said_by_litellm, message):
    """Class names, advice, tracebacks and secrets are removed from the message."""
    assert str(await failing(OSError(said_by_litellm))).partition(" failed (openai/gpt-4o-mini): ")[2] == message
