"""Another strategy takes over from one that is stuck. It goes on from what was done: the steps, their results, the turns.

Off unless asked for: `compose=[switch_strategy(…)]`. What is allowed stands in the header, what happened in events.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from playhead.errors import ModelError
from playhead.kernel.delegation import (
    full_names,
    named,
    put_in_charge,
    recorded_strategy,
    start_with,
    told,
    with_defaults,
)
from playhead.kernel.describe import describe
from playhead.kernel.passes import ask_once, fresh_thread
from playhead.kernel.progress import GivenUpError
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.state import KernelState, Step, transition
from playhead.kernel.strategies.registry import strategy_class
from playhead.trace.events import (
    DecisionEvaluated,
    StrategySwitched,
    StrategySwitchEvaluated,
    StructuredOutputFailed,
)
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.loop_detector import Loop
    from playhead.kernel.session import Session
    from playhead.kernel.strategies.base import Strategy

log = logging.getLogger("playhead")
LAST: Final = 6
"""Steps that the model is shown when it is asked which strategy is to take over."""
LONGEST_STEP: Final = 2_000
"""Characters of one step that are handed over; what is left out is said."""
LONGEST: Final = 24_000
"""Characters of all steps that are handed over; the newest come first in line, what is left out is said."""
LONGEST_REASON: Final = 500
_ASK: Final = (
    "A strategy is stuck with a task. Choose the one that is to go on; do not solve the task.\n\nTask:\n{task}\n\n"
    "It is {now}, and {stuck}. Its last steps:\n{steps}\n\nStrategies:\n{strategies}\n\n"
    "Reply with the name of one strategy ({now} to keep it) on the first line, and on the second why, in one sentence."
)
_HANDOFF: Final = (
    "{task}\n\nThis was begun with another strategy ({old}), which got stuck: {stuck}. You go on, because: {why}\n\n"
    "What was done so far, and what came back:\n{steps}\n\nGo on from there. Use these results; do not make these calls again."
)


class Switching(BaseModel):
    """Whether and to what an agent's strategy may be switched when it is stuck."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_switches: int = Field(default=1, ge=1, le=10)
    """Switches of a run at most; after them the strategy is kept, and that is said."""
    fallback_strategy: str | None = None
    """The strategy to switch to, without asking; None: the model is asked."""
    candidates: list[str] = Field(
        default=["reactive", "reflexion", "plan-execute-reflect", "tree-of-thought"], max_length=32
    )
    """The strategies that the model may choose from."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Their settings, by name; the others have their defaults."""

    @field_validator("candidates")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        return full_names(names)

    @field_validator("fallback_strategy")
    @classmethod
    def _fallback(cls, name: str | None) -> str | None:
        return None if name is None else full_names([name])[0]

    @model_validator(mode="after")
    def _complete(self) -> Switching:
        """Fill in the settings of all strategies, so that the header holds them."""
        names = self.candidates if self.fallback_strategy is None else [self.fallback_strategy]
        self.settings.update(with_defaults(names, self.settings))
        return self


async def consider_switch(state: KernelState, session: Session, loop: Loop) -> KernelState:
    """Return the state when the strategy is kept.

    Raises:
        GivenUpError: another one is to take over.
    """
    switching = Switching.model_validate(session.header.switching, strict=False)
    now, progress = session.at.strategy, session.at.progress
    assert progress is not None  # noqa: S101 - it found the loop
    if progress.switches >= switching.max_switches:
        if not progress.cap_said:
            progress.cap_said = True
            why = f"it is stuck again ({loop.what}), and max_switches={switching.max_switches} is used up. "
            why += "Fix: raise Switching(max_switches=…), or give the task to another strategy from the start"
            session.emit(DecisionEvaluated(decision=f"keep-strategy: {now}", rationale=why))
            log.warning("run %s keeps the strategy %s: %s", session.run.run_id, now, why)
        return state
    if switching.fallback_strategy is None:
        state, to_strategy, rationale = await _advice(state, session, switching, loop)
    else:
        to_strategy, rationale = switching.fallback_strategy, "fallback"
    evaluated = StrategySwitchEvaluated(
        from_strategy=now, recommended_strategy=to_strategy, will_switch=to_strategy != now, rationale=rationale
    )
    session.emit(evaluated)
    await session.offer("control.strategy-evaluated", evaluated.model_dump(exclude={"kind"}))
    if evaluated.will_switch:
        raise GivenUpError(state, loop, to_strategy, rationale)
    return state


async def _advice(
    state: KernelState, session: Session, switching: Switching, loop: Loop
) -> tuple[KernelState, str, str]:
    """Return the strategy that the model recommends, and why; without an answer the one that runs."""
    now = session.at.strategy
    names = list(dict.fromkeys([*switching.candidates, now]))
    steps = _told(state.steps[-LAST:], LONGEST)
    text = _ASK.format(task=text_of(session.task), now=now, stuck=loop.what, steps=steps, strategies=told(names))
    try:
        state, answer = await ask_once(state, session, await fresh_thread(session, text), purpose="switch")
    except ModelError as error:
        return state, now, f"kept: the model did not answer: {describe(error)}"
    said = strip_rationales(answer).strip()
    choice = named(said, names)
    if choice is None:
        error_text = f"it names not one of {', '.join(names)}"
        session.emit(StructuredOutputFailed(expected="strategy", error=error_text, attempt=0))
        return state, now, "kept: the model's answer named no single strategy"
    return state, choice, _clipped(said.partition("\n")[2].strip() or said, LONGEST_REASON)


async def hand_over(given_up: GivenUpError, session: Session) -> tuple[Strategy, KernelState]:
    """Return the strategy that takes over, and the state that it goes on from."""
    old, new, state = session.at.strategy, given_up.to_strategy, given_up.state
    switching, progress = Switching.model_validate(session.header.switching, strict=False), session.at.progress
    assert progress is not None  # noqa: S101 - it found the loop
    progress.switches += 1
    switched = StrategySwitched(
        from_strategy=old,
        to_strategy=new,
        switch_number=progress.switches,
        rationale=given_up.rationale,
        declares=strategy_class(new).declared(),
    )
    session.emit(switched)
    await session.offer("control.strategy-switched", switched.model_dump(exclude={"kind", "declares"}))
    text = _HANDOFF.format(
        task=text_of(session.task),
        old=old,
        stuck=given_up.loop.what,
        why=given_up.rationale,
        steps=_told(state.steps, LONGEST),
    )
    thread = await start_with(session, text)
    decisions = (*state.decision_log, f"switched from {old} to {new}: {given_up.rationale}")
    state = transition(
        state, thread=thread, status="thinking", pending=(), completed=(), meta={}, decision_log=decisions
    )
    strategy = recorded_strategy(new, switching.settings, session)
    state = session.reach(await put_in_charge(strategy, state, session))
    return strategy, state


def _told(steps: tuple[Step, ...], most: int) -> str:
    """Return steps as a model reads them: the newest, as many as there is room for."""
    lines: list[str] = []
    for step in reversed(steps):
        line = f"- {_line(step)}"
        if len(line) > most:
            lines.append(f"(the first {len(steps) - len(lines)} steps are left out)")
            break
        lines.append(line)
        most -= len(line)
    return "\n".join(reversed(lines)) or "(nothing)"


def _line(step: Step) -> str:
    said = _clipped(step.content, LONGEST_STEP)
    if step.type == "action":
        return f"call of {step.tool} with {said}"
    return f"{step.tool} returned: {said}" if step.type == "observation" else f"{step.type}: {said}"


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [… {len(text) - most} characters more]"
