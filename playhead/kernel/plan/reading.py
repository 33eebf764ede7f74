"""Asking the model for steps, and from what it wrote to steps with ids: what in it cannot work is found before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import nearest
from playhead.kernel.passes import offered_thread
from playhead.kernel.plan.prompt import STRICT
from playhead.kernel.plan.steps import PlanForm, PlanStep, misspelled, references
from playhead.kernel.structured import ask_for
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.kernel.plan.progress import Plan
    from playhead.kernel.plan.steps import StepForm
    from playhead.kernel.state import Thread
    from playhead.trace.types import ToolSpec


async def ask_for_steps(plan: Plan, purpose: str, prompt: str, gone: Sequence[PlanStep] = ()) -> tuple[PlanStep, ...]:
    """Return steps in the place of these, as the model gives them; none where it gives none that can be used, as an event says.

    What is wrong with them is said once. Where they do not say why they make their calls, they are asked for once more; what stays
    unsaid is recorded when the call is made.
    """
    session = plan.session

    async def asked(thread: Thread, retries: int) -> PlanForm | None:
        plan.state, form = await ask_for(
            plan.state,
            session,
            thread,
            PlanForm,
            purpose=purpose,
            retries=retries,
            check=lambda each: find_problems(each, plan, gone),
        )
        return form

    thread = await offered_thread(session, "prompt.plan", prompt)
    form = None if thread is None else await asked(thread, 1)
    if thread is None or form is None:
        return ()
    if session.header.rationale and any(each.type == "tool_call" and not each.reason for each in form.steps):
        given = thread.add(await session.messages.add_assistant(form.model_dump_json(exclude_defaults=True)))
        told = await session.messages.nudge(given, "rationale-missing", STRICT)
        if told is not given:  # no hook removed it
            form = await asked(told, 0) or form
    return steps_in(form, plan)


def find_problems(form: PlanForm, plan: Plan, gone: Sequence[PlanStep] = ()) -> str | None:
    """Return what is wrong with steps in the place of others, a line each, as the model is told; None when they can be carried out."""
    return "\n".join(f"- {each}" for each in _problems(form, plan, gone)) or None


def steps_in(form: PlanForm, plan: Plan) -> tuple[PlanStep, ...]:
    """Return the new steps of a plan without problems, with ids, and pending."""
    numbered = list(enumerate(form.steps, plan.next_number))
    names = {written.id or f"s{number}": f"s{number}" for number, written in numbered}
    version = plan.version + bool(plan.by_id)  # the first plan is version 0; what comes after steps is another version
    return tuple(_step(written, f"s{number}", version).with_names(names) for number, written in numbered)


def _step(written: StepForm, step_id: str, version: int) -> PlanStep:
    arguments = to_json(written.tool_args)
    needed = (*written.depends_on, *references(written.instruction, arguments))
    own = {"id": step_id, "tool_args": arguments, "depends_on": needed, "rationale": written.reason, "version": version}
    return PlanStep(**{**dict(written), **own})


def _problems(form: PlanForm, plan: Plan, gone: Sequence[PlanStep]) -> Iterator[str]:
    if len(form.steps) > (most := plan.most(gone)):
        yield f"it has {len(form.steps)} steps; at most {most} can be carried out"
        return
    known = {name for name, each in plan.by_id.items() if each not in gone}
    for number, written in enumerate(form.steps, plan.next_number):
        name = written.id or f"s{number}"
        if name in known:
            yield f"{name} is the id of another step; number new steps from s{plan.next_number} on"
        known.add(name)
    done = set(plan.results)
    for step in steps_in(form, plan):
        yield from (f"{step.id}: {problem}" for problem in _problems_of(step, plan.tools))
        lacking = (need for need in step.depends_on if need not in done)
        yield from (f"{step.id} needs {need}, which does not come before it" for need in lacking)
        done.add(step.id)


def _problems_of(step: PlanStep, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    if step.type == "tool_call" and not step.tool_name:
        yield "a step of type tool_call needs tool_name"
    elif step.type != "tool_call" and not (step.instruction or step.title):
        yield f"a step of type {step.type} needs an instruction"
    for name in filter(None, (step.tool_name, *step.tool_hints)):
        if name not in tools:
            yield f"there is no tool {name!r}.{nearest(name, tools)}"
        elif step.type == "tool_call":
            lacking = [each for each in tools[name].parameters.get("required", ()) if each not in step.tool_args]
            if lacking:
                yield f"tool_args of {name} lacks {', '.join(lacking)}"
    if (wrong := misspelled(step.instruction, step.tool_args)) is not None:
        yield f"{wrong!r} is no reference; write {{{{from_step:s1}}}} or {{{{from_step:s1:summary}}}}"
