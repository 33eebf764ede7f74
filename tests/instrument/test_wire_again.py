"""What happens on the wire happens again when a program is reproduced: retries, refusals, broken and abandoned streams."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import pytest

import playhead
from playhead import recorded
from playhead.compose.killswitches import budget_limit
from playhead.errors import RunEndedError
from tests.answering import answering
from tests.instrument.test_wrapped_clients import CHUNKS, EVENT_STREAM, QUESTION, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADDRESS: list[str] = []
"""Where the server of a test is, for the programs below."""


def later(*statuses: int, then: Any = answer, **headers: str) -> Callable[..., Any]:
    """Return a server that refuses first."""
    left = iter(statuses)

    def respond(*asked: Any) -> Any:
        status = next(left, 200)
        return then(*asked) if status == 200 else (status, headers, [b'{"error": {"message": "not now"}}'])

    return respond


def client(kind: Any = openai.OpenAI, **options: Any) -> Any:
    """Return a wrapped client of OpenAI."""
    return playhead.wrap(kind(api_key="sk-secret-123456", base_url=f"{ADDRESS[-1]}/v1", **options))


def create(of: Any, **more: Any) -> Any:
    """Ask for a completion."""
    return of.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, **more)


@recorded
def retried() -> str:
    """Ask a server that refuses twice; the SDK tries again."""
    return str(create(client()).choices[0].message.content)


@recorded
def refused() -> str:
    """Ask a server that knows no such model."""
    try:
        return str(create(client()))
    except openai.NotFoundError as error:
        body: Any = error.body
        return f"{error.status_code} {body['message']} {error.response.headers['x-request-id']}"


@recorded
def unreachable() -> str:
    """Ask where nothing listens."""
    try:
        return str(create(playhead.wrap(openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9", max_retries=1))))
    except openai.APIConnectionError as error:
        return type(error.__cause__).__name__


@recorded
def streamed() -> str:
    """Read a stream to its end."""
    return "".join(each.choices[0].delta.content or "" for each in create(client(), stream=True))


@recorded
def abandoned() -> str:
    """Leave a stream after its first piece."""
    with create(client(), stream=True) as stream:
        return str(next(iter(stream)).choices[0].delta.content)


@recorded
def broken() -> str:
    """Read a stream that breaks."""
    said: list[Any] = []
    try:
        said.extend(each.choices[0].delta.content for each in create(client(), stream=True))
    except openai.APIConnectionError as error:
        said.append(type(error.__cause__).__name__)
    return str(said)


@recorded
def slow() -> str:
    """Ask a server that takes longer than the client waits."""
    try:
        return str(create(client(max_retries=0, timeout=httpx2.Timeout(20, read=0.02))))
    except openai.APITimeoutError as error:
        return type(error.__cause__).__name__


@recorded
async def cancelled() -> str:
    """Ask a server that takes longer than the program waits, before the head and in the middle of a stream."""
    said = []
    async with client(openai.AsyncOpenAI) as of:
        for options in ({}, {"stream": True}):
            try:
                async with asyncio.timeout(0.1):
                    answered = await create(of, **options)
                    said += [each.choices[0].delta.content async for each in answered]
            except TimeoutError:
                said.append("late")
    return str(said)


@recorded
async def gathered() -> str:
    """Ask three times at once, one of them for a stream."""

    async def words(of: Any) -> str:
        return "".join([each.choices[0].delta.content or "" async for each in await create(of, stream=True)])

    async with client(openai.AsyncOpenAI) as of:
        answers = await asyncio.gather(create(of), words(of), create(of, temperature=0.5))
    return str([each if isinstance(each, str) else each.choices[0].message.content for each in answers])


@recorded
def helped() -> str:
    """Use the stream helper of Anthropic's SDK."""
    of = playhead.wrap(anthropic.Anthropic(api_key="sk-ant-secret-1", base_url=ADDRESS[-1]))
    with of.messages.stream(model="claude-5", max_tokens=50, messages=QUESTION) as stream:
        return "".join(stream.text_stream)


@recorded
def local() -> str:
    """Ask Ollama."""
    of = playhead.wrap(ollama.Client(ADDRESS[-1]))
    return str(of.chat("q", QUESTION, stream=False).message.content)


@recorded
def elsewhere() -> str:
    """Ask a server that is no model."""
    with playhead.wrap(httpx.Client(base_url=ADDRESS[-1])) as of:
        response = of.post("/weather", json={"city": "Zed"})
        return f"{response.status_code} {response.json()['message']['content']}"


CUT = (200, {**EVENT_STREAM, "Content-Length": "9000"}, CHUNKS[:1])
NEVER = threading.Event()
"""Is never set."""


def sluggish(path: str, headers: Any, body: bytes) -> Any:
    """Send the first piece of a stream, and nothing else for longer than anybody waits."""

    def pieces() -> Iterator[bytes]:
        yield CHUNKS[0]
        NEVER.wait(0.3)

    if json.loads(body).get("stream"):
        return 200, EVENT_STREAM, pieces()
    NEVER.wait(0.3)
    return answer(path, headers, body)


PROGRAMS: dict[Any, tuple[Any, str, list[str]]] = {
    retried: (later(503, 429, **{"retry-after-ms": "1"}), "It is 4.", ["failed", "failed", "responded"]),
    refused: (later(404, **{"x-request-id": "req_7"}), "404 not now req_7", ["failed"]),
    unreachable: (answer, "ConnectError", ["failed", "failed"]),
    streamed: (answer, "It is 4.", ["responded"]),
    abandoned: (sluggish, "It is", ["failed"]),
    broken: (lambda *_: CUT, "['It is', 'RemoteProtocolError']", ["failed"]),
    slow: (sluggish, "ReadTimeout", ["failed"]),
    cancelled: (sluggish, "['late', 'late']", ["failed", "failed"]),
    gathered: (answer, "['It is 4.', 'It is 4.', 'It is 4.']", ["responded"] * 3),
    helped: (answer, "It is 4.", ["responded"]),
    local: (answer, "4", ["responded"]),
    elsewhere: (answer, "200 4", ["responded"]),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_program_reproduces_without_a_server(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same outcome, from the recording alone: the server is closed. A cancelled request waits to be cancelled."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    server, output, outcomes = PROGRAMS[program]
    with answering(server) as url:
        ADDRESS.append(url)
        said = program()
        assert (asyncio.run(said) if asyncio.iscoroutine(said) else said) == output
    recording = playhead.load_recording("latest")
    assert [f"llm-{each}" for each in outcomes] == [
        each.outcome and each.outcome.kind for each in recording.root.exchanges
    ]
    outcome = recording.reproduce_sync(program=program)
    assert (outcome.identical, outcome.divergences, outcome.ambiguous) == (True, (), ())
    assert recording.ending is not None
    assert recording.ending.output == output


def test_a_budget_refuses_a_request_whose_wire_format_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing bounds its answer, so it is not sent, and the run says why."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    asked: list[str] = []

    def listen(path: str, headers: Any, body: bytes) -> Any:
        asked.append(path)
        return answer(path, headers, body)

    with answering(listen) as url:
        ADDRESS.append(url)
        with pytest.raises(RunEndedError, match=r"the wire format of http://127\.0\.0\.1:\d+/weather is not known"):
            recorded(compose=[budget_limit(max_tokens=1000)])(vars(elsewhere)["__wrapped__"])()
    assert asked == []
