"""Carrying out steps: tool calls without the model, analyses without tools, and small loops of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from playhead.kernel.hooks import SUPPRESS
from playhead.kernel.passes import answer_pass, fresh_thread, run_pass
from playhead.kernel.plan.prompt import SHOWN, step_prompt
from playhead.kernel.plan.references import UnresolvedReferenceError, instruction_with, resolved
from playhead.kernel.state import KernelState, PlannedCall, transition
from playhead.trace.events import RationaleMissing
from playhead.trace.types import ToolCall
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.kernel.loop import Kernel
    from playhead.kernel.passes import Conclusion
    from playhead.kernel.plan.progress import Progress
    from playhead.kernel.plan.types import PlanStep
    from playhead.kernel.session import Session
    from playhead.kernel.state import Thread
    from playhead.trace.events import ToolCallCompleted
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed."""

    step_id: str
    again: bool
    """Whether it may run again as it is: nothing can have been done that would be done twice, and it may help."""


async def run_wave(progress: Progress, wave: Sequence[PlanStep]) -> list[Failure]:
    """Carry out the steps of a wave and return those that failed.

    Read-only calls are made in one turn, beside each other; every other step has its turn alone. What would take the turn
    of the answer stays pending.

    Raises:
        RunEndedError: the agent has ended meanwhile.
        ModelError: the model did not answer.
    """
    together = [each for each in wave if _is_read_only(each, progress)]
    alone = [each for each in wave if not _is_read_only(each, progress)]
    failures = await run_calls(progress, together) if together else []
    for step in alone:
        if not progress.has_room:
            break
        failures += await run_calls(progress, [step]) if step.type == "tool_call" else await run_inner(progress, step)
    return failures


async def run_calls(progress: Progress, steps: Sequence[PlanStep]) -> list[Failure]:
    """Make the calls of these steps, in one turn of the agent's own loop, in which the plan thinks instead of the model."""
    calls: dict[str, ToolCall] = {}
    failures: list[Failure] = []
    for step in steps:
        call = _call_of(step, progress)
        if call is not None:
            calls[step.id] = call
        elif progress.plan.step(step.id).status == "failed":
            failures.append(Failure(step.id, again=False))
    if not calls:
        return failures
    session = progress.session
    for step_id in calls:
        progress.change(step_id, "in_progress")
    asked = [(progress.plan.step(step_id), call) for step_id, call in calls.items()]
    before = progress.state.usage.total_tokens
    progress.state, _ = await run_pass(
        progress.state,
        session,
        session.preamble,
        purpose="step",
        max_iterations=1,
        kernel=_calling(session.kernel, asked),
    )
    progress.note_calls({call.id: step_id for step_id, call in calls.items()}, next(iter(calls)))
    tokens = (progress.state.usage.total_tokens - before) // len(calls)
    for step, call in asked:
        completed = session.tools.ended.get(call.id)
        if completed is not None and completed.ok:
            seen, told = _as_hooks_left_it(completed, progress)
            progress.complete(step.id, seen, tokens)
            progress.hold(told)
        else:
            why = _as_hooks_left_it(completed, progress)[0] if completed else "the call was not made"
            progress.fail(step.id, as_text(why), tokens)
            # A tool with side effects may have acted before it failed; a refusal would come again.
            again = _is_read_only(step, progress) and call.id not in session.tools.refused
            failures.append(Failure(step.id, again=again))
    return failures


def _as_hooks_left_it(completed: ToolCallCompleted, progress: Progress) -> tuple[JsonValue, JsonValue]:
    """Return what came of a call for the model, and for everybody else: the result itself, or what hooks made of it.

    A plan goes on with what the model may see, also in arguments of later calls: they are what it would have written itself.
    """
    result = completed.result if completed.ok else completed.observation()
    if progress.session.hooks is None:
        return result, result
    seen = progress.session.messages.changed_results.get(completed.call_id, result)
    observed = next((each for each in reversed(progress.state.steps) if each.call_id == completed.call_id), None)
    if observed is None or observed.type != "observation":  # a hook removed it
        return seen, None
    return seen, result if observed.content == completed.observation() else observed.content


