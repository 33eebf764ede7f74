"""Putting a strategy in charge of a run that began with another one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.kernel.passes import fresh_thread
from playhead.kernel.state import KernelState, transition
from playhead.kernel.strategies.registry import strategy_class
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import Thread
    from playhead.kernel.strategies.base import Strategy

LONGEST_CHOICE: Final = 2_000
"""Characters that are read of an answer that should be a name."""


def told(names: Iterable[str]) -> str:
    """Return the strategies as a list for a model to choose from."""
    return "\n".join(f"- {name}: {_known_for(strategy_class(name))}" for name in names)


def _known_for(strategy: type[Strategy]) -> str:
    return strategy.known_for or ((strategy.__doc__ or "").strip().splitlines() or ["a strategy of the user's"])[0]


def named(text: str, names: Iterable[str]) -> str | None:
    """Return the one strategy that a model names; None when it names none, or several.

    The first line that names one counts, so that a reason may follow. `plan_execute_reflect` and, alone, `tot` are names too.
    """
    by_words = {tuple(re.split("[-_ ]", name.lower())): name for name in names}
    short = {alias: name for name in by_words.values() for alias in strategy_class(name).aliases}
    patterns = {
        name: re.compile(rf"(?<![\w-]){'[-_ ]'.join(map(re.escape, words))}(?![\w-])")
        for words, name in by_words.items()
    }
    for line in text[:LONGEST_CHOICE].lower().splitlines():
        alias = short.get(line.strip(" \t.*`\"'"))
        found = {name for name, pattern in patterns.items() if pattern.search(line)} or {alias} & patterns.keys()
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def recorded_strategy(name: str, settings: Mapping[str, dict[str, Any]], session: Session) -> Strategy:
    """Return a candidate with its settings among these; it thinks with the kernel of the agent's strategy."""
    return strategy_class(name).from_recorded(settings[name], session.header.kernel)


async def put_in_charge(strategy: Strategy, state: KernelState, session: Session) -> KernelState:
    """Let a strategy have its own tools and what it adds to the prompt; return the state it begins with.

    Events and the header keep the name of the strategy that the agent was given; the result says this one.
    """
    session.at.strategy = strategy.name
    session.toolset.hidden = frozenset(session.toolset.of_strategies - strategy.tools_by_name().keys())
    added = strategy.added_prompt()
    if not added:
        return state
    return transition(state, thread=await start_with(session, f"{text_of(session.task)}\n\n{added}"))


async def start_with(session: Session, text: str) -> Thread:
    """Return a thread in which this text, with the task's images, is the task; strategies are told it as such from now on."""
    thread = await fresh_thread(session, text)
    if len(thread.messages) > len(session.at.preamble.messages):  # no hook removed it
        session.at.task = thread.messages[-1].content
    return thread


def full_names(names: Iterable[str]) -> list[str]:
    """Return the full names of strategies, each once.

    Raises:
        UnknownStrategyError: nothing is registered under one of them.
    """
    return list(dict.fromkeys(strategy_class(name).name for name in names))


def with_defaults(names: list[str], settings: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of these strategies, complete.

    Raises:
        UsageError: there are settings of another one, or such that are not right.
    """
    for name in settings:
        if name not in names:
            raise UsageError(f"settings: {name!r} is none of the candidates: {', '.join(names)}")
        if "kernel" in settings[name]:
            raise UsageError(
                f"settings: {name} thinks with the kernel of the agent's own strategy; give that one kernel="
            )
    return {name: strategy_class(name)(**settings.get(name, {})).recorded() for name in names}
