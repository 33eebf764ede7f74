"""Strategies by name. A strategy is a function from a state and a session's ports to the final state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from playhead.errors import UnknownStrategyError, nearest
from playhead.kernel.strategies.reactive import reactive

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState

Strategy = Callable[["KernelState", "Session"], Awaitable["KernelState"]]

ALIASES: Final = {"react": "reactive"}
_registry: dict[str, Strategy] = {"reactive": reactive}


def register_strategy(name: str, strategy: Strategy) -> None:
    """Make a strategy known under a name; an earlier one of this name is replaced."""
    _registry[name] = strategy


def get_strategy(name: str) -> tuple[str, Strategy]:
    """Return a strategy's full name and the strategy.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
    """
    full = ALIASES.get(name, name)
    if full not in _registry:
        raise UnknownStrategyError(f"there is no strategy {name!r}.{nearest(name, list_strategies())}")
    return full, _registry[full]


def list_strategies() -> list[str]:
    """Return the names of all strategies, sorted."""
    return sorted(_registry)
