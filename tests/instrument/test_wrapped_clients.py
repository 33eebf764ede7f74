from __future__ import annotations

import asyncio
import gc
import gzip
import json
import threading
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import pytest

from playhead.errors import UsageError
from playhead.instrument.clients import wrap
from playhead.instrument.seam import Halted
from playhead.instrument.transports import ClosedEarly, Served
from tests.answering import answering
from tests.instrument.wires import CHAT, MESSAGE, MESSAGE_EVENTS, chat_chunk, recording, sse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUESTION = [{"role": "user", "content": "2 + 2? ✓"}]
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-5",
    "status": "completed",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "It is 4.", "annotations": []}],
        }
    ],
}
RESPONSE_EVENTS = sse(
    {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "output": []}},
    {"type": "response.completed", "sequence_number": 1, "response": RESPONSE},
    named=True,
)
GENERATED = {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is 4."}]}, "finishReason": "STOP"}]}
OLLAMA = {"model": "q", "message": {"role": "assistant", "content": "4"}, "done": True, "prompt_eval_count": 3}
EVENT_STREAM = {"Content-Type": "text/event-stream"}
CHUNKS = [
    *sse(chat_chunk(delta={"role": "assistant", "content": "It is"}), chat_chunk(delta={"content": " 4."})),
    *sse(chat_chunk(finish_reason="stop"), "[DONE]"),
]


def answer(path: str, headers: Any, body: bytes) -> Any:
    """Answer as the provider of the path would."""
    asked = json.loads(body)
    if path.endswith("/chat/completions"):
        return (200, EVENT_STREAM, CHUNKS) if asked.get("stream") else (200, {}, [json.dumps(CHAT).encode()])
    if path.endswith("/v1/messages"):
        streamed = sse(*MESSAGE_EVENTS, named=True)
        return (200, EVENT_STREAM, streamed) if asked.get("stream") else (200, {}, [json.dumps(MESSAGE).encode()])
    if path.endswith("/responses"):
        return (
            (200, EVENT_STREAM, RESPONSE_EVENTS) if asked.get("stream") else (200, {}, [json.dumps(RESPONSE).encode()])
        )
    if "generateContent" in path:
        return 200, {}, [json.dumps(GENERATED).encode()]
    return 200, {}, [json.dumps(OLLAMA).encode()]


def openai_client(url: str, kind: Any = openai.OpenAI, **options: Any) -> Any:
    """Return a client of OpenAI."""
    return kind(api_key="sk-secret-123456", base_url=f"{url}/v1", **options)


def anthropic_client(url: str, kind: Any = anthropic.Anthropic) -> Any:
    """Return a client of Anthropic."""
    return kind(api_key="sk-ant-secret-123456", base_url=url)


def ask_openai(client: Any, **more: Any) -> Any:
    """Ask OpenAI's chat completions."""
    return client.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, **more)


def ask_anthropic(client: Any) -> Any:
    """Ask Anthropic's messages."""
    return client.messages.create(model="claude-5", max_tokens=50, messages=QUESTION)


def ask_responses(client: Any) -> Any:
    """Ask OpenAI's Responses for a stream."""
    return list(client.responses.create(model="gpt-5", input="2 + 2? ✓", stream=True))


async def _ask_later(client: Any, ask: Callable[[Any], Any]) -> None:
    await ask(client)
    await client.close()


def _ask_http(client: Any) -> None:
    client.post("/v1/chat/completions?key=k-secret-99", json={"model": "m", "messages": QUESTION})


CLIENTS: dict[str, tuple[Callable[[str], Any], Callable[[Any], Any]]] = {
    "openai": (openai_client, ask_openai),
    "openai-stream": (openai_client, lambda client: list(ask_openai(client, stream=True))),
    "openai-responses": (openai_client, ask_responses),
    "openai-legacy-httpx": (lambda url: openai_client(url, http_client=httpx.Client()), ask_openai),
    "async-openai": (
        lambda url: openai_client(url, openai.AsyncOpenAI),
        lambda client: asyncio.run(_ask_later(client, ask_openai)),
    ),
    "anthropic": (anthropic_client, ask_anthropic),
    "async-anthropic": (
        lambda url: anthropic_client(url, anthropic.AsyncAnthropic),
        lambda client: asyncio.run(_ask_later(client, ask_anthropic)),
    ),
    "ollama": (ollama.Client, lambda client: client.chat("q", QUESTION, stream=False)),
    "httpx": (lambda url: httpx.Client(base_url=url), _ask_http),
    "httpx2": (lambda url: httpx2.Client(base_url=url), _ask_http),
}


