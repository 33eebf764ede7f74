"""The live model of a replay, and the only time that really passes in one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import anyio

from playhead.errors import ModelError
from playhead.replay.redacted import require_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.models.base import Model
    from playhead.trace.types import Completion, Request
    from playhead.trace.usage import Prices

_retrying: Final[ContextVar[bool]] = ContextVar("playhead_retrying", default=False)
"""Whether the agent of this task is about to ask its model again."""


class LiveModel:
    """A live model; it notes that it is about to be asked again, for then the pause has to be a real one."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return what it sends but nobody may record."""
        return self._model.secrets

    async def prices(self) -> Prices | None:
        """Return what its tokens cost."""
        return await self._model.prices()

    async def complete(self, request: Request) -> Completion:
        """Ask the model."""
        _retrying.set(False)
        require_parameters(request.parameters)  # a hook may have set one when this was recorded
        try:
            return await self._model.complete(request)
        except ModelError as error:
            _retrying.set(error.retryable)
            raise


async def pause(seconds: float) -> None:
    """Wait before a live model is asked again; any other time has passed already."""
    if _retrying.get():
        _retrying.set(False)
        await anyio.sleep(seconds)
