"""Asking the model for steps, and from what it wrote to steps with ids: what in it cannot work is found before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import nearest
from playhead.kernel.passes import offered_thread
from playhead.kernel.plan.prompt import STRICT
from playhead.kernel.plan.references import misspelled, references, renamed
from playhead.kernel.plan.steps import PlanForm, PlanStep
from playhead.kernel.structured import ask_for
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.kernel.plan.steps import Frame, StepForm
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState, Thread
    from playhead.trace.types import ToolSpec


async def ask_for_steps(
    state: KernelState, session: Session, frame: Frame, purpose: str, prompt: str
) -> tuple[KernelState, tuple[PlanStep, ...]]:
    """Return the state with what that cost, and steps that fit the frame; none where the model gave none, as an event says.

    What is wrong with them is said once. Where they do not say why they make their calls, they are asked for once more; what stays
    unsaid is recorded when the call is made.
    """

    async def asked(thread: Thread, retries: int) -> tuple[KernelState, PlanForm | None]:
        return await ask_for(
            state,
            session,
            thread,
            PlanForm,
            purpose=purpose,
            retries=retries,
            check=lambda it: find_problems(it, frame),
        )

    thread = await offered_thread(session, "prompt.plan", prompt)
    if thread is None:
        return state, ()
    state, form = await asked(thread, 1)
    if form and session.header.rationale and any(each.type == "tool_call" and not each.reason for each in form.steps):
        given = thread.add(await session.messages.add_assistant(form.model_dump_json(exclude_defaults=True)))
        told = await session.messages.nudge(given, "rationale-missing", STRICT)
        if told is not given:  # no hook removed it
            state, again = await asked(told, 0)
            form = again or form
    return state, () if form is None else steps_in(form, frame)


def find_problems(form: PlanForm, frame: Frame) -> str | None:
    """Return what is wrong with a plan, a line each, as the model is told; None when it can be carried out."""
    return "\n".join(f"- {each}" for each in _problems(form, frame)) or None


def steps_in(form: PlanForm, frame: Frame) -> tuple[PlanStep, ...]:
    """Return the new steps of a plan without problems, with ids, and pending."""
    numbered = list(enumerate(form.steps, frame.plan.next_number))
    names = {written.id or f"s{number}": f"s{number}" for number, written in numbered}
    # The first plan is version 0; what comes after steps is another version.
    version = frame.plan.version + bool(frame.plan.by_id)
    return tuple(with_names(_step(written, f"s{number}", version), names) for number, written in numbered)


def with_names(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    """Return the step with other names for the steps that it needs."""
    changed = {name: renamed(getattr(step, name), names) for name in ("instruction", "tool_args")}
    needed = dict.fromkeys(names.get(each, each) for each in step.depends_on)
    return step.model_copy(update={**changed, "depends_on": tuple(needed)})


def _step(written: StepForm, step_id: str, version: int) -> PlanStep:
    arguments = to_json(written.tool_args)
    needed = (*written.depends_on, *references(written.instruction, arguments))
    own = {"id": step_id, "tool_args": arguments, "depends_on": needed, "rationale": written.reason, "version": version}
    return PlanStep(**{**dict(written), **own})


def _problems(form: PlanForm, frame: Frame) -> Iterator[str]:
    if len(form.steps) > frame.most:
        yield f"it has {len(form.steps)} steps; at most {frame.most} can be carried out"
        return
    known = {name for name, each in frame.plan.by_id.items() if each not in frame.gone}
    for number, written in enumerate(form.steps, frame.plan.next_number):
        name = written.id or f"s{number}"
        if name in known:
            yield f"{name} is the id of another step; number new steps from s{frame.plan.next_number} on"
        known.add(name)
    done = {each.id for each in frame.plan.having("completed")}
    for step in steps_in(form, frame):
        yield from (f"{step.id}: {problem}" for problem in _problems_of(step, frame.tools))
        yield from (
            f"{step.id} needs {need}, which does not come before it" for need in step.depends_on if need not in done
        )
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