@pytest.fixture
def url() -> Iterator[str]:
    """Run the server."""
    with answering(answer) as address:
        yield address


@pytest.mark.parametrize("name", CLIENTS)
def test_a_wrapped_client_sends_what_the_bare_one_sends(name: str) -> None:
    """Path, headers in their order, and body are the same, in a recorded run and outside of one."""
    make, ask = CLIENTS[name]
    heard: list[Any] = []

    def listen(path: str, headers: Any, body: bytes) -> Any:
        heard.append((path, headers.items(), body))
        return answer(path, headers, body)

    with answering(listen) as url:
        ask(make(url))
        ask(wrap(make(url)))
        with recording() as wires:
            ask(wrap(make(url)))
    assert heard[1:] == heard[:1] * 2
    (kept,) = wires.kept
    assert kept.asked.body == heard[0][2]
    assert kept.status == 200
    ((error, body),) = kept.ends
    assert error is None or kept.answer.is_whole
    assert b"".join(kept.chunks) == body


@pytest.mark.parametrize("name", CLIENTS)
def test_no_credential_is_among_what_is_recorded(name: str, url: str) -> None:
    """Headers are kept by an allow-list and the address has no query; the values are named for the redactor."""
    make, ask = CLIENTS[name]
    with recording() as wires:
        ask(wrap(make(url)))
    asked = wires.kept[0].asked
    assert "secret" not in repr(asked)
    assert asked.headers.keys() <= {
        "accept",
        "content-type",
        "user-agent",
        "anthropic-version",
        "x-stainless-retry-count",
    }
    assert all("secret" in value for value in asked.secrets.values())


def waiting_server(parts: list[bytes], arrived: threading.Event) -> Any:
    """Return an answer that sends its first part, and the others only after the caller has that one."""

    def body() -> Iterator[bytes]:
        yield parts[0]
        assert arrived.wait(20)
        yield from parts[1:]

    return lambda *_: (200, EVENT_STREAM, body())


def test_a_stream_arrives_while_the_server_is_still_sending() -> None:
    """The server sends its second chunk only after the caller has the first one."""
    arrived = threading.Event()
    said = []
    with answering(waiting_server(CHUNKS, arrived)) as url, recording() as wires:
        for chunk in ask_openai(wrap(openai_client(url)), stream=True):
            arrived.set()
            said.append(chunk.choices[0].delta.content)
    assert said == ["It is", " 4.", None]
    ((_, body),) = wires.kept[0].ends
    assert body.startswith(b"".join(CHUNKS))


async def test_a_stream_arrives_while_the_server_is_still_sending_in_an_event_loop() -> None:
    """The same is true of an asynchronous client."""
    arrived = threading.Event()
    with answering(waiting_server(sse(*MESSAGE_EVENTS, named=True), arrived)) as url, recording() as wires:
        client = wrap(anthropic_client(url, anthropic.AsyncAnthropic))
        kinds = []
        stream = await client.messages.create(model="claude-5", max_tokens=50, messages=QUESTION, stream=True)
        async for event in stream:
            arrived.set()
            kinds.append(event.type)
        await client.close()
    assert kinds == [each["type"] for each in MESSAGE_EVENTS]
    assert wires.kept[0].answer.completion.text == "It is 4."


def test_each_try_of_the_sdk_is_an_exchange() -> None:
    """A request that is sent again is counted by the SDK's own header; the refusal is read."""
    statuses = iter([503, 429, 200])

    def refuse(*asked: Any) -> Any:
        status = next(statuses)
        problem = (status, {"retry-after-ms": "1"}, [b'{"error": {"message": "later"}}'])
        return answer(*asked) if status == 200 else problem

    with answering(refuse) as url, recording() as wires:
        assert ask_openai(wrap(openai_client(url))).choices[0].message.content == "It is 4."
    assert [each.asked.attempt for each in wires.kept] == [0, 1, 2]
    assert [str(each.answer.error) for each in wires.kept] == ["later", "later", "None"]


def test_a_stream_that_the_caller_leaves_ends_where_it_was_left() -> None:
    """What was received is kept; the answer is not whole."""
    arrived = threading.Event()
    with answering(waiting_server(CHUNKS, arrived)) as url, recording() as wires:
        stream = ask_openai(wrap(openai_client(url)), stream=True)
        next(stream)
        stream.close()
        arrived.set()
    ((error, body),) = wires.kept[0].ends
    assert isinstance(error, ClosedEarly)
    assert body == CHUNKS[0]
    assert not wires.kept[0].answer.is_whole


