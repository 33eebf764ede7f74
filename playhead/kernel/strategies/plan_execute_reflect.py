"""Plan, execute, reflect: write a plan of typed steps, carry it out, then check whether the results are enough.

Plan-and-solve (Wang et al. 2023, arXiv:2305.04091), with results of earlier steps as arguments of later ones and independent
calls in parallel (LLMCompiler, Kim et al. 2023, arXiv:2312.04511).

A failed step is replaced together with the open ones; otherwise the plan continues without it and without the steps that need
it. Completed steps never run again. A failed call of a tool with side effects may have had its effect, so no version of the
plan makes the same call again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, Field

from playhead.kernel import KernelState, Purpose, Session, Step, Strategy, transition
from playhead.kernel.describe import shortened
from playhead.kernel.forms import ask_for, form_prompt
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.passes import answer_pass, fresh_thread, offered_thread, run_pass
from playhead.kernel.plan import NO_TURNS, Plan, PlanForm, PlanStep, find_problems, references, resolved, steps_in
from playhead.kernel.plan_prompts import (
    SHOWN,
    answer_prompt,
    more_steps_prompt,
    plan_prompt,
    reflection_prompt,
    step_prompt,
)
from playhead.kernel.react import REACT, with_offered_rationale
from playhead.kernel.state import PlannedCall
from playhead.kernel.strategies.reactive import Reactive
from playhead.trace.events import DecisionEvaluated, RationaleMissing, Reflection
from playhead.trace.types import ToolCall, text_of
from playhead.trace.values import as_text, repair_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.session import Session
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


NAME: Final = "plan-execute-reflect"
ANSWER_TURNS: Final = 2
"""Turns for the answer: one, and one more if it was empty."""
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
    """`linear`: one step after another. `dag`: a step runs as soon as the steps that it needs are completed, read-only calls in
    parallel."""
    max_refinements: int = Field(default=2, ge=0, le=20)
    """How often insufficient results lead to further steps; with 0, the model is not asked whether they are enough."""
    step_kernel_max_iterations: int = Field(default=3, ge=1, le=100)
    """The maximum number of turns of a composite step."""
    max_replans: int = Field(default=3, ge=0, le=20)
    """How often steps are replaced after failures."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Run from the plan to the answer; if continued, it does not plan again."""
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
        """Carry out the pending steps in waves; the agent's last turn is for the answer."""
        while plan.has_room and (wave := plan.ready()):
            failures = await run_wave(plan, wave, step_turns=self.step_kernel_max_iterations)
            if failures:
                await self._replace(plan, f"{', '.join(failures)} failed")
        plan.skip_the_rest()

    async def _replace(self, plan: Plan, reason: str) -> bool:
        """Ask for steps that replace those not completed, or for further ones; return whether there is more to do."""
        is_anew = len(plan.having("completed")) < len(plan.by_id)
        if not plan.has_room or (is_anew and plan.replans >= self.max_replans):
            return False
        plan.replans += is_anew
        steps = await _ask_for_steps(plan, "replan", more_steps_prompt(plan, reason))
        if steps:
            plan.begin(steps, reason)
        return bool(steps)

    async def _refine(self, plan: Plan) -> bool:
        """Ask whether the results are enough, and if not, for further steps; return whether there is more to do."""
        session = plan.session
        prompt = reflection_prompt(plan, form_prompt(ReflectionForm))
        thread = await offered_thread(session, "prompt.reflect", prompt) if plan.has_room else None
        if thread is None:  # no further steps are possible, or a hook removed the question
            return False
        plan.state, found = await ask_for(plan.state, session, thread, ReflectionForm, purpose="reflect", retries=1)
        if found is None:
            return False
        session.emit(Reflection(text=found.reason, satisfied=found.satisfied))
        step = Step(type="reflection", content=found.reason, iteration=plan.state.iteration)
        plan.reach(steps=(*plan.state.steps, step))
        return not found.satisfied and await self._replace(plan, found.reason)


class ReflectionForm(BaseModel):
    """The model's judgement of a plan's results."""

    reason: str = Field(description="what is there and what is missing, in one or two sentences")
    satisfied: bool = Field(description="true when the results are enough to answer the task")


