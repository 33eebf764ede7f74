"""Hands a task over to another strategy, with the steps so far; and reads which strategy a model names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.errors import UsageError
from playhead.kernel.describe import shortened
from playhead.kernel.passes import start_with
from playhead.kernel.state import transition
from playhead.kernel.strategies.base import strategy_class
from playhead.trace.events import StrategySwitched
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.kernel.phases import GivenUpError
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Step
    from playhead.kernel.strategies.base import Strategy

LONGEST_CHOICE: Final = 2_000
"""Characters that are read of an answer that has to be a name."""
LONGEST_STEP: Final = 2_000
"""Characters of one step that are handed over, with a note about the rest."""
LONGEST: Final = 24_000
"""Characters of all steps that are handed over, newest first."""
_HANDOFF: Final = (
    "{task}\n\nThis was begun with another strategy ({old}), and you take over. {why}\n\n"
    "What was done so far, and what came back:\n{steps}\n\nGo on from there. Use these results; do not make these calls again."
)


def described_strategies(names: Iterable[str]) -> str:
    """Return the strategies as a list for a model to choose from."""
    kinds = [(name, strategy_class(name)) for name in names]
    known = [(name, kind.known_for or (kind.__doc__ or "").strip().partition("\n")[0]) for name, kind in kinds]
    return "\n".join(f"- {name}: {what}" for name, what in known)


def named_strategy(text: str, names: Iterable[str]) -> str | None:
    """Return the one strategy that a model names; None if it names none or several.

    The first line with a name counts, so that a reason may follow. `plan_execute_reflect` counts as a name, too.
    """
    known = {name.lower().replace("_", "-"): name for name in names}
    for line in text[:LONGEST_CHOICE].lower().replace("_", "-").splitlines():
        found = known.keys() & re.findall(r"[\w-]+", line)
        if found:
            return known[found.pop()] if len(found) == 1 else None
    return None


def full_names(names: Iterable[str]) -> list[str]:
    """Return the full names of strategies, without duplicates.

    Raises:
        UnknownStrategyError: nothing is registered under one of them.
    """
    return list(dict.fromkeys(strategy_class(name).name for name in names))


def with_defaults(names: list[str], settings: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of these strategies, complete.

    Raises:
        UsageError: settings belong to another strategy, or are not valid.
    """
    for name in settings:
        if name not in names:
            raise UsageError(f"settings: {name!r} is not one of the candidates: {', '.join(names)}")
    return {name: strategy_class(name)(**settings.get(name, {})).recorded() for name in names}


async def put_in_charge(strategy: Strategy, state: KernelState, session: Session) -> KernelState:
    """Give a strategy its own tools and its addition to the prompt; return its first state.

    Events and the header keep the name of the agent's original strategy; the result has this one.
    """
    session.at.delegate(strategy.name)
    session.toolset.hide_all_but(strategy.tools_by_name())
    added = strategy.added_prompt()
    if not added:
        return state
    return transition(state, thread=await start_with(session, f"{text_of(session.task)}\n\n{added}"))


async def hand_over(given_up: GivenUpError, session: Session, number: int) -> tuple[Strategy, KernelState]:
    """Return the strategy that takes over, and the state from which it continues; `number` counts the run's switches.

    Raises:
        UsageError: the agent has a tool with the name of one of the strategy's own tools.
    """
    old, state, why = session.at.strategy, given_up.state, given_up.answer.why
    strategy = cast("Strategy", given_up.answer.strategy)
    switched = StrategySwitched(
        from_strategy=old, to_strategy=strategy.name, switch_number=number, rationale=why, declares=strategy.declared()
    )
    session.emit(switched)
    await session.offer("control.strategy-switched", switched.model_dump(exclude={"kind", "declares"}))
    for name, tool in strategy.tools_by_name().items():
        if name not in session.toolset.of_strategies and (name in session.toolset or tool.spec.kind != "meta"):
            raise UsageError(f"{strategy.name} cannot take over: switch_strategy has to bring its tool {name!r} along")
    session.toolset.bring(strategy.tools_by_name())
    text = _HANDOFF.format(task=text_of(session.task), old=old, why=why, steps=steps_told(state.steps))
    thread = await start_with(session, text)
    decisions = (*state.decision_log, f"switched from {old} to {strategy.name}: {why}")
    state = transition(
        state, thread=thread, status="thinking", pending=(), completed=(), meta={}, decision_log=decisions
    )
    return strategy, session.reach(await put_in_charge(strategy, state, session))


def steps_told(steps: tuple[Step, ...]) -> str:
    """Return steps as text for a model, the newest ones, within the limit."""
    text = "\n".join(f"- {_line(step)}" for step in steps) or "(nothing)"
    return text if len(text) <= LONGEST else f"(earlier steps are left out) … {text[-LONGEST:]}"


def _line(step: Step) -> str:
    text = shortened(step.content, LONGEST_STEP)
    if step.type == "action":
        return f"call of {step.tool} with {text}"
    return f"{step.tool} returned: {text}" if step.type == "observation" else f"{step.type}: {text}"
