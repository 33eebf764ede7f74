"""Answers of a model as they are made, for whoever listens. What is recorded is the whole answer."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from playhead.errors import ModelUnavailableError
from playhead.kernel.models.base import StreamsText
from playhead.trace.types import Completion
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.models.base import Model
    from playhead.trace.types import Request


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
