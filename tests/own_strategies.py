"""Strategies that a test makes of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import Strategy, register_strategy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def strategy_of(name: str, function: Callable[[Any, Any], Awaitable[Any]]) -> type[Strategy]:
    """Return a strategy that is this function of a state and a session."""

    async def run(_self: Strategy, state: Any, session: Any) -> Any:
        return await function(state, session)

    return subclass(Strategy, name=name, run=run, __doc__=function.__doc__)


def subclass(base: Any, **declared: Any) -> type[Strategy]:
    """Return a strategy that is another one but for what is said of it here."""
    kind: Any = type(base)
    made: type[Strategy] = kind("Called", (base,), {"__module__": __name__, **declared})
    return made


def register(name: str, function: Callable[[Any, Any], Awaitable[Any]]) -> None:
    """Make such a strategy known."""
    register_strategy(strategy_of(name, function))
