"""How many tokens a thread has, before the provider has counted them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from playhead.trace.types import TextPart, ToolSpec

if TYPE_CHECKING:
    from playhead.kernel.state import Thread
    from playhead.trace.types import Message

CHARS_PER_TOKEN: Final = 4
"""Of English text; code and JSON have fewer characters in a token."""
PER_MESSAGE: Final = 4
"""Tokens around a message."""
PER_IMAGE: Final = 1000
"""Tokens of an image."""


def estimate_tokens(what: str | Message | ToolSpec) -> int:
    """Return about how many tokens a text, a message or the schema of a tool has: a token for four characters."""
    if isinstance(what, str):
        return -(-len(what) // CHARS_PER_TOKEN)
    if isinstance(what, ToolSpec):
        text = f"{what.name}{what.description}{json.dumps(what.parameters, ensure_ascii=False)}"
        return PER_MESSAGE + len(text) // CHARS_PER_TOKEN
    return _of_message(what)


def _of_message(message: Message) -> int:
    images, characters = 0, sum(len(call.name) + len(str(call.arguments)) for call in message.tool_calls)
    if isinstance(message.content, str):
        characters += len(message.content)
    else:
        for part in message.content:
            if isinstance(part, TextPart):
                characters += len(part.text)
            else:
                images += 1
    return PER_MESSAGE + characters // CHARS_PER_TOKEN + PER_IMAGE * images


class TokenMeter:
    """Sizes of messages, each estimated once, and what the provider counted for the newest request.

    The provider's count stands in the recording, so a replay comes to the same; a count that is asked for would not.
    """

    def __init__(self) -> None:
        self.schemas = 0
        """Tokens of the tools' schemas, which go with each request and are in the provider's counts."""
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
        """Return the tokens of a thread, with the tools' schemas.

        They are estimated, or by the provider's count and what has joined since, where that is more.
        """
        reply, counted = self._counted
        total = since = 0
        for message in reversed(thread.messages):
            total += self.size(message)
            if message.id == reply:
                since = total + counted
        return max(total + self.schemas, since)

    def size(self, message: Message) -> int:
        """Return the tokens of a message, estimated."""
        if message.id not in self._sizes:
            self._sizes[message.id] = _of_message(message)
        return self._sizes[message.id]
