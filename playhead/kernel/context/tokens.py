"""How many tokens a thread has: an estimate, or what the provider counted where that is more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.trace.types import TextPart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.kernel.state import Thread
    from playhead.trace.types import Message, ToolSpec

CHARS_PER_TOKEN: Final = 4
"""Of English text; code and JSON have fewer characters in a token."""
PER_MESSAGE: Final = 4
"""Tokens around a message."""
PER_IMAGE: Final = 1000
"""Tokens of an image."""


class TokenMeter:
    """Sizes of messages, each estimated once, and what the provider counted for the newest request.

    The provider's count stands in the recording, so a replay comes to the same; a count that is asked for would not.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        described = [f"{each.name}{each.description}{json.dumps(each.parameters)}" for each in tools]
        self._schemas = sum(map(len, described)) // CHARS_PER_TOKEN
        self._sizes: dict[int, int] = {}
        self._counted: tuple[int, int] = (-1, 0)

    def learn(self, reply: Message, prompt_tokens: int) -> None:
        """Hear what the provider counted for everything before this reply."""
        if prompt_tokens > 0:
            self._counted = (reply.id, prompt_tokens)

    def forget(self) -> None:
        """Hear that what was counted is no longer what is sent."""
        self._counted = (-1, 0)

    def size_of(self, thread: Thread) -> int:
        """Return the tokens of a thread with the tools' schemas."""
        reply, counted = self._counted
        total = since = 0
        for message in reversed(thread.messages):
            total += self.size(message)
            if message.id == reply:
                since = total + counted
        return max(total + self._schemas, since)

    def size(self, message: Message) -> int:
        """Return the tokens of a message, estimated."""
        if message.id not in self._sizes:
            self._sizes[message.id] = _estimated(message)
        return self._sizes[message.id]


def _estimated(message: Message) -> int:
    parts = (TextPart(text=message.content),) if isinstance(message.content, str) else message.content
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    texts += [f"{call.name}{call.arguments}" for call in message.tool_calls]
    images = sum(not isinstance(part, TextPart) for part in parts)
    return PER_MESSAGE + sum(map(len, texts)) // CHARS_PER_TOKEN + PER_IMAGE * images
