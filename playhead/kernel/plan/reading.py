"""From what a model wrote to steps with ids: everything in it that cannot work is found before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import nearest
from playhead.kernel.plan.references import misspelled, references, renamed
from playhead.kernel.plan.steps import PlanStep
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.kernel.plan.steps import Plan, PlanForm, StepForm
    from playhead.trace.types import ToolSpec


@dataclass(frozen=True, slots=True)
class Frame:
    """What a plan, or new steps for one, have to fit into."""

    plan: Plan
    """The plan as it is."""
    tools: Mapping[str, ToolSpec]
    """The tools that steps may call, by name."""
    most: int
    """Steps at most."""
    gone: tuple[PlanStep, ...] = ()
    """The steps of the plan that they replace."""


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
