"""A stand-in for a recorded run, as transports see it: it keeps what they say. And bodies that servers answer with."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.instrument import seam
from playhead.instrument.formats import read_answer, read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from playhead.importing.wire import Asked
    from playhead.instrument.transports import Served


@dataclass
class Kept:
    """One exchange."""

    asked: Asked
    body: bytes
    url: str
    served: Served | None = None
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    ends: list[tuple[BaseException | None, bytes]] = field(default_factory=list)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Keep the head."""
        self.status, self.headers = status, headers

    def chunk(self, data: bytes) -> None:
        """Keep a piece."""
        self.chunks.append(data)

    def end(self, error: BaseException | None, body: bytes) -> None:
        """Keep the end."""
        self.ends.append((error, body))

    @property
    def answer(self) -> Any:
        """What its wire format says about the response."""
        wire = read_request(self.asked.method, self.asked.url, self.asked.body)
        assert wire is not None
        return read_answer(wire, self.status, self.headers, self.ends[0][1])


class Wires:
    """A run that lets everything pass, as `change` leaves it."""

    def __init__(self, change: Callable[[Kept], object] = lambda _: None) -> None:
        self.kept: list[Kept] = []
        self._change = change

    def is_over(self, what: str) -> bool:
        """Go on."""
        return False

    def open(self, asked: Asked) -> Kept:
        """Keep a request."""
        kept = Kept(asked, asked.body, asked.url)
        self.kept.append(kept)
        self._change(kept)
        return kept

    async def aopen(self, asked: Asked) -> Kept:
        """Keep a request."""
        return self.open(asked)


@contextmanager
def recording(change: Callable[[Kept], object] = lambda _: None) -> Iterator[Wires]:
    """Run the block as a recorded run."""
    wires = Wires(change)
    token = seam.wires.set(wires)
    try:
        yield wires
    finally:
        seam.wires.reset(token)


def sse(*parts: Any, named: bool = False) -> list[bytes]:
    """Return server-sent events, one piece each."""
    names = [f"event: {part['type']}\n" if named else "" for part in parts]
    bodies = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    return [f"{name}data: {body}\n\n".encode() for name, body in zip(names, bodies, strict=True)]


CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-mini-2024",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is 4."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}


def chat_chunk(**choice: Any) -> dict[str, Any]:
    """Return a chunk of a streamed chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o-mini-2024",
        "choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}],
    }


MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-5",
    "content": [{"type": "text", "text": "It is 4."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 4},
}
MESSAGE_EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " 4."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]
