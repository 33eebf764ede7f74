"""Adaptive: look at the task, choose a strategy for it, and let that one run, once per task.

The choice is the model's. Where it makes none, experience with such tasks decides, else what each is known for. With `learning` the
experience comes from the stored traces; what it was is a recorded fact, so a replay chooses alike.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from playhead.errors import ModelError, UsageError
from playhead.kernel import KernelName, KernelState, Purpose, Session, Strategy, ask_once, fresh_thread, transition
from playhead.kernel.delegation import full_names, named, put_in_charge, recorded_strategy, told, with_defaults
from playhead.kernel.describe import describe
from playhead.kernel.earlier_runs import ask_earlier_runs, effectiveness, task_type_of
from playhead.kernel.rationale import strip_rationales
from playhead.kernel.strategies.registry import strategy_class, tools_of_all
from playhead.trace.events import StrategySelected, StructuredOutputFailed
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Tool

NAME: Final = "adaptive"
FACT: Final = "strategy-effectiveness"
_PROMPT: Final = (
    "Choose the strategy for a task; do not solve it.\n\nStrategies:\n{strategies}\n\n{experience}Type of task: {type}\n"
    "Turns at most: {turns}\n{preferred}Task:\n{task}\n\n"
    "Reply with the name of one strategy, and nothing else."
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
    """The strategies to choose from."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of candidates, by their names; the others have their defaults."""
    selector: Literal["model", "table"] = "model"
    """Who chooses: the model, with one request, or the type of the task alone, without any."""
    task_type: str | None = Field(default=None, max_length=100)
    """What kind of task it is; None: the words of the task decide."""
    preferred: str | None = None
    """The strategy that is taken when nothing else speaks for one."""
    learning: bool = False
    """Whether stored traces say how well which strategy did."""
    newest: int = Field(default=200, ge=1, le=10_000)
    """Stored traces that are looked at, newest first."""
    min_runs: int = Field(default=3, ge=1)
    """Runs of a strategy on tasks of a type below which they say nothing."""
    kernel: KernelName = "react"
    """The registered kernel, the loop that the chosen strategy thinks with, unless it has its own."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Choose a strategy and let it run; asked to go on, the same one goes on."""
        name = state.meta.get(NAME)
        if isinstance(name, str):
            return await recorded_strategy(name, self.settings, session).run(state, session)
        state, name = await self._choose(state, session)
        chosen = recorded_strategy(name, self.settings, session)
        state = transition(state, meta={**state.meta, NAME: name})
        return await chosen.run(await put_in_charge(chosen, state, session), session)

    def tools(self) -> list[Tool]:
        """Return the own tools of all candidates; only those of the chosen one are offered."""
        return list(tools_of_all(self.settings).values())

    @field_validator("candidates")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        if NAME in names:
            raise ValueError("adaptive cannot choose itself")
        return full_names(names)

    @model_validator(mode="after")
    def _complete(self) -> Adaptive:
        """Fill in the settings of all candidates, so that the header holds them."""
        if self.preferred is not None and self.preferred not in self.candidates:
            raise UsageError(f"{self.preferred!r} is none of the candidates: {', '.join(self.candidates)}")
        self.settings.update(with_defaults(self.candidates, self.settings))
        return self

    async def _choose(self, state: KernelState, session: Session) -> tuple[KernelState, str]:
        kind = self.task_type or task_type_of(text_of(session.task))
        experience = await self._experience(session, kind) if self.learning else []
        chosen, why_not = None, ""
        if self.selector == "model" and len(self.candidates) > 1:
            state, chosen, why_not = await self._asked(state, session, kind, experience)
        by = "the model's choice"
        if chosen is None:
            chosen, by = self._without_model(kind, experience)
        reason = f"{by}; task type {kind}{why_not}"
        session.emit(StrategySelected(strategy=chosen, reason=reason, declares=strategy_class(chosen).declared()))
        return state, chosen

    async def _experience(self, session: Session, kind: str) -> list[dict[str, Any]]:
        """Return how well candidates did on such tasks: those that had enough of them."""
        look = partial(effectiveness, agent=session.header, newest=self.newest)
        known = [each for each in await ask_earlier_runs(session, FACT, look) if each["task_type"] == kind]
        return [each for each in known if each["runs"] >= self.min_runs and each["strategy"] in self.candidates]

    async def _asked(
        self, state: KernelState, session: Session, kind: str, experience: list[dict[str, Any]]
    ) -> tuple[KernelState, str | None, str]:
        """Return the model's choice, or None and why there is none."""
        rates = [
            f"- {each['strategy']}: {each['success_rate']:.0%} of {each['runs']} runs succeeded" for each in experience
        ]
        prompt = _PROMPT.format(
            strategies=told(self.candidates),
            experience="\n".join(["Experience with tasks of this type:", *rates, "", ""]) if rates else "",
            type=kind,
            turns=session.header.max_iterations,
            preferred=f"Preferred: {self.preferred}\n" if self.preferred else "",
            task=text_of(session.task),
        )
        try:
            state, said = await ask_once(state, session, await fresh_thread(session, prompt), purpose="select")
        except ModelError as error:
            return state, None, f"; the model did not answer: {describe(error)}"
        if (answer := named(strip_rationales(said), self.candidates)) is not None:
            return state, answer, ""
        error_text = f"it names not one of {', '.join(self.candidates)}"
        session.emit(StructuredOutputFailed(expected="strategy", error=error_text, attempt=0))
        return state, None, "; the model's answer named no single strategy"

    def _without_model(self, kind: str, experience: list[dict[str, Any]]) -> tuple[str, str]:
        """Return a strategy and what speaks for it, without asking anybody."""
        if experience:
            best = max(experience, key=lambda each: each["success_rate"])  # of equal ones the first by name
            return best["strategy"], f"{best['success_rate']:.0%} of {best['runs']} such runs succeeded with it"
        if self.preferred is not None:
            return self.preferred, "the preferred one"
        suiting = [name for name in self.candidates if kind in strategy_class(name).suits]
        usual = [name for name in self.candidates if name == "reactive"]
        return (*suiting, *usual, *self.candidates)[0], "known for this type of task"
