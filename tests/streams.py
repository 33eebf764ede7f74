"""Models whose streams break, hang and lie, and a look at the events of a run."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import anyio

from playhead.errors import ModelUnavailableError
from playhead.kernel.models.base import TextPiece
from playhead.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from playhead.agent.streaming import StreamEvent


class BreakingModel(ScriptedModel):
    """Its stream breaks after some pieces, in the first attempts at each request."""

    def __init__(self, turns: Any, *, after: int, attempts: int = 1) -> None:
        super().__init__(turns)
        self._after = after
        self._attempts = attempts

    async def stream(self, request: Any) -> AsyncGenerator[Any]:
        """Answer, or break."""
        if request.attempt >= self._attempts:
            async for piece in super().stream(request):
                yield piece
            return
        for number in range(self._after):
            yield TextPiece(f"half {number} ")
        raise ModelUnavailableError("the line broke")


class HangingStream(ScriptedModel):
    """Says `so far` and hangs, from its second request on."""

    def __init__(self, turns: Any, hang: Callable[[], Any] = anyio.sleep_forever) -> None:
        super().__init__(turns)
        self._hang = hang
        self.closed = False

    async def stream(self, request: Any) -> AsyncGenerator[Any]:
        """Answer, once."""
        if not request.number:
            async for piece in super().stream(request):
                yield piece
            return
        try:
            yield TextPiece("so far")
            await self._hang()
        finally:
            self.closed = True


class OtherPieces(ScriptedModel):
    """Streams pieces that are not its answer."""

    async def stream(self, request: Any) -> AsyncGenerator[Any]:
        """Say one thing, and answer another."""
        yield TextPiece("something else")
        yield await self.complete(request)


class WithoutStream:
    """A model that cannot stream."""

    def __init__(self, turns: Any) -> None:
        self._model = ScriptedModel(turns)
        self.name = self._model.name
        self.secrets: dict[str, str] = {}

    async def prices(self) -> Any:
        """Cost nothing."""
        return await self._model.prices()

    async def complete(self, request: Any) -> Any:
        """Answer."""
        return await self._model.complete(request)


class InPieces(ScriptedModel):
    """Streams its answers cut into pieces of this length, and holds a secret."""

    def __init__(self, turns: Any, length: int, **secrets: str) -> None:
        super().__init__(turns)
        self._length = length
        self._secrets = secrets

    @property
    def secrets(self) -> dict[str, str]:
        """Return the secrets."""
        return self._secrets

    async def stream(self, request: Any) -> AsyncGenerator[Any]:
        """Answer."""
        completion = await self.complete(request)
        for start in range(0, len(completion.text), self._length):
            yield TextPiece(completion.text[start : start + self._length])
        yield completion


TIMES = ("duration_ms", "timestamp")


def told(event: StreamEvent) -> tuple[Any, ...]:
    """Return an event in short: its name, and its fields without times and what is the same everywhere."""
    names = [each.name for each in fields(event) if each.name not in (*TIMES, "owner", "metadata", "tool_summary")]
    return (type(event).__name__, *(getattr(event, name) for name in names))


def texts(events: list[StreamEvent]) -> list[str]:
    """Return the texts of the pieces."""
    return [event.text for event in events if hasattr(event, "text")]


def names(events: list[StreamEvent]) -> list[str]:
    """Return the names of the events."""
    return [type(event).__name__ for event in events]
