"""Adaptive: choose a strategy for the task, and run it.

The model chooses; if it names no candidate, the first one runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field, field_validator, model_validator

from playhead.kernel import KernelState, Purpose, Session, Strategy, ask_once, fresh_thread, transition
from playhead.kernel.handover import described_strategies, full_names, named_strategy, put_in_charge, with_defaults
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.strategies.base import strategy_class, tools_of_all
from playhead.trace.events import StrategySelected, StructuredOutputFailed
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Tool

NAME: Final = "adaptive"
_PROMPT: Final = (
    "Choose the strategy for a task; do not solve it.\n\nStrategies:\n{strategies}\n\nTurns at most: {turns}\n"
    "Preferred: {preferred}\nTask:\n{task}\n\nReply with the name of one strategy, and nothing else."
)


class Adaptive(Strategy):
    """Choose a strategy for the task, and let that one run."""

    name = NAME
    known_for = "looks at the task and chooses another strategy for it"
    purposes = (Purpose(name="select", asks_for="which strategy suits the task"),)
    max_iterations = 20

    candidates: list[str] = Field(
        default=["reactive", "reflexion", "plan-execute-reflect", "tree-of-thought"], min_length=1, max_length=32
    )
    """The strategies to choose from; the first one is taken when the model names none."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of candidates, by their names; the others have their defaults."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Choose a strategy and run it; on a later call the same strategy continues."""
        name = state.meta.get(NAME)
        if isinstance(name, str):
            return await self._candidate(name).run(state, session)
        state, name = await self._choose(state, session)
        chosen = self._candidate(name)
        state = transition(state, meta={**state.meta, NAME: name})
        return await chosen.run(await put_in_charge(chosen, state, session), session)

    def tools(self) -> list[Tool]:
        """Return the own tools of all candidates; only those of the chosen one are offered."""
        return list(tools_of_all(self.settings).values())

    def _candidate(self, name: str) -> Strategy:
        return strategy_class(name).from_recorded(self.settings[name])

    @field_validator("candidates")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        if NAME in names:
            raise ValueError("adaptive cannot choose itself")
        return full_names(names)

    @model_validator(mode="after")
    def _complete(self) -> Adaptive:
        """Fill in the settings of all candidates, so that the header holds them."""
        self.settings.update(with_defaults(self.candidates, self.settings))
        return self

    async def _choose(self, state: KernelState, session: Session) -> tuple[KernelState, str]:
        """Return the model's choice; the first candidate if the model names none, or if there is only one."""
        chosen, reason = self.candidates[0], "the only candidate"
        if len(self.candidates) > 1:
            prompt = _PROMPT.format(
                strategies=described_strategies(self.candidates),
                turns=session.header.max_iterations,
                preferred=chosen,
                task=text_of(session.task),
            )
            state, reply = await ask_once(state, session, await fresh_thread(session, prompt), purpose="select")
            answer, reason = named_strategy(strip_rationales(reply), self.candidates), "the model's choice"
            if answer is None:
                error = f"it names not one of {', '.join(self.candidates)}"
                session.emit(StructuredOutputFailed(expected="strategy", error=error, attempt=0))
                reason = "the first candidate; the model's answer named no single strategy"
            chosen = answer or chosen
        session.emit(StrategySelected(strategy=chosen, reason=reason, declares=strategy_class(chosen).declared()))
        return state, chosen
