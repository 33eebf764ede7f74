"""What a provider says is honoured: when to ask again, what a broken attempt spent, and where a fallback is asked."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Execution, LiteLLM
from playhead.errors import RateLimitError
from playhead.kernel.models import resolve_model
from playhead.testing import text
from tests.answering import answering
from tests.findings.adapter import agent, events, reproduce, run
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from pathlib import Path


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def serving(*answers: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a server that gives these answers, the last one again and again, and what it is asked."""
    asked: list[dict[str, Any]] = []

    def answer(path: str, given: Message, body: bytes) -> tuple[int, dict[str, str], list[bytes]]:
        status, headers, content = answers[min(len(asked), len(answers) - 1)]
        asked.append({"path": path, "key": given.get("Authorization"), "body": json.loads(body)})
        return status, headers, [content]

    with answering(answer) as address:
        yield address, asked


def openai(content: str = "done", **usage: int) -> bytes:
    """Return a chat completion."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    counted = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11} | usage
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": counted}
    ).encode()


def ollama() -> bytes:
    """Return an answer of Ollama's."""
    message = {"role": "assistant", "content": "done"}
    return json.dumps(
        {"model": "m", "message": message, "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
    ).encode()


def refused(status: int, **headers: str) -> Answer:
    """Return an answer that asks for patience."""
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        b'{"error": {"message": "slow down"}}',
    )


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-the-environment")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no time pass, and note how much would have."""
    seconds: list[float] = []

    async def sleep(_: object, delay_s: float) -> None:
        seconds.append(delay_s)

    monkeypatch.setattr("playhead.kernel.session.World.sleep", sleep)
    return seconds


PAUSES = {
    "seconds": ({"retry_after": "2"}, 2.0),
    "milliseconds": ({"retry_after_ms": "2500"}, 2.5),
    "a date": ({"retry_after": "Fri, 02 Jan 2026 03:04:12 GMT"}, 0.5),
    "less than our own pause": ({"retry_after": "0"}, 0.5),
    "infinite": ({"retry_after": "inf"}, 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize("status", sample([429, 503], [429]))
@pytest.mark.parametrize(("headers", "pause"), PAUSES.values(), ids=PAUSES)
def test_the_pause_that_a_provider_asks_for_is_made(
    provider: str, status: int, headers: dict[str, str], pause: float, slept: list[float], tmp_path: Path
) -> None:
    """Its seconds or milliseconds are waited, never less than our own pause; the trace says how long."""
    done = openai() if provider == "openai" else ollama()
    with serving(refused(status, **headers), (200, {}, done)) as (url, asked):
        base = f"{url}/v1" if provider == "openai" else url
        result = run(Agent(resolve_model(f"{provider}/m", api_base=base), trace=tmp_path))
    assert (result.output, len(asked), slept) == ("done", 2, [pause])
    assert [each["delay_s"] for each in events(result, "llm-retried")] == [pause]
    assert reproduce(result.trace_path).identical
    assert slept == [pause]  # a reproduction waits for nobody


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_pause_that_is_too_long_is_not_made(provider: str, slept: list[float], tmp_path: Path) -> None:
    """Beyond a minute the error comes at once, and says so; another model may take over."""
    with serving(refused(429, retry_after="3600")) as (url, asked):
        base = f"{url}/v1" if provider == "openai" else url
        made = Agent(resolve_model(f"{provider}/m", api_base=base), trace=tmp_path)
        with pytest.raises(
            RateLimitError, match=r"asks for a pause of 3600 s, longer than the 60 s that are waited at most"
        ):
            made.run_sync("x")
        result = run(made)
        with_fallback = Agent(
            resolve_model(f"{provider}/m", api_base=base),
            execution=Execution(fallbacks=[agent([text("the other")]).model]),
            trace=None,
        )
        assert run(with_fallback).output == "the other"
    assert (len(asked), slept) == (3, [])
    assert reproduce(result.trace_path).identical


def addresses(made: Agent) -> list[str | None]:
    """Return where the fallbacks of an agent are asked."""
    return [each.address for each in made.header.fallbacks]


@pytest.mark.slow
def test_a_fallback_of_the_same_provider_has_its_address_and_key() -> None:
    """Prompts of a local server never go to the provider's usual address because that server was down."""
    with serving((500, {}, b"{}"), (200, {}, openai())) as (url, asked):
        made = Agent(
            LiteLLM("openai/a", api_base=f"{url}/v1", api_key="sk-of-the-local-one"),
            execution=Execution(fallbacks=["openai/b"], retries=0),
            trace=None,
        )
        assert addresses(made) == [f"{url}/v1"]
        assert run(made).output == "done"
    assert [(each["body"]["model"], each["key"]) for each in asked] == [
        ("a", "Bearer sk-of-the-local-one"),
        ("b", "Bearer sk-of-the-local-one"),
    ]


@pytest.mark.parametrize(
    ("model", "fallbacks", "expected"),
    [
        ("openai/a", ["openai/b", "anthropic/c", "openai/d"], ["http://127.0.0.1:9/v1", None, "http://127.0.0.1:9/v1"]),
        ("anthropic/a", ["ollama/b"], [None]),
    ],
)
def test_the_header_holds_the_address_of_each_fallback(
    model: str, fallbacks: list[str], expected: list[str | None], caplog: pytest.LogCaptureFixture
) -> None:
    """A fallback of the same provider uses the primary's address, others do not; a warning says that prompts leave it."""
    made = Agent(
        resolve_model(model, api_base="http://127.0.0.1:9/v1", api_key="sk-primary"),
        execution=Execution(fallbacks=fallbacks),
        trace=None,
    )
    assert addresses(made) == expected
    strangers = [name for name, address in zip(fallbacks, expected, strict=True) if address is None]
    assert [
        name for name in fallbacks if f"fallback {name} is asked at its provider's usual address" in caplog.text
    ] == strangers
    keys = [dict(each.secrets).get("api_key") for each in made.as_tool().fallbacks]
    assert keys == [None if address is None or model.startswith("ollama") else "sk-primary" for address in expected]
