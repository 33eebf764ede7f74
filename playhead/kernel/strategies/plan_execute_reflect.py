"""Plan, execute, reflect: a plan of typed steps first, then its steps, then a look at whether that was enough.

Plan-and-solve (Wang et al. 2023, arXiv:2305.04091), with results of earlier steps as arguments of later ones and independent
calls beside each other (LLMCompiler, Kim et al. 2023, arXiv:2312.04511).

A step that fails is replaced together with what is still open; else the plan goes on without it, and without what needs it. Completed steps never run again. A call of a tool with side effects that
failed may have had its effect: the same call is not made again, by no version of the plan.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, Field

from playhead.kernel import KernelState, Purpose, Session, Step, Strategy, transition
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.passes import fresh_thread, offered_thread, run_pass
from playhead.kernel.plan.dispatch import run_wave
from playhead.kernel.plan.prompt import answer_prompt, more_steps_prompt, plan_prompt, reflection_prompt
from playhead.kernel.plan.steps import NO_TURNS, Plan, PlanForm, PlanStep, find_problems, steps_in
from playhead.kernel.strategies.reactive import Reactive
from playhead.kernel.structured import ask_for, form_prompt
from playhead.trace.events import DecisionEvaluated, Reflection
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence


NAME: Final = "plan-execute-reflect"
ANSWER_TURNS: Final = 2
"""Turns for the answer: one, and one more when it was empty."""
NO_ROOM: Final = "there are no turns for a plan and an answer: the task is solved by ReAct, without one"
NO_PLAN: Final = "the model gave no plan that can be carried out: the task is solved by ReAct, without one"


class PlanExecuteReflect(Strategy):
    """Plan the task, carry the plan out, look at the results, and answer from them."""

    name = NAME
    aliases = ("plan", "plan-execute")
    known_for = "makes a plan, carries it out step by step, corrects it; for complex tasks of many steps"
    purposes = (
        Purpose(name="plan", asks_for="a plan"),
        Purpose(name="step", asks_for="the result of a step"),
        Purpose(name="reflect", asks_for="whether the results are enough"),
        Purpose(name="replan", asks_for="new steps, in place of those that failed and are open"),
        Purpose(name="answer", asks_for="the answer, from the results", is_answer=True),
    )
    max_iterations = 25

    plan_mode: Literal["linear", "dag"] = "linear"
    """`linear`: one step after another. `dag`: a step runs as soon as what it needs is there, read-only calls beside each
    other."""
    max_refinements: int = Field(default=2, ge=0, le=20)
    """How often results that are not enough lead to further steps; 0: nobody looks whether they are."""
    step_kernel_max_iterations: int = Field(default=3, ge=1, le=100)
    """Turns of a composite step at most."""
    max_replans: int = Field(default=3, ge=0, le=20)
    """How often steps are replaced because some failed."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Go from the plan to the answer. Asked to go on, it does not plan again."""
        if NAME in state.meta:
            return await Reactive().run(state, session)
        state = transition(state, meta={**state.meta, NAME: f"plan_{state.iteration}"})
        tools = {name: spec for name, spec in session.offered_specs().items() if not is_meta(session, name)}
        plan = Plan(str(state.meta[NAME]), text_of(session.task), self.plan_mode, session, state, tools)
        steps: Sequence[PlanStep] = ()
        if plan.has_room:
            required = {each.tool: each.calls for each in session.unmet if each.tool and each.tool in plan.tools}
            steps = await _ask_for_steps(plan, "plan", plan_prompt(plan, required))
        if not steps:
            why = NO_PLAN if plan.has_room else NO_ROOM
            session.emit(DecisionEvaluated(decision=f"{NAME}: no plan", rationale=why))
            session.at.delegate("reactive")
            return await Reactive().run(transition(plan.state, thread=state.thread), session)
        plan.begin(steps)
        await self._carry_out(plan)
        for _ in range(self.max_refinements):
            if not await self._refine(plan):
                break
            await self._carry_out(plan)
        return await _answer(plan)

    async def _carry_out(self, plan: Plan) -> None:
        """Carry out what is pending, wave by wave; the last turn of the agent is for the answer."""
        while plan.has_room and (wave := plan.ready()):
            failures = await run_wave(plan, wave, step_turns=self.step_kernel_max_iterations)
            if failures:
                await self._replace(plan, f"{', '.join(failures)} failed")
        plan.skip_the_rest()

    async def _replace(self, plan: Plan, reason: str) -> bool:
        """Have what is not completed replaced, or steps added where all are; return whether there is more to do."""
        is_anew = len(plan.having("completed")) < len(plan.by_id)
        if not plan.has_room or (is_anew and plan.replans >= self.max_replans):
            return False
        plan.replans += is_anew
        steps = await _ask_for_steps(plan, "replan", more_steps_prompt(plan, reason))
        if steps:
            plan.begin(steps, reason)
        return bool(steps)

    async def _refine(self, plan: Plan) -> bool:
        """Ask whether the results are enough, and if not for what is missing; return whether there is more to do."""
        session = plan.session
        prompt = reflection_prompt(plan, form_prompt(ReflectionForm))
        thread = await offered_thread(session, "prompt.reflect", prompt) if plan.has_room else None
        if thread is None:  # nothing could follow, or a hook removed the question
            return False
        plan.state, found = await ask_for(plan.state, session, thread, ReflectionForm, purpose="reflect", retries=1)
        if found is None:
            return False
        session.emit(Reflection(text=found.reason, satisfied=found.satisfied))
        step = Step(type="reflection", content=found.reason, iteration=plan.state.iteration)
        plan.reach(steps=(*plan.state.steps, step))
        return not found.satisfied and await self._replace(plan, found.reason)


class ReflectionForm(BaseModel):
    """What the model finds when it looks at the results of a plan."""

    reason: str = Field(description="what is there and what is missing, in one or two sentences")
    satisfied: bool = Field(description="true when the results are enough to answer the task")


async def _ask_for_steps(plan: Plan, purpose: str, prompt: str) -> list[PlanStep]:
    """Return new steps, as the model gives them; none where it gives none that can be used, as an event says.

    What is wrong with them is said once.
    """
    thread = await offered_thread(plan.session, "prompt.plan", prompt)
    if thread is None:
        return []
    check = partial(find_problems, plan=plan)
    plan.state, form = await ask_for(
        plan.state, plan.session, thread, PlanForm, purpose=purpose, retries=1, check=check
    )
    return [] if form is None else steps_in(form, plan)


async def _answer(plan: Plan) -> KernelState:
    """Answer from the results; without an answer the best result is kept."""
    session = plan.session
    thread = await fresh_thread(session, answer_prompt(plan))
    state, conclusion = await run_pass(
        plan.state, session, thread, purpose="answer", max_iterations=ANSWER_TURNS, tools=()
    )
    is_cut_short = any(each.error == NO_TURNS for each in plan.by_id.values())
    reason = "max_iterations" if conclusion.answered and is_cut_short else conclusion.reason
    output = conclusion.output if conclusion.answered else plan.state.best
    session.terminate(reason, output, source=f"strategy:{NAME}", answer=conclusion.answer)
    return transition(state, output=output)
