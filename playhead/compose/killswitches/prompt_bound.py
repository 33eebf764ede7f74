"""Upper bounds on the tokens of a prompt, before the provider has counted them."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.kernel.describe import describe
from playhead.kernel.models.base import CountsTokens
from playhead.trace.types import ImagePart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.models.base import Model
    from playhead.trace.types import Message, Request, ToolSpec
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")

PromptBound = Literal["estimate", "bytes"]

PER_REQUEST: Final = 64
"""Tokens that a chat template may add around the messages."""
PER_MESSAGE: Final = 16
"""Tokens that it may add around each message."""
PER_TOOLS: Final = 1024
"""Tokens that it may add to explain tools; providers add up to a few hundred."""
BYTES_PER_TOKEN: Final = 3
"""Bytes per token in an estimate; English has about 4, code and JSON about 3."""
IMAGE_TOKENS: Final = {"bytes": 50_000, "estimate": 1_500}
"""Tokens of an image: the most that a provider is known to count for one (gpt-4o-mini, 8 tiles), and a typical number."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The upper bound on the tokens of a prompt."""

    tokens: int
    """Tokens at most."""
    how: Literal["counted", "bytes", "estimate"]
    """How the bound was determined."""
    raw: float = 0.0
    """The estimate before learning raised it; 0 if the bound is not an estimate."""


class PromptMeter:
    """Counts the tokens of prompts, by the adapter's own count, by bytes, or by an estimate.

    If an estimate was too low, the provider's count raises all later estimates.
    """

    def __init__(self, bound: PromptBound | None) -> None:
        self._bound = bound
        self._factor = 1.0
        self._token = 1 if bound == "bytes" else BYTES_PER_TOKEN  # bytes that are added up for one token
        self._thread: tuple[tuple[Message, ...], int] = ((), 0)
        """The last thread that was measured; only messages added since are measured."""
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)

    async def bound(self, model: Model, request: Request) -> Bound:
        """Return the upper bound on a prompt's tokens, as exact as the adapter allows."""
        if self._bound is None and isinstance(model, CountsTokens):
            counted = await _counted(model, request)
            if counted is not None:
                return Bound(counted, "counted")
        size = self.bytes_of(request)
        if self._bound == "bytes":
            return Bound(size, "bytes")
        raw = size / BYTES_PER_TOKEN
        return Bound(int(raw * self._factor) + 1, "estimate", raw)

    def learn(self, bound: Bound, counted: int) -> None:
        """Learn from the provider's count for a prompt with this bound."""
        if bound.raw > 0:  # relative to the raw estimate: prompts in flight may all have been underestimated alike
            self._factor = max(self._factor, counted / bound.raw)

    def bytes_of(self, request: Request) -> int:
        """Return the bytes of everything sent to the model; parts known in tokens are converted to bytes."""
        size = self._bytes_of_tools(request.tools) + self._bytes_of_thread(request.messages)
        return PER_REQUEST * self._token + size + _bytes_of_parameters(request.parameters)

    def _bytes_of_thread(self, messages: tuple[Message, ...]) -> int:
        known, size = self._thread
        if messages[: len(known)] != known:
            known, size = (), 0
        size += sum(map(self._size, messages[len(known) :]))
        self._thread = (messages, size)
        return size

    def _size(self, message: Message) -> int:
        around = PER_MESSAGE * self._token
        size = around + _length(message.name) + _length(message.tool_call_id)
        if isinstance(message.content, str):
            size += _length(message.content)
        else:
            image = IMAGE_TOKENS["bytes" if self._bound == "bytes" else "estimate"] * self._token
            for part in message.content:
                size += image if isinstance(part, ImagePart) else _length(part.text) + around
        for call in message.tool_calls:
            arguments = call.raw_arguments if call.arguments is None else call.arguments
            size += around + _length(call.id) + _length(call.name) + _json_length(arguments)
        return size

    def _bytes_of_tools(self, tools: tuple[ToolSpec, ...]) -> int:
        if not tools:
            return 0
        if self._tools[0] is not tools:
            sizes = (_length(each.name) + _length(each.description) + _json_length(each.parameters) for each in tools)
            self._tools = (tools, sum(sizes) + (PER_TOOLS + PER_MESSAGE * len(tools)) * self._token)
        return self._tools[1]


async def _counted(model: CountsTokens, request: Request) -> int | None:
    """Return the adapter's count; None if it fails or is not a number of tokens."""
    try:
        counted = await model.count_tokens(request)
    except Exception as error:  # noqa: BLE001 - adapters may be third-party code; the request itself will report the error
        log.warning("%s cannot count tokens: %s: %s", type(model).__name__, type(error).__name__, describe(error))
        return None
    return counted if type(counted) is int and counted >= 0 else None


def _bytes_of_parameters(parameters: Mapping[str, JsonValue]) -> int:
    """Return the bytes of parameters that become part of the prompt, such as the JSON schema of a `response_format`."""
    return sum(_json_length(value) for value in parameters.values() if isinstance(value, (str, list, dict)))


def _length(text: str | None) -> int:
    return 0 if text is None else len(text.encode(errors="replace"))


def _json_length(value: Any) -> int:  # noqa: ANN401 - JSON
    """Return the bytes of JSON in its longest form: with escapes and spaces."""
    return len(json.dumps(value))
