"""Answers of a model as they are made, for whoever listens. What is recorded is the whole answer."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

from playhead.errors import ModelUnavailableError
from playhead.kernel.models.base import StreamsText
from playhead.trace.types import Completion
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session
    from playhead.trace.events import LlmRequested, LlmResponded
    from playhead.trace.types import Content, Request


class Listener(Protocol):
    """Listens to what models say while they say it."""

    def hears(self, session: Session) -> bool:
        """Return whether it wants the pieces of this agent's next answer, and may have them."""
        ...

    def piece(self, session: Session, asked: LlmRequested, text: str) -> None:
        """Hear a piece of the answer to a request; never raises."""
        ...

    def joins(self, session: Session, response: LlmResponded, content: Content) -> None:
        """Hear what of an answer joins the thread, now that hooks have let it pass; never raises."""
        ...


async def streamed(model: Model, request: Request, hear: Callable[[str], object]) -> Completion:
    """Return the model's answer, and let its pieces be heard; those of a model that cannot stream are not.

    Raises:
        ModelError: as `complete`; pieces that were heard before are part of no answer then.
    """
    if not isinstance(model, StreamsText):
        return await model.complete(request)
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Completion):
                return piece
            if piece.text:
                hear(scrub(piece.text))
    raise ModelUnavailableError(f"the stream of {request.model} ended before the answer did")
