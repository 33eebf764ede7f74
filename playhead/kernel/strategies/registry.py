"""Strategies by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UnknownStrategyError, UsageError, did_you_mean
from playhead.kernel import strategies
from playhead.kernel.strategies.base import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Tool
    from playhead.trace.types import AgentHeader

BUILT_IN: Final = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(): name for name in strategies.__all__}
"""The class of each strategy of Playhead's own, by its name; imported when first used."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_registry: dict[str, type[Strategy]] = {}
"""The strategies of users."""


def register_strategy(strategy: type[Strategy], *, replace: bool = False) -> None:
    """Make a strategy known under its name, for agents that say it and for replays; an earlier one of yours is replaced.

    Args:
        strategy: a class with a `name` and `async def run(self, state, session)`; its fields are its settings.
        replace: let it take the place of a built-in one, for every agent of this process.

    Raises:
        UsageError: the class is no strategy, or its name or one of its aliases is taken or cannot be one.
    """
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy) and hasattr(strategy, "name")):
        raise UsageError(
            "a strategy is a class: `class Mine(Strategy)` with a `name` and `async def run(self, state, session)`; "
            f"it is {strategy!r}"
        )
    meant = _names()
    for name in (strategy.name, *strategy.short_names()):
        taken_by = meant.get(str(name).casefold())
        is_own = taken_by == strategy.name and (replace or taken_by not in BUILT_IN)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a strategy: letters, digits, '_' and '-', at most 64")
        if taken_by is not None and not is_own:
            raise UsageError(
                f"{name!r} means the strategy {taken_by!r}; choose another name, or replace that one everywhere: "
                f"register_strategy(…, replace=True) with something called {taken_by!r}"
            )
    _registry[strategy.name] = strategy


def make_strategy(given: str | Strategy, settings: dict[str, Any] | None = None) -> Strategy:
    """Return the strategy of a name, with these settings, or the one that is given, which is registered by that.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: a setting is not right, or another class has the name.
    """
    if not isinstance(given, Strategy):
        return strategy_class(given)(**settings or {})
    kind = type(given)
    if given.name not in list_strategies():
        register_strategy(kind)
    elif (other := strategy_class(given.name)) is not kind:
        raise UsageError(
            f"{kind.__qualname__} cannot be called {given.name!r}: that is {other.__module__}.{other.__qualname__}; give it a "
            f"`name` of its own, or make it take that one's place: register_strategy({kind.__qualname__}, …)"
        )
    return given


def strategy_class(name: str) -> type[Strategy]:
    """Return the strategy of a name, or of a short one, in any case.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: it is no name.
    """
    if not isinstance(name, str):
        raise UsageError(f"strategy is a strategy such as Reactive(), or the name of a registered one; it is {name!r}")
    full = name if name in BUILT_IN or name in _registry else _names().get(name.casefold())
    if full is None:
        known = [strategy_class(each) for each in list_strategies()]
        told = [f"{each.name} ({', '.join(each.short_names())})" if each.short_names() else each.name for each in known]
        guess = did_you_mean(name.casefold(), list(_names()))
        raise UnknownStrategyError(f"there is no strategy {name!r}.{guess} Known: {', '.join(told)}.")
    return _registry[full] if full in _registry else built_in(full)


def built_in(name: str) -> type[Strategy]:
    """Return a strategy of Playhead's own, by its name."""
    found: type[Strategy] = getattr(strategies, BUILT_IN[name])
    return found


def strategy_of(header: AgentHeader) -> Strategy:
    """Return an agent's strategy, with its settings.

    Raises:
        UnknownStrategyError: nothing is registered under its name any more.
    """
    return strategy_class(header.strategy).from_recorded(header.strategy_settings)


def strategy_if_known(header: AgentHeader) -> Strategy | None:
    """Return the same; None when nothing is registered under its name any more."""
    return strategy_of(header) if header.strategy in list_strategies() else None


def tools_of(header: AgentHeader) -> dict[str, Tool]:
    """Return the tools that an agent's strategy brings along."""
    strategy = strategy_if_known(header)
    return {} if strategy is None else strategy.tools_by_name()


def tools_of_all(settings: Mapping[str, dict[str, Any]]) -> dict[str, Tool]:
    """Return the own tools of all these strategies, whose settings are given."""
    made = [strategy_class(name).from_recorded(given) for name, given in settings.items()]
    return {name: tool for strategy in made for name, tool in strategy.tools_by_name().items()}


def list_strategies() -> list[str]:
    """Return the names of all strategies, sorted."""
    return sorted({*BUILT_IN, *_registry})


def _names() -> dict[str, str]:
    """Return what names mean, in lower case; the short ones of a built-in strategy stay when it is replaced."""
    found = [*map(built_in, BUILT_IN), *_registry.values()]
    short = {alias.casefold(): each.name for each in found for alias in each.short_names()}
    return short | {name.casefold(): name for name in list_strategies()}
