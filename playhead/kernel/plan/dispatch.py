"""Carrying out steps: tool calls without the model, analyses without tools, and small loops of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.kernel.describe import shortened
from playhead.kernel.passes import answer_pass, fresh_thread, run_pass
from playhead.kernel.plan.prompt import SHOWN, step_prompt
from playhead.kernel.plan.steps import references, resolved
from playhead.kernel.react import REACT
from playhead.kernel.reply import with_offered_rationale
from playhead.kernel.state import KernelState, PlannedCall, transition
from playhead.trace.events import RationaleMissing
from playhead.trace.types import ToolCall
from playhead.trace.values import as_text, repair_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.plan.steps import Plan, PlanStep
    from playhead.kernel.session import Session
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


async def run_wave(plan: Plan, wave: Sequence[PlanStep], *, step_turns: int) -> list[str]:
    """Carry out the steps of a wave and return the ids of those that failed; a composite step has so many turns at most.

    Read-only calls are made in one turn, beside each other; every other step has its turn alone. What would take the turn
    of the answer stays pending.

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
    """Make the calls of these steps, in one turn of the agent's own loop, in which the plan thinks instead of the model."""
    asked = [(step, call) for step in steps if (call := _call_of(step, plan)) is not None]
    if not asked:
        return
    session, done_before = plan.session, len(plan.state.steps)
    for step, _ in asked:
        plan.change(step, "in_progress")

    async def think(state: KernelState, session: Session) -> KernelState:
        pending = [await _planned(step, call, session) for step, call in asked]
        return transition(state, status="acting", pending=tuple(pending))

    kernel = replace(REACT, phases={**REACT.phases, "thinking": think})
    thread = session.at.preamble
    plan.state, _ = await run_pass(plan.state, session, thread, purpose="step", max_iterations=1, kernel=kernel)
    plan.note_calls(asked[0][0], plan.state.steps[done_before:])
    for step, call in asked:
        # A plan goes on with what the model may see of a result, also in arguments of later calls.
        completed = session.tools.ended.get(call.id)
        seen: JsonValue = "the call was not made"
        if completed is not None:
            result = completed.result if completed.ok else completed.observation()
            seen = session.messages.changed_results.get(call.id, result)
        if completed is not None and completed.ok:
            plan.complete(step, seen)
        else:
            plan.change(step, "failed", as_text(seen))
    plan.reach(output=None)  # of a run that is stopped now, it is what the newest call returned, as hooks left it


async def _run_inner(plan: Plan, step: PlanStep, step_turns: int) -> None:
    """Let the model do an analysis, in one answer without tools, or a composite step, in a loop with its tools."""
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
        plan.complete(step, conclusion.output)
        plan.reach(output=conclusion.output)
        return
    found = [each.content for each in new if each.type == "observation"]
    limit = f"no answer within {turns} turn{'s' if turns > 1 else ''}"
    why = limit if conclusion.reason == "max_iterations" else conclusion.reason
    plan.change(step, "failed", f"{why}; the last result was: {found[-1]}" if found else why)


def _call_of(step: PlanStep, plan: Plan) -> ToolCall | None:
    """Return the call of a step, with results in place of references; None when the step is over without one."""
    assert step.tool_name is not None  # noqa: S101 - a plan with such a step is refused
    arguments = _as_declared(step, resolved(step.tool_args, plan.results), plan.tools[step.tool_name])
    earlier = plan.earlier(step, arguments)
    if earlier is None:
        return ToolCall(id=f"{plan.id}_{step.id}", name=step.tool_name, arguments=repair_json(arguments))
    made_in, result = earlier[0].id, earlier[1]
    if result is not None:
        plan.complete(step, result, f"the same call was made in {made_in}")
        plan.reach(output=result)
    else:
        why = f"the same call failed in {made_in} and may have had its effect; it is not made again"
        plan.change(step, "failed", why)
    return None


def _as_declared(step: PlanStep, arguments: dict[str, JsonValue], spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the arguments with results as texts where the tool takes a text: a reference to a number is none else."""
    properties = spec.parameters.get("properties", {})
    texts = {name for name, each in properties.items() if isinstance(each, dict) and each.get("type") == "string"}
    return {
        name: as_text(value) if name in texts and isinstance(step.tool_args[name], str) else value
        for name, value in arguments.items()
    }


async def _planned(step: PlanStep, call: ToolCall, session: Session) -> PlannedCall:
    """Return a call with its place and the reason that the plan states for it."""
    position = session.at.take_position()
    planned = PlannedCall(call=call, position=position, source="plan", rationale=step.rationale, step=step.id)
    if step.rationale is None and session.header.rationale:
        session.emit(RationaleMissing(path="plan", call_id=call.id, tool=call.name))
    return await with_offered_rationale(planned, session)