async def run_inner(progress: Progress, step: PlanStep) -> list[Failure]:
    """Let the model do an analysis, in one answer without tools, or a composite step, in a loop with its tools."""
    session = progress.session
    try:
        instruction = instruction_with(step.instruction or step.title, progress.results, SHOWN)
    except UnresolvedReferenceError as error:
        progress.fail(step.id, str(error))
        return [Failure(step.id, again=False)]
    progress.change(step.id, "in_progress")
    # One turn more may be needed for the result of a composite step, and one is for the answer.
    most = max(1, min(progress.settings.step_kernel_max_iterations, progress.turns_left - 2))
    turns = 1 if step.type == "analysis" else most
    thread = await fresh_thread(session, step_prompt(progress.plan, step, instruction, progress.calls_made))
    before, done_before = progress.state.usage.total_tokens, len(progress.state.steps)
    progress.state, conclusion = await _inner_pass(progress, step, thread, turns)
    acted = progress.note_calls({}, step.id)
    tokens = progress.state.usage.total_tokens - before
    if conclusion.answered and conclusion.text:
        progress.complete(step.id, conclusion.output, tokens)
        return []
    progress.fail(step.id, _why(conclusion.reason, turns, progress.state, done_before), tokens)
    return [Failure(step.id, again=not acted)]


async def _inner_pass(progress: Progress, step: PlanStep, thread: Thread, turns: int) -> tuple[KernelState, Conclusion]:
    run = run_pass if step.type == "analysis" else answer_pass
    tools = () if step.type == "analysis" else step.tool_hints or tuple(progress.tools)
    return await run(
        progress.state, progress.session, thread, purpose="step", max_iterations=turns, tools=tools, step=step.id
    )


def _call_of(step: PlanStep, progress: Progress) -> ToolCall | None:
    """Return the call of a step, with results in place of references; None when the step is over without one."""
    assert step.tool_name is not None  # noqa: S101 - a plan with such a step is refused
    try:
        arguments = _as_declared(step, resolved(step.tool_args, progress.results), progress.tools[step.tool_name])
    except UnresolvedReferenceError as error:
        progress.fail(step.id, str(error))
        return None
    earlier = progress.earlier(step.tool_name, arguments, step)
    if earlier is None:
        call_id = f"{progress.plan.id}_{step.id}_{step.retries}"
        return ToolCall(id=call_id, name=step.tool_name, arguments=arguments)
    if earlier.ok:
        progress.complete(step.id, earlier.result, reason=f"the same call was made in {earlier.step_id}")
    else:
        why = f"the same call failed in {earlier.step_id} and may have had its effect; it is not made again"
        progress.fail(step.id, why)
    return None


def _as_declared(step: PlanStep, arguments: dict[str, JsonValue], spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the arguments with results as texts where the tool takes a text: a reference to a number is none else."""
    properties = spec.parameters.get("properties", {})
    texts = {name for name, each in properties.items() if isinstance(each, dict) and each.get("type") == "string"}
    return {
        name: as_text(value) if name in texts and isinstance(step.tool_args[name], str) else value
        for name, value in arguments.items()
    }


def _calling(kernel: Kernel, asked: Sequence[tuple[PlanStep, ToolCall]]) -> Kernel:
    """Return the agent's kernel for one turn: instead of the model, the plan says what to call."""

    async def propose(state: KernelState, session: Session) -> KernelState:
        pending = [await _planned(step, call, session) for step, call in asked]
        return transition(state, status="acting", pending=tuple(pending))

    async def observe(state: KernelState, session: Session) -> KernelState:
        state = await kernel.phases["observing"](state, session)
        session.conclude("end_turn")
        return state

    return replace(kernel, phases={**kernel.phases, "thinking": propose, "observing": observe})


async def _planned(step: PlanStep, call: ToolCall, session: Session) -> PlannedCall:
    """Return a call with its place and the reason that the plan states for it."""
    rationale = step.rationale
    if rationale is not None:
        said = await session.offer("decision.rationale", rationale, key=call.id, tool=call.name, call_id=call.id)
        rationale = None if said is SUPPRESS else said
    elif session.header.rationale:
        session.emit(RationaleMissing(path="plan", call_id=call.id, tool=call.name))
    return PlannedCall(call=call, position=session.take_position(), source="plan", rationale=rationale, step=step.id)


def _is_read_only(step: PlanStep, progress: Progress) -> bool:
    return step.type == "tool_call" and step.tool_name is not None and progress.tools[step.tool_name].read_only


def _why(reason: str, turns: int, state: KernelState, done_before: int) -> str:
    """Return why a step of the model's has no result, and what it found all the same."""
    found = [each.content for each in state.steps[done_before:] if each.type == "observation"]
    why = f"no answer within {turns} turn{'s' if turns > 1 else ''}" if reason == "max_iterations" else reason
    return f"{why}; the last result was: {found[-1]}" if found else why
