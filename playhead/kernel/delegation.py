"""Putting a strategy in charge of a run that began with another one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UsageError
from playhead.kernel.passes import fresh_thread
from playhead.kernel.state import KernelState, transition
from playhead.kernel.strategies import ALIASES, strategy_info
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.kernel.session import Session
    from playhead.kernel.state import Thread
    from playhead.kernel.tools import Tool
    from playhead.trace.values import JsonValue

LONGEST_CHOICE: Final = 2_000
"""Characters that are read of an answer that should be a name."""
KNOWN_FOR: Final = {
    "autonomous": "works on by itself until it says that it has finished",
    "chain-of-thought": "reasons step by step in writing before it answers; for riddles and calculations",
    "code-action": "writes one program that calls the tools; for many calls and for loops over data",
    "direct": "no reasoning at all; for what needs one call or none",
    "plan-execute-reflect": "makes a plan, carries it out step by step, corrects it; for complex tasks of many steps",
    "reactive": "thinks, acts, observes, one step at a time; for questions and everyday tasks",
    "reflexion": "writes an answer, criticises it, improves it; for writing and wherever quality counts",
    "tree-of-thought": "compares several approaches before it acts; for creative and open problems",
}
"""What each built-in strategy is good at, in the words that a model chooses by."""


def told(names: Iterable[str]) -> str:
    """Return the strategies as a list for a model to choose from."""
    return "\n".join(f"- {name}: {KNOWN_FOR.get(name) or _summary(name)}" for name in names)


def _summary(name: str) -> str:
    return ((strategy_info(name)[1].run.__doc__ or "").strip().splitlines() or ["a strategy of the user's"])[0]


def named(text: str, names: Iterable[str]) -> str | None:
    """Return the one strategy that a model names; None when it names none, or several.

    The first line that names one counts, so that a reason may follow. `plan_execute_reflect` and, alone, `tot` are names too.
    """
    by_words = {tuple(re.split("[-_ ]", name.lower())): name for name in names}
    patterns = {
        name: re.compile(rf"(?<![\w-]){'[-_ ]'.join(map(re.escape, words))}(?![\w-])")
        for words, name in by_words.items()
    }
    for line in text[:LONGEST_CHOICE].lower().splitlines():
        alias = ALIASES.get(line.strip(" \t.*`\"'"))
        found = {name for name, pattern in patterns.items() if pattern.search(line)} or {alias} & patterns.keys()
        if found:
            return found.pop() if len(found) == 1 else None
    return None


async def put_in_charge(
    name: str, settings: Mapping[str, JsonValue], state: KernelState, session: Session
) -> KernelState:
    """Let a strategy run with these settings, its own tools and its own instruction; return the state it begins with.

    Events and the header keep the name of the strategy that the agent was given; the result says this one.
    """
    info = strategy_info(name)[1]
    own = info.tools_for(dict(settings))
    session.strategy_used, session.strategy_settings = name, dict(settings)
    session.hidden_tools = frozenset(session.strategy_tools - own.keys())
    instruction = info.instruction_for(dict(settings))
    if not instruction:
        return state
    return transition(state, thread=await start_with(session, f"{text_of(session.task)}\n\n{instruction}"))


async def start_with(session: Session, text: str) -> Thread:
    """Return a thread in which this text, with the task's images, is the task; strategies are told it as such from now on."""
    thread = await fresh_thread(session, text)
    if len(thread.messages) > len(session.preamble.messages):  # no hook removed it
        session.task = thread.messages[-1].content
    return thread


def full_names(names: Iterable[str]) -> list[str]:
    """Return the full names of strategies, each once.

    Raises:
        UnknownStrategyError: nothing is registered under one of them.
    """
    return list(dict.fromkeys(strategy_info(name)[0] for name in names))


def with_defaults(names: list[str], settings: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of these strategies, complete.

    Raises:
        UsageError: there are settings of another one, or such that are not right.
    """
    for name in settings:
        if name not in names:
            raise UsageError(f"settings: {name!r} is none of the candidates: {', '.join(names)}")
    return {name: strategy_info(name)[1].checked_settings(name, settings.get(name, {})) for name in names}


def tools_of_all(settings: Mapping[str, dict[str, Any]]) -> dict[str, Tool]:
    """Return the own tools of all these strategies, whose settings are given."""
    return {
        tool: made for name, given in settings.items() for tool, made in strategy_info(name)[1].tools_for(given).items()
    }
