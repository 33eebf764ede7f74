"""Strategies by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from playhead.errors import SHOWN_NAMES, UnknownStrategyError, UsageError, did_you_mean, first_problem
from playhead.kernel.registering import check_async, check_new_name
from playhead.kernel.strategies.base import Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Tool
    from playhead.trace.types import AgentHeader

BUILT_IN: Final = tuple(
    each.name.replace("_", "-")
    for each in iter_modules([str(Path(__file__).parent)])
    if each.name not in {"base", "registry"}
)
"""Each in a module of its name, as a class of its name; imported when first used."""
_registry: dict[str, type[Strategy]] = {}
"""The strategies of users."""


def built_in(name: str) -> type[Strategy]:
    """Return a strategy of Playhead's own, by its name."""
    module = import_module(f"playhead.kernel.strategies.{name.replace('-', '_')}")
    found: type[Strategy] = getattr(module, "".join(map(str.capitalize, name.split("-"))))
    return found


def register_strategy(strategy: type[Strategy], *, replace: bool = False) -> None:
    """Make a strategy known under its name, for agents that say it and for replays; an earlier one of yours is replaced.

    Args:
        strategy: a class with a `name` and `async def run(self, state, session)`; its fields are its settings.
        replace: let it take the place of a built-in one, for every agent of this process.

    Raises:
        UsageError: the class is no strategy, or its name or one of its aliases is taken or cannot be one.
    """
    _check(strategy)
    name, meant = strategy.name, _names()
    check_new_name(
        "strategy",
        name,
        {each: full for each, full in meant.items() if full != name or name in BUILT_IN},
        replace=replace,
    )
    for alias in strategy.aliases:
        check_new_name("strategy", alias, {each: full for each, full in meant.items() if full != name}, replace=False)
    _registry[name] = strategy


def _check(strategy: Any) -> None:  # noqa: ANN401 - anything that a caller may have given
    if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
        raise UsageError(
            "a strategy is a class: `class Mine(Strategy)` with a `name` and `async def run(self, state, session)`; "
            f"it is {strategy!r}"
        )
    own = [each for each in strategy.model_fields if each in vars(Strategy) or each in Strategy.__class_vars__]
    if own:
        raise UsageError(
            f"{strategy.__name__}: {own[0]!r} means something for every strategy; call the setting otherwise"
        )
    if not hasattr(strategy, "name"):
        raise UsageError(f"{strategy.__name__} has no name; write `name = …` in it")
    if strategy.__abstractmethods__:
        raise UsageError(f"the strategy {strategy.name!r} has no `async def run(self, state, session)`")
    check_async(f"`run` of the strategy {strategy.name!r}", strategy.run)
    try:
        strategy.declared()
    except ValidationError as error:
        raise UsageError(f"the strategy {strategy.name!r} declares what cannot be: {first_problem(error)}") from None


def make_strategy(given: str | Strategy, settings: dict[str, Any] | None = None) -> Strategy:
    """Return the strategy of a name, with these settings, or the one that is given, which is registered by that.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: a setting is not right, or another class has the name.
    """
    if not isinstance(given, Strategy):
        kind = strategy_class(given)
        try:
            return kind(**settings or {})
        except ValidationError as error:  # of a validator of the whole model, which comes after the others
            raise UsageError(f"{kind.name}{first_problem(error)}") from None
    kind = type(given)
    _check(kind)
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
        guess = did_you_mean(name.casefold(), list(_names()))
        raise UnknownStrategyError(f"there is no strategy {name!r}.{guess} Known: {_told()}.")
    return _registry.get(full) or built_in(full)


def strategy_of(header: AgentHeader) -> Strategy:
    """Return an agent's strategy, with its settings.

    Raises:
        UnknownStrategyError: nothing is registered under its name, or its kernel's, any more.
    """
    return strategy_class(header.strategy).from_recorded(header.strategy_settings, header.kernel)


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
    short = {alias.casefold(): each.name for each in found for alias in each.aliases}
    return short | {name.casefold(): name for name in list_strategies()}


def _told() -> str:
    """Return the names as a list for people, each with its short ones."""
    meant = _names()
    short = {name: [each for each, full in meant.items() if full == name != each] for name in list_strategies()}
    told = [f"{name} ({', '.join(others)})" if others else name for name, others in short.items()]
    return ", ".join(told[:SHOWN_NAMES]) + (", …" if len(told) > SHOWN_NAMES else "")
