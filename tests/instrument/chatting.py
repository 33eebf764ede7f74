"""Clients of OpenAI whose server is a function: it gets the body of a request, and returns the answer's message."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from playhead.instrument.clients import wrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


def says(text: str) -> dict[str, Any]:
    """Return a message with a text."""
    return {"role": "assistant", "content": text}


def calls(*named: tuple[str, dict[str, Any]], number: int = 0) -> dict[str, Any]:
    """Return a message that asks for these calls; `number` makes their ids unique."""
    made = [
        {"id": f"call_{number}{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for place, (name, given) in enumerate(named)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


def whole(message: dict[str, Any], model: str = "gpt-4o-mini") -> httpx2.Response:
    """Return an answer that is not streamed."""
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}
    return httpx2.Response(200, headers={"content-type": "application/json"}, text=json.dumps(body))


def streamed(message: dict[str, Any]) -> httpx2.Response:
    """Return the answer as a stream of words."""
    deltas: list[Any] = [{"content": f"{word} "} for word in message["content"].split()]
    chunks: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    of_chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    lines = [f"data: {json.dumps({**of_chunk, 'choices': [each]})}\n\n" for each in chunks]
    body = "".join([*lines, "data: [DONE]\n\n"])
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)


class _Transport(httpx2.MockTransport):
    """A transport whose answers are read by the client, as those of a server are."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return _unread(super().handle_request(request))

    def __init__(self, handle: Any, arrive: Callable[[], Awaitable[object]]) -> None:
        super().__init__(handle)
        self._arrive = arrive

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._arrive()  # so that it can be cancelled
        return _unread(await super().handle_async_request(request))


def _unread(answer: httpx2.Response) -> httpx2.Response:
    body = answer.content
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return httpx2.Response(answer.status_code, headers=headers, stream=_Pieces(body))


class _Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body, line by line."""

    def __init__(self, body: bytes) -> None:
        self._lines = body.splitlines(keepends=True)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            await asyncio.sleep(0)
            yield line


class Chat:
    """A server, and wrapped clients of it. `asked` holds the bodies of the requests that reached it."""

    def __init__(
        self,
        server: Callable[[dict[str, Any]], Any],
        arrive: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
    ) -> None:
        self.asked: list[dict[str, Any]] = []
        self._server, self._arrive = server, arrive
        self.client: Any = wrap(openai.OpenAI(**self._options(httpx2.Client)))
        self.async_client: Any = wrap(openai.AsyncOpenAI(**self._options(httpx2.AsyncClient)))

    def create(self, messages: list[dict[str, Any]], **more: Any) -> Any:
        """Ask for a completion."""
        return self.client.chat.completions.create(model="gpt-4o-mini", messages=messages, **more)

    async def acreate(self, messages: list[dict[str, Any]], **more: Any) -> Any:
        """Ask for a completion."""
        return await self.async_client.chat.completions.create(model="gpt-4o-mini", messages=messages, **more)

    def _options(self, kind: Any) -> dict[str, Any]:
        client = kind(transport=_Transport(self._handle, self._arrive))
        return {"api_key": "sk-secret-123456", "base_url": "https://chat.example/v1", "http_client": client}

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.asked.append(body)
        answer = self._server(body)
        if isinstance(answer, httpx2.Response):
            return answer
        return streamed(answer) if body.get("stream") else whole(answer)