def test_a_broken_stream_raises_as_without_playhead_and_keeps_its_beginning() -> None:
    """The caller gets the library's own error."""
    broken = (200, {"Content-Length": "5000"}, [b'{"half":'])
    with answering(lambda *_: broken) as url, recording() as wires, pytest.raises(httpx.RemoteProtocolError):
        wrap(httpx.Client()).post(f"{url}/v1/messages", json={"model": "c", "messages": []})
    ((error, body),) = wires.kept[0].ends
    assert isinstance(error, httpx.RemoteProtocolError)
    assert body == b'{"half":'


async def test_a_cancelled_request_ends_as_cancelled() -> None:
    """A request that a task was waiting for ends when the task is cancelled."""
    arrived, opened = threading.Event(), asyncio.Event()
    held: Any = (200, {}, (bytes(arrived.wait(20)) for _ in range(1)))
    with answering(lambda *_: held) as url, recording(lambda _: opened.set()) as wires:
        client = wrap(httpx2.AsyncClient())
        task = asyncio.create_task(client.post(f"{url}/v1/messages", json={"messages": []}))
        await opened.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        arrived.set()
        await client.aclose()
    assert isinstance(wires.kept[0].ends[0][0], asyncio.CancelledError)


def test_a_dead_server_is_the_callers_error() -> None:
    """The SDK raises its own exception, after its own retries."""
    with answering(answer) as url:
        pass
    with recording() as wires, pytest.raises(openai.APIConnectionError):
        ask_openai(wrap(openai_client(url, max_retries=0)))
    ((error, body),) = wires.kept[0].ends
    assert (type(error).__name__, body) == ("ConnectError", b"")


def test_a_compressed_answer_is_kept_decoded() -> None:
    """The caller's library decodes as always; what is kept can be read without it."""
    zipped = gzip.compress(json.dumps(CHAT).encode())
    with answering(lambda *_: (200, {"Content-Encoding": "gzip"}, [zipped])) as url, recording() as wires:
        assert ask_openai(wrap(openai_client(url))).choices[0].message.content == "It is 4."
    assert json.loads(wires.kept[0].ends[0][1]) == CHAT
    assert "content-encoding" not in wires.kept[0].headers


def test_a_changed_request_is_sent_changed() -> None:
    """Body and address are those of the exchange; the library counts the length anew."""
    heard: list[Any] = []

    def change(kept: Any) -> None:
        kept.body = b'{"model": "other", "messages": []}'
        kept.url = kept.url.replace("/v1/", "/v2/")

    def listen(path: str, headers: Any, body: bytes) -> Any:
        heard.append((path, headers["Content-Length"], headers["Authorization"], body))
        return answer(path, headers, body)

    with answering(listen) as url, recording(change):
        ask_openai(wrap(openai_client(url)))
    body = b'{"model": "other", "messages": []}'
    assert heard == [("/v2/chat/completions", str(len(body)), "Bearer sk-secret-123456", body)]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_served_answer_is_given_without_a_server(is_async: bool) -> None:
    """Nothing listens at the address, and the SDK gets the recorded response, streamed or whole."""

    def serve(kept: Any) -> None:
        streamed = json.loads(kept.body).get("stream")
        body = b"".join(CHUNKS) if streamed else json.dumps(CHAT).encode()
        kept.served = Served(200, {"content-type": "text/event-stream" if streamed else "application/json"}, body)

    async def ask() -> None:
        client = wrap(openai_client("http://127.0.0.1:9", openai.AsyncOpenAI))
        chunks = [chunk.choices[0].delta.content async for chunk in await ask_openai(client, stream=True)]
        assert chunks == ["It is", " 4.", None]
        assert (await ask_openai(client)).choices[0].message.content == "It is 4."

    with recording(serve) as wires:
        if is_async:
            asyncio.run(ask())
        else:
            client = wrap(openai_client("http://127.0.0.1:9"))
            assert [each.choices[0].delta.content for each in ask_openai(client, stream=True)] == ["It is", " 4.", None]
            assert ask_openai(client).choices[0].message.content == "It is 4."
    assert [len(each.ends) for each in wires.kept] == [1, 1]


