"""What lies behind a session's ports: the real thing, or in a replay a recording of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from playhead.trace.values import to_json

if TYPE_CHECKING:
    from playhead.kernel.guards import Guard, GuardMaker
    from playhead.kernel.hooks import Hooks
    from playhead.kernel.models.base import Model
    from playhead.kernel.session import Session
    from playhead.kernel.tools import Tool
    from playhead.trace.types import FallbackInfo
    from playhead.trace.values import JsonValue


Fallbacks = list[tuple["FallbackInfo", "Model"]]
"""Models that take over, and what is recorded of them."""


class World(Protocol):
    """Gives each owner its model, its tools and its facts.

    An owner is one agent in one run, named by the calls that led to it, so a replay can give each its own answers back.
    """

    def model_for(self, owner: str, model: Model) -> Model:
        """Return what answers this owner's requests."""
        ...

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:
        """Return what answers this owner's requests when the model does not, in order."""
        ...

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return what runs this owner's calls, by name, in the order the model is offered them."""
        ...

    def hooks_for(self, owner: str, hooks: Hooks | None) -> Hooks | None:
        """Return what is asked at this owner's chokepoints and phases; None when nothing is."""
        ...

    def guards_for(self, session: Session, makers: tuple[GuardMaker, ...]) -> tuple[Guard, ...]:
        """Return the killswitches at this session's ports, those of the agents above it first."""
        ...

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:
        """Return the answer to a question that is neither the model's nor a tool's; `answer` may be sync or async."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        ...


class LiveWorld:
    """The real thing."""

    def model_for(self, owner: str, model: Model) -> Model:  # noqa: ARG002
        """Return the model itself."""
        return model

    def fallbacks_for(self, owner: str, infos: Sequence[FallbackInfo], models: Sequence[Model]) -> Fallbacks:  # noqa: ARG002
        """Return the models themselves."""
        return list(zip(infos, models, strict=True)) if models else []

    def tools_for(self, owner: str, tools: dict[str, Tool]) -> dict[str, Tool]:  # noqa: ARG002
        """Return the tools themselves."""
        return tools

    def hooks_for(self, owner: str, hooks: Hooks | None) -> Hooks | None:  # noqa: ARG002
        """Return the hooks themselves."""
        return hooks

    def guards_for(self, session: Session, makers: tuple[GuardMaker, ...]) -> tuple[Guard, ...]:
        """Return the guards above, and one for each killswitch of the agent's own."""
        above = () if session.parent is None else session.parent.guards
        return (*above, *(maker.make(session) for maker in makers))

    async def fact(self, owner: str, name: str, key: str, answer: Callable[[], Any]) -> JsonValue:  # noqa: ARG002
        """Return what `answer` returns, as JSON."""
        value = answer()
        return to_json(await value if isinstance(value, Awaitable) else value)

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await anyio.sleep(seconds)
