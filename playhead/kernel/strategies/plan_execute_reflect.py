"""Plan, execute, reflect: a plan of typed steps first, then its steps, then a look at whether that was enough.

Plan-and-solve (Wang et al. 2023, arXiv:2305.04091), with results of earlier steps as arguments of later ones and independent
calls beside each other (LLMCompiler, Kim et al. 2023, arXiv:2312.04511).

A step that fails runs again, where that cannot do something twice; else it is replaced, alone or with what is still open; else
the plan goes on without it, and without what needs it. Completed steps never run again. A call of a tool with side effects that
failed may have had its effect: the same call is not made again, by no version of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from playhead.kernel.output_cap import output_cap
from playhead.kernel.passes import fresh_thread, run_pass
from playhead.kernel.plan.asking import make_plan, prompt_thread, recover, refine
from playhead.kernel.plan.dispatch import run_wave
from playhead.kernel.plan.progress import Progress
from playhead.kernel.plan.prompt import answer_prompt, reflection_prompt
from playhead.kernel.plan.steps import Plan, ReflectionForm
from playhead.kernel.state import Step, transition
from playhead.kernel.strategies.base import KernelName, Strategy
from playhead.kernel.strategies.reactive import Reactive
from playhead.kernel.structured import ask_for
from playhead.trace.events import DecisionEvaluated, Reflection
from playhead.trace.types import Purpose, text_of

if TYPE_CHECKING:
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.values import JsonValue

NAME: Final = "plan-execute-reflect"
REFLECTION_TOKENS: Final = {"shallow": 1500, "deep": 2500}
ANSWER_TURNS: Final = 2
"""Turns for the answer: one, and one more when it was empty."""
NO_ROOM: Final = "there are no turns for a plan and an answer: the task is solved by ReAct, without one"


class PlanExecuteReflect(Strategy):
    """Plan the task, carry the plan out, look at the results, and answer from them."""

    name = NAME
    aliases = ("plan", "plan-execute")
    known_for = "makes a plan, carries it out step by step, corrects it; for complex tasks of many steps"
    suits = ("analysis", "multi-step")
    purposes = (
        Purpose(name="plan", asks_for="a plan"),
        Purpose(name="step", asks_for="the result of a step"),
        Purpose(name="patch", asks_for="steps in place of those that failed"),
        Purpose(name="reflect", asks_for="whether the results are enough"),
        Purpose(name="replan", asks_for="a new plan for what is left"),
        Purpose(name="augment", asks_for="further steps"),
        Purpose(name="answer", asks_for="the answer, from the results", is_answer=True),
    )
    max_iterations = 25

    plan_mode: Literal["linear", "dag"] = "linear"
    """`linear`: one step after another. `dag`: a step runs as soon as what it needs is there, read-only calls beside each
    other."""
    max_refinements: int = Field(default=2, ge=0, le=20)
    """How often results that are not enough lead to further steps; 0: nobody looks whether they are."""
    reflection_depth: Literal["deep", "shallow"] = "deep"
    """How closely results are looked at, with at most 2500 or 1500 tokens."""
    step_retries: int = Field(default=1, ge=0, le=20)
    """How often a step that failed runs again as it is, where that cannot do something twice."""
    step_kernel_max_iterations: int = Field(default=3, ge=1, le=100)
    """Turns of a composite step at most."""
    patch_strategy: Literal["in-place", "replan-remaining"] = "replan-remaining"
    """What new steps replace: the failed step alone, or all that is still open, too."""
    max_replans: int = Field(default=3, ge=0, le=20)
    """How often steps are replaced because some failed."""
    kernel: KernelName = "react"
    """The registered kernel, the loop that makes the calls of a step, or thinks it out."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Go from the plan to the answer. Asked to go on, it does not plan again."""
        if NAME in state.meta:
            return await Reactive().run(state, session)
        state = transition(state, meta={**state.meta, NAME: f"plan_{state.iteration}"})
        plan = Plan(id=str(state.meta[NAME]), goal=text_of(session.task), mode=self.plan_mode)
        progress = Progress(session, state, plan, self.step_kernel_max_iterations)
        why = await make_plan(progress) if progress.has_room else NO_ROOM
        if why is not None:
            session.emit(DecisionEvaluated(decision=f"{NAME}: no plan", rationale=why))
            session.at.strategy = "reactive"
            return await Reactive().run(transition(progress.state, thread=state.thread), session)
        await self._carry_out(progress)
        for _ in range(self.max_refinements):
            missing = await self._what_is_missing(progress) if progress.has_room else None
            if missing is None or not await refine(progress, missing, replans=self.max_replans):
                break
            await self._carry_out(progress)
        return await _answer(progress)

    async def _carry_out(self, progress: Progress) -> None:
        """Carry out what is pending, wave by wave; the last turn of the agent is for the answer."""
        while progress.has_room and (wave := progress.plan.ready()):
            if failures := await run_wave(progress, wave):
                every = self.patch_strategy == "replan-remaining"
                await recover(progress, failures, retries=self.step_retries, replans=self.max_replans, all_open=every)
        progress.skip_blocked()
        progress.skip_the_rest()

    async def _what_is_missing(self, progress: Progress) -> str | None:
        """Return what the results lack, as the model sees it; None when they are enough, or when it does not say."""
        session, depth = progress.session, self.reflection_depth
        prompt = reflection_prompt(progress.plan, deep=depth == "deep")
        thread = await prompt_thread(session, "prompt.reflect", prompt)
        if thread is None:  # a hook removed the question
            return None
        capped = output_cap(session.header.parameters) is not None
        parameters: dict[str, JsonValue] = {} if capped else {"max_tokens": REFLECTION_TOKENS[depth]}
        progress.state, found = await ask_for(
            progress.state, session, thread, ReflectionForm, purpose="reflect", retries=1, parameters=parameters
        )
        if found is None:
            progress.log("the results are taken as they are: the model did not say whether they are enough")
            return None
        session.emit(Reflection(text=found.reason, satisfied=found.satisfied))
        step = Step(type="reflection", content=found.reason, iteration=progress.state.iteration)
        progress.reach(steps=(*progress.state.steps, step))
        return None if found.satisfied else found.reason


async def _answer(progress: Progress) -> KernelState:
    """Answer from the results; without an answer the best result is kept."""
    session = progress.session
    thread = await fresh_thread(session, answer_prompt(progress.plan))
    state, conclusion = await run_pass(
        progress.state, session, thread, purpose="answer", max_iterations=ANSWER_TURNS, tools=()
    )
    reason = conclusion.reason
    if conclusion.answered and progress.cut_short:
        reason = "max_iterations"
    output = conclusion.output if conclusion.answered else progress.state.best
    session.terminate(reason, output, source=f"strategy:{NAME}", answer=conclusion.answer)
    return transition(state, output=output)