def test_a_served_failure_is_the_librarys_own() -> None:
    """A recorded broken connection breaks again, and one that was never made fails again."""

    def fail(kept: Any) -> None:
        kept.served = Served(0 if b"never" in kept.body else 200, {}, b'{"half":', "it broke")

    with recording(fail):
        client = wrap(httpx.Client())
        with pytest.raises(httpx.ConnectError, match="it broke"):
            client.post("http://127.0.0.1:9/never", content=b"never")
        with pytest.raises(httpx.ReadError, match="it broke"):
            client.post("http://127.0.0.1:9/half", content=b"half")


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_an_answer_that_was_read_before_is_kept(library: Any) -> None:
    """Transports of tests give such responses; nobody iterates over their stream."""

    def respond(request: Any) -> Any:
        return library.Response(200, json=OLLAMA)

    with recording() as wires:
        client = wrap(library.Client(transport=library.MockTransport(respond)))
        assert client.post("http://x.test/api/chat", json={"model": "q"}).json() == OLLAMA
    assert [(error, json.loads(body)) for error, body in wires.kept[0].ends] == [(None, OLLAMA)]


def test_a_halt_passes_the_sdk(url: str) -> None:
    """Neither the retries of the SDK nor its handling of errors swallow it, and nothing is sent."""

    def halt(kept: Any) -> None:
        raise Halted

    with recording(halt) as wires, pytest.raises(Halted):
        ask_openai(wrap(openai_client(url)))
    assert len(wires.kept) == 1


def test_the_client_keeps_what_it_was(url: str) -> None:
    """Type, address, timeout, headers, proxies and hooks are those of the given client, which stays as it was."""
    hooked: list[str] = []
    proxied = httpx2.HTTPTransport()
    http = httpx2.Client(
        mounts={"all://proxied.test": proxied, "all://direct.test": None},
        headers={"X-Team": "a"},
        event_hooks={"request": [lambda request: hooked.append(request.method)]},
    )
    bare = openai_client(url, http_client=http, timeout=7, max_retries=5, default_headers={"X-App": "b"})
    wrapped = wrap(bare)
    assert type(wrapped) is type(bare)
    assert (wrapped.base_url, wrapped.timeout, wrapped.max_retries) == (bare.base_url, 7, 5)
    assert wrapped.default_headers["X-App"] == "b"
    assert bare._client is http
    assert [type(each).__name__ for each in wrapped._client._mounts.values()] == ["RecordedTransport", "NoneType"]
    ask_openai(wrapped)
    assert hooked == ["POST"]
    assert wrap(wrapped)._client._transport is wrapped._client._transport


def test_the_given_client_may_be_forgotten_and_outlives_the_wrapped_one(url: str) -> None:
    """Neither's deletion closes the connections of the other."""
    bare = openai_client(url)
    wrapped = wrap(bare)
    closed: list[str] = []
    bare._client._transport.close = lambda: closed.append("closed")
    del wrapped
    gc.collect()
    assert not closed
    wrapped = wrap(bare)
    del bare
    gc.collect()
    assert not closed
    wrapped.close()
    assert closed == ["closed"]


def test_a_transport_is_recorded_for_a_client_that_takes_one(url: str) -> None:
    """A client that is made with a wrapped transport is recorded."""
    with recording() as wires, httpx.Client(transport=wrap(httpx.HTTPTransport()), base_url=url) as client:
        _ask_http(client)
    assert [each.asked.url.rpartition("/")[2] for each in wires.kept] == ["completions"]


@pytest.mark.frameworks
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_google_genai_is_recorded_by_the_client_it_is_given(library: Any, url: str) -> None:
    """As the refusal says: `http_options` take a wrapped HTTP client."""
    from google import genai

    http = {"httpx_client": wrap(library.Client()), "httpx_async_client": wrap(library.AsyncClient())}
    with recording() as wires:
        client = genai.Client(api_key="AIza-secret-12", http_options={"base_url": url, **http})
        assert client.models.generate_content(model="gemini-3", contents="2 + 2?").text == "It is 4."
        later = client.aio.models.generate_content(model="gemini-3", contents="2 + 2?")
        assert asyncio.run(later).text == "It is 4."
    assert [each.answer.completion.text for each in wires.kept] == ["It is 4.", "It is 4."]
    assert "secret" not in repr(wires.kept[0].asked)


class _Unknown:
    """A client whose parts keep its HTTP client."""

    def __init__(self) -> None:
        self._client = httpx.Client()
        self.parts = [self._client.get]


def test_what_cannot_be_recorded_is_refused_with_what_works() -> None:
    """A client without a documented way is named, with the way that there is."""
    with pytest.raises(UsageError, match=r"cannot record .*_Unknown: it takes clients of OpenAI, Anthropic and Ollama"):
        wrap(_Unknown())
    like_google: Any = type("Client", (), {"__module__": "google.genai.client"})
    with pytest.raises(UsageError, match=r"http_options=\{'httpx_client': playhead\.wrap\(httpx\.Client\(\)\)"):
        wrap(like_google())
