"""Strategies by name. A strategy is a function from a state and a session's ports to the final state."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import SHOWN_NAMES, UnknownStrategyError, UsageError, did_you_mean
from playhead.kernel.registering import check_async, check_new_name
from playhead.kernel.strategies.info import Strategy, StrategyInfo, StrategySettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.kernel.tools import Tool
    from playhead.trace.types import AgentHeader

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
_MEANINGS: Final = {**ALIASES, **{name: name for name in _BUILT_IN}}
"""What names of Playhead's own mean."""


def _built_in(name: str) -> Callable[[], StrategyInfo]:
    def load() -> StrategyInfo:
        module = import_module(f"playhead.kernel.strategies.{name.replace('-', '_')}")
        found: StrategyInfo = module.STRATEGY
        return found

    return load


_registry: dict[str, Callable[[], StrategyInfo]] = {name: _built_in(name) for name in _BUILT_IN}


def register_strategy(  # noqa: PLR0913 - what a strategy may bring along
    name: str,
    strategy: Strategy,
    *,
    settings: type[StrategySettings] | None = None,
    max_iterations: int = 10,
    rationale: bool = True,
    instruction: Callable[[Any], str] | None = None,
    tools: Callable[[Any], Sequence[Tool]] | None = None,
    replace: bool = False,
) -> None:
    """Make a strategy known under a name; an earlier one of yours is replaced.

    Args:
        name: what agents call it: letters, digits, `_` and `-`.
        strategy: from the first state to the last; it reaches the world through the session's ports alone.
        settings: the model of its `strategy_settings`; without one they are taken as they are.
        max_iterations: turns at most, when an agent does not say.
        rationale: whether the model is asked for the reasons of its calls, when an agent does not say.
        instruction: what is added to the system prompt; a function of the settings.
        tools: tools of its own, made with `MetaTool`; a function of the settings.
        replace: let it take the place of a built-in one, for every agent of this process.

    Raises:
        UsageError: the name is taken or cannot be one, or the strategy is no async function.
    """
    check_new_name("strategy", name, _MEANINGS, replace=replace)
    check_async(f"the strategy {name!r}", strategy)
    info = StrategyInfo(strategy, settings, max_iterations, rationale, instruction=instruction, tools=tools)
    _registry[name] = lambda: info


def get_strategy(name: str) -> tuple[str, Strategy]:
    """Return a strategy's full name and the strategy.

    Raises:
        UnknownStrategyError: nothing is registered under this name.
        UsageError: it is no name.
    """
    full, info = strategy_info(name)
    return full, info.run


def strategy_info(name: str) -> tuple[str, StrategyInfo]:
    """Return a strategy's full name and what is known of it; raises like `get_strategy`."""
    if not isinstance(name, str):
        hint = "; make it known with register_strategy(name, function) first" if callable(name) else ""
        raise UsageError(f"strategy is the name of a registered strategy, such as 'reactive'; it is {name!r}{hint}")
    full = _full_name(name)
    if full not in _registry:
        guess = did_you_mean(name.casefold(), [*_registry, *ALIASES])
        raise UnknownStrategyError(f"there is no strategy {name!r}.{guess} Known: {_all_names()}.")
    return full, _registry[full]()


def _full_name(name: str) -> str:
    """Return the name that is meant, which may be written in any case."""
    if name in _registry:
        return name
    folded = ALIASES.get(name.casefold(), name.casefold())
    return next((each for each in _registry if each.casefold() == folded), name)


def _all_names() -> str:
    """Return the names as a list for people, each with its short ones."""
    names, short = (
        list_strategies(),
        {full: [alias for alias in ALIASES if ALIASES[alias] == full] for full in _registry},
    )
    told = [f"{name} ({', '.join(short[name])})" if short[name] else name for name in names]
    return ", ".join(told[:SHOWN_NAMES]) + (", …" if len(told) > SHOWN_NAMES else "")


def info_of(header: AgentHeader) -> StrategyInfo | None:
    """Return what is known of an agent's strategy; None when nothing is registered under its name any more."""
    load = _registry.get(header.strategy)
    return None if load is None else load()


def tools_of(header: AgentHeader) -> tuple[dict[str, Tool], frozenset[str]]:
    """Return the tools that an agent's strategies bring along, and the names of those whose strategy does not run at first."""
    known, switching = info_of(header), header.switching
    own = {} if known is None else known.tools_for(header.strategy_settings)
    if switching is None:
        return own, frozenset()
    from playhead.kernel.delegation import tools_of_all  # noqa: PLC0415 - few agents switch

    others = tools_of_all(switching.get("settings", {}))
    return {**others, **own}, frozenset(others.keys() - own.keys())


def list_strategies() -> list[str]:
    """Return the names of all strategies, sorted."""
    return sorted(_registry)