async def _ask_for_steps(plan: Plan, purpose: str, prompt: str) -> list[PlanStep]:
    """Return new steps from the model; empty, with an event, if it gives no valid ones.

    The model gets one chance to correct them.
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
    """Answer from the results; without an answer, keep the best result."""
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


async def run_wave(plan: Plan, wave: Sequence[PlanStep], *, step_turns: int) -> list[str]:
    """Carry out the steps of a wave and return the ids of those that failed; `step_turns` limits each composite step.

    Read-only calls run in parallel in one turn; every other step has its own turn. Steps that would use the answer's turn
    stay pending.

    Raises:
        RunEndedError: the agent has ended meanwhile.
        ModelError: the model did not answer.
    """
    together = [each for each in wave if plan.is_read_only(each)]
    if together:
        await _run_calls(plan, together)
    for step in wave:
        if step not in together and plan.has_room:
            is_call = step.type == "tool_call"
            await (_run_calls(plan, [step]) if is_call else _run_inner(plan, step, step_turns))
    return [step.id for step in wave if step.status == "failed"]


async def _run_calls(plan: Plan, steps: Sequence[PlanStep]) -> None:
    """Make the calls of these steps in one turn of the agent's own loop, with the plan in place of the model."""
    calls = [(step, call) for step in steps if (call := _call_of(step, plan)) is not None]
    if not calls:
        return
    session, done_before = plan.session, len(plan.state.steps)
    for step, _ in calls:
        plan.change(step, "in_progress")

    async def think(state: KernelState, session: Session) -> KernelState:
        pending = [await _planned(step, call, session) for step, call in calls]
        return transition(state, status="acting", pending=tuple(pending))

    kernel = replace(REACT, phases={**REACT.phases, "thinking": think})
    thread = session.at.preamble
    plan.state, _ = await run_pass(plan.state, session, thread, purpose="step", max_iterations=1, kernel=kernel)
    plan.note_calls(calls[0][0], plan.state.steps[done_before:])
    for step, call in calls:
        # Later steps use what the model may see of a result, also in arguments of calls.
        completed = session.tools.ended.get(call.id)
        seen: JsonValue = "the call was not made"
        if completed is not None:
            result = completed.result if completed.ok else completed.observation()
            seen = session.messages.changed_results.get(call.id, result)
        if completed is not None and completed.ok:
            plan.change(step, "completed", result=seen)
        else:
            plan.change(step, "failed", as_text(seen))
    plan.reach(output=None)  # of a run that is stopped now, it is what the newest call returned, as hooks left it


async def _run_inner(plan: Plan, step: PlanStep, step_turns: int) -> None:
    """Let the model carry out an analysis in one answer without tools, or a composite step in a loop with its tools."""
    session, text = plan.session, step.instruction or step.title
    results = plan.results
    instruction = as_text(resolved(text, {name: shortened(as_text(results[name]), SHOWN) for name in references(text)}))
    plan.change(step, "in_progress")
    is_analysis = step.type == "analysis"
    # One turn more may be needed for the result of a composite step, and one is for the answer.
    turns = 1 if is_analysis else max(1, min(step_turns, plan.turns_left - 2))
    tools = () if is_analysis else step.tool_hints or tuple(plan.tools)
    thread = await fresh_thread(session, step_prompt(plan, step, instruction))
    done_before = len(plan.state.steps)
    run = run_pass if is_analysis else answer_pass
    plan.state, conclusion = await run(
        plan.state, session, thread, purpose="step", max_iterations=turns, tools=tools, step=step.id
    )
    new = plan.state.steps[done_before:]
    plan.note_calls(step, new)
    if conclusion.answered and conclusion.text:
        plan.change(step, "completed", result=conclusion.output)
        plan.reach(output=conclusion.output)
        return
    found = [each.content for each in new if each.type == "observation"]
    limit = f"no answer within {turns} turn{'s' if turns > 1 else ''}"
    why = limit if conclusion.reason == "max_iterations" else conclusion.reason
    plan.change(step, "failed", f"{why}; the last result was: {found[-1]}" if found else why)


def _call_of(step: PlanStep, plan: Plan) -> ToolCall | None:
    """Return the call of a step, with results in place of references; None if the step ended without one."""
    assert step.tool_name is not None  # noqa: S101 - a plan with such a step is refused
    arguments = _as_declared(step, resolved(step.tool_args, plan.results), plan.tools[step.tool_name])
    earlier = plan.earlier(step, arguments)
    if earlier is None:
        return ToolCall(id=f"{plan.id}_{step.id}", name=step.tool_name, arguments=repair_json(arguments))
    made_in, result = earlier[0].id, earlier[1]
    if result is not None:
        plan.change(step, "completed", f"the same call was made in {made_in}", result=result)
        plan.reach(output=result)
    else:
        why = f"the same call failed in {made_in} and may have had its effect; it is not made again"
        plan.change(step, "failed", why)
    return None


def _as_declared(step: PlanStep, arguments: dict[str, JsonValue], spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the arguments with results as text where the tool takes a text and a reference stood for a number or an object."""
    properties = spec.parameters.get("properties", {})
    texts = {name for name, each in properties.items() if isinstance(each, dict) and each.get("type") == "string"}
    return {
        name: as_text(value) if name in texts and isinstance(step.tool_args[name], str) else value
        for name, value in arguments.items()
    }


async def _planned(step: PlanStep, call: ToolCall, session: Session) -> PlannedCall:
    """Return a call with its place and the plan's reason for it."""
    position = session.at.take_position()
    planned = PlannedCall(call=call, position=position, source="plan", rationale=step.rationale, step=step.id)
    if step.rationale is None and session.header.rationale:
        session.emit(RationaleMissing(path="plan", call_id=call.id, tool=call.name))
    return await with_offered_rationale(planned, session)
