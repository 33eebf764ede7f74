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

from playhead.kernel import KernelName, KernelState, Purpose, Session, Step, Strategy, transition
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.output_cap import output_cap
from playhead.kernel.passes import fresh_thread, offered_thread, run_pass
from playhead.kernel.plan.dispatch import run_wave
from playhead.kernel.plan.progress import NO_TURNS, Plan
from playhead.kernel.plan.prompt import answer_prompt, more_steps_prompt, plan_prompt, reflection_prompt
from playhead.kernel.plan.reading import ask_for_steps
from playhead.kernel.plan.steps import PlanStep, ReflectionForm
from playhead.kernel.strategies.reactive import Reactive
from playhead.kernel.structured import ask_for
from playhead.trace.events import DecisionEvaluated, Reflection
from playhead.trace.types import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.dispatch import Failures
    from playhead.trace.values import JsonValue

NAME: Final = "plan-execute-reflect"
REFLECTION_TOKENS: Final = {"shallow": 1500, "deep": 2500}
ANSWER_TURNS: Final = 2
"""Turns for the answer: one, and one more when it was empty."""
NO_ROOM: Final = "there are no turns for a plan and an answer: the task is solved by ReAct, without one"
NO_PLAN: Final = "the model gave no plan that can be carried out: the task is solved by ReAct, without one"
_PATCH: Final = "A step of the plan failed. Write new steps that replace {}."
_REPLAN: Final = "The plan did not reach it: {}\nWrite a new plan for what is left."
_AUGMENT: Final = "All steps are completed, but this is missing: {}\nWrite only the further steps."


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
        tools = {name: spec for name, spec in session.offered_specs().items() if not is_meta(session, name)}
        plan = Plan(str(state.meta[NAME]), text_of(session.task), self.plan_mode, session, state, tools)
        steps: Sequence[PlanStep] = ()
        if plan.has_room:
            required = {each.tool: each.calls for each in session.unmet if each.tool and each.tool in plan.tools}
            steps = await ask_for_steps(plan, "plan", plan_prompt(plan, required))
        if not steps:
            why = NO_PLAN if plan.has_room else NO_ROOM
            session.emit(DecisionEvaluated(decision=f"{NAME}: no plan", rationale=why))
            session.at.strategy = "reactive"
            return await Reactive().run(transition(plan.state, thread=state.thread), session)
        plan.begin(steps)
        await self._carry_out(plan)
        for _ in range(self.max_refinements):
            missing = await self._what_is_missing(plan)
            if missing is None or not await self._refine(plan, missing):
                break
            await self._carry_out(plan)
        return await _answer(plan)

    async def _carry_out(self, plan: Plan) -> None:
        """Carry out what is pending, wave by wave; the last turn of the agent is for the answer."""
        while plan.has_room and (wave := plan.ready()):
            failures = await run_wave(plan, wave, step_turns=self.step_kernel_max_iterations)
            if failures:
                await self._recover(plan, failures)
        plan.skip_the_rest()

    async def _recover(self, plan: Plan, failures: Failures) -> None:
        """Let steps that failed run again, or have them replaced; what can neither stays failed, and the plan goes on."""
        lost: list[PlanStep] = []
        for step in (plan.by_id[each] for each in failures):
            if failures[step.id] and step.retries < self.step_retries:
                retry = step.retries + 1
                plan.change(step.id, "pending", f"retry {retry} of {self.step_retries}", retries=retry)
            else:
                lost.append(step)
        if lost:
            reason, what = f"{', '.join(each.id for each in lost)} failed", "the failed step alone"
            if self.patch_strategy == "replan-remaining":
                lost += plan.having("pending")
                what = "the failed step and all steps that are still open"
            await self._replaced(plan, lost, "patch", _PATCH.format(what), reason)

    async def _refine(self, plan: Plan, missing: str) -> bool:
        """Have replaced what is not completed, or steps added where all are; return whether there is more to do."""
        gone = [each for each in plan.by_id.values() if each.status != "completed"]
        what, why = ("replan", _REPLAN) if gone else ("augment", _AUGMENT)
        return await self._replaced(plan, gone, what, why.format(missing), missing)

    async def _replaced(self, plan: Plan, gone: Sequence[PlanStep], what: str, why: str, reason: str) -> bool:
        """Have new steps put in the place of others; return whether the model gave some that can be used."""
        if not plan.has_room or (gone and plan.replans >= self.max_replans):
            return False
        plan.replans += bool(gone)
        steps = await ask_for_steps(plan, what, more_steps_prompt(plan, why, gone), gone)
        if steps:
            plan.replace_steps(gone, steps, f"{what}: {reason}")
        return bool(steps)

    async def _what_is_missing(self, plan: Plan) -> str | None:
        """Return what the results lack, as the model sees it; None when they are enough, or when it does not say."""
        session, depth = plan.session, self.reflection_depth
        prompt = reflection_prompt(plan, deep=depth == "deep")
        thread = await offered_thread(session, "prompt.reflect", prompt) if plan.has_room else None
        if thread is None:  # nothing could follow, or a hook removed the question
            return None
        capped = output_cap(session.header.parameters) is not None
        parameters: dict[str, JsonValue] = {} if capped else {"max_tokens": REFLECTION_TOKENS[depth]}
        plan.state, found = await ask_for(
            plan.state, session, thread, ReflectionForm, purpose="reflect", retries=1, parameters=parameters
        )
        if found is None:
            return None
        session.emit(Reflection(text=found.reason, satisfied=found.satisfied))
        step = Step(type="reflection", content=found.reason, iteration=plan.state.iteration)
        plan.reach(steps=(*plan.state.steps, step))
        return None if found.satisfied else found.reason


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
