"""Strategies by name. A strategy is a function from a state and a session's ports to the final state."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from playhead.errors import UnknownStrategyError, nearest
from playhead.kernel.strategies.info import Strategy, StrategyInfo, StrategySettings

if TYPE_CHECKING:
    from collections.abc import Callable

ALIASES: Final = {
    "react": "reactive",
    "plan": "plan-execute-reflect",
    "plan-execute": "plan-execute-reflect",
    "reflect": "reflexion",
    "tot": "tree-of-thought",
    "cot": "chain-of-thought",
}
_BUILT_IN: Final = (
    "adaptive",
    "autonomous",
    "chain-of-thought",
    "code-action",
    "direct",
    "plan-execute-reflect",
    "reactive",
    "reflexion",
    "tree-of-thought",
)
"""Each in a module of its name, as `STRATEGY`; imported when first used."""


def _built_in(name: str) -> Callable[[], StrategyInfo]:
    def load() -> StrategyInfo:
        module = import_module(f"playhead.kernel.strategies.{name.replace('-', '_')}")
        found: StrategyInfo = module.STRATEGY
        return found

    return load


_registry: dict[str, Callable[[], StrategyInfo]] = {name: _built_in(name) for name in _BUILT_IN}


def register_strategy(
    name: str, strategy: Strategy, *, settings: type[StrategySettings] | None = None, max_iterations: int = 10
) -> None:
    """Make a strategy known under a name; an earlier one of this name is replaced.

    Args:
        name: what agents call it.
        strategy: from the first state to the last; it reaches the world through the session's ports alone.
        settings: the model of its `strategy_settings`; without one they are taken as they are.
        max_iterations: turns at most, when an agent does not say.
    """
    info = StrategyInfo(strategy, settings, max_iterations)
    _registry[name] = lambda: info


def get_strategy(name: str) -> tuple[str, Strategy]:
    """Return a strategy's full name and the strategy.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
    """
    full, info = strategy_info(name)
    return full, info.run


def strategy_info(name: str) -> tuple[str, StrategyInfo]:
    """Return a strategy's full name and what is known of it; raises like `get_strategy`."""
    full = ALIASES.get(name, name)
    if full not in _registry:
        raise UnknownStrategyError(f"there is no strategy {name!r}.{nearest(name, list_strategies())}")
    return full, _registry[full]()


def list_strategies() -> list[str]:
    """Return the names of all strategies, sorted."""
    return sorted(_registry)
