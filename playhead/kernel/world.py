"""What lies behind a session's ports: the real thing, or in a replay a recording of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Guard, Hooks, Session, Tool
    from playhead.trace.types import FallbackInfo
    from playhead.trace.values import JsonValue


class LiveWorld:
    """The real thing."""

    def model_for(self, owner: str, model: Model) -> Model:  # noqa: ARG002
        """Return the model itself."""
        return model

    def fallbacks_for(
        self,
        owner: str,  # noqa: ARG002
        infos: Sequence[FallbackInfo],
        models: Sequence[Model],
    ) -> list[tuple[FallbackInfo, Model]]:
        """Return the models themselves."""
        return list(zip(infos, models, strict=True)) if models else []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:  # noqa: ARG002
        """Return the tools themselves."""
        return tools

    def hooks_for(self, session: Session, hooks: Hooks | None) -> Hooks | None:  # noqa: ARG002
        """Return the hooks themselves."""
        return hooks

    def guards_for(self, session: Session, makers: Sequence[Callable[[Session], Guard]]) -> tuple[Guard, ...]:
        """Return the guards above, and one for each killswitch of the agent's own."""
        above = () if session.parent is None else session.parent.gate.guards
        return (*above, *(make(session) for make in makers))

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:  # noqa: ARG002
        """Return what `answer` returns, as JSON."""
        value = answer()
        return to_json(await value if isinstance(value, Awaitable) else value)

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await anyio.sleep(seconds)
