"""Putting a strategy in charge of a run that began with another one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from playhead.errors import UsageError
from playhead.kernel.describe import shortened
from playhead.kernel.passes import fresh_thread
from playhead.kernel.state import KernelState, transition
from playhead.kernel.strategies.base import strategy_class
from playhead.trace.events import StrategySwitched
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from playhead.kernel.phases import GivenUpError
    from playhead.kernel.session import Session
    from playhead.kernel.state import Step, Thread
    from playhead.kernel.strategies.base import Strategy

LONGEST_CHOICE: Final = 2_000
"""Characters that are read of an answer that should be a name."""
LONGEST_STEP: Final = 2_000
"""Characters of one step that are handed over; what is left out is said."""
LONGEST: Final = 24_000
"""Characters of all steps that are handed over, those of the newest."""
_HANDOFF: Final = (
    "{task}\n\nThis was begun with another strategy ({old}), and you take over. {why}\n\n"
    "What was done so far, and what came back:\n{steps}\n\nGo on from there. Use these results; do not make these calls again."
)


def told(names: Iterable[str]) -> str:
    """Return the strategies as a list for a model to choose from."""
    kinds = [(name, strategy_class(name)) for name in names]
    known = [(name, kind.known_for or (kind.__doc__ or "").strip().partition("\n")[0]) for name, kind in kinds]
    return "\n".join(f"- {name}: {what}" for name, what in known)


def named(text: str, names: Iterable[str]) -> str | None:
    """Return the one strategy that a model names; None when it names none, or several.

    The first line that names one counts, so that a reason may follow. `plan_execute_reflect` is a name, too.
    """
    known = {name.lower().replace("_", "-"): name for name in names}
    for line in text[:LONGEST_CHOICE].lower().replace("_", "-").splitlines():
        found = known.keys() & re.findall(r"[\w-]+", line)
        if found:
            return known[found.pop()] if len(found) == 1 else None
    return None


async def put_in_charge(strategy: Strategy, state: KernelState, session: Session) -> KernelState:
    """Let a strategy have its own tools and what it adds to the prompt; return the state it begins with.

    Events and the header keep the name of the strategy that the agent was given; the result says this one.
    """
    session.at.delegate(strategy.name)
    session.toolset.hide_all_but(strategy.tools_by_name())
    added = strategy.added_prompt()
    if not added:
        return state
    return transition(state, thread=await start_with(session, f"{text_of(session.task)}\n\n{added}"))


async def hand_over(given_up: GivenUpError, session: Session, number: int) -> tuple[Strategy, KernelState]:
    """Return the strategy that takes over, and the state that it goes on from; `number` counts such switches of the run.

    Raises:
        UsageError: the agent has a tool that is called like one of the strategy's own.
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
    """Return steps as a model reads them: the newest, as much as there is room for."""
    text = "\n".join(f"- {_line(step)}" for step in steps) or "(nothing)"
    return text if len(text) <= LONGEST else f"(earlier steps are left out) … {text[-LONGEST:]}"


def _line(step: Step) -> str:
    said = shortened(step.content, LONGEST_STEP)
    if step.type == "action":
        return f"call of {step.tool} with {said}"
    return f"{step.tool} returned: {said}" if step.type == "observation" else f"{step.type}: {said}"


async def start_with(session: Session, text: str) -> Thread:
    """Return a thread in which this text, with the task's images, is the task; strategies are told it as such from now on."""
    thread = await fresh_thread(session, text)
    if len(thread.messages) > len(session.at.preamble.messages):  # no hook removed it
        session.at.take_task(thread.messages[-1].content)
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
    return {name: strategy_class(name)(**settings.get(name, {})).recorded() for name in names}
