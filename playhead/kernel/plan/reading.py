"""From what a model wrote to steps with ids: everything in it that cannot work is found before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from playhead.errors import nearest
from playhead.kernel.plan.references import misspelled, references, renamed
from playhead.kernel.plan.steps import PlanStep
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.kernel.plan.steps import Plan, PlanForm, StepForm
    from playhead.trace.types import ToolSpec

MAX_PROBLEMS: Final = 5
"""Problems of one plan that the model is told at once."""
MAX_TOLD: Final = 300
"""Characters of one of them: it may quote the plan."""
LONGEST_NAME: Final = 64
"""Characters of a tool's name, as of all tools."""


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

    @property
    def version(self) -> int:
        """The version that they make: 0 is the first plan."""
        return self.plan.version + bool(self.plan.by_id)


def find_problems(form: PlanForm, frame: Frame) -> str | None:
    """Return what is wrong with a plan, as the model is told, or None."""
    _, problems = _read(form, frame)
    more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
    return "\n".join(f"- {each}"[:MAX_TOLD] for each in (*problems[:MAX_PROBLEMS], *more)) or None


def steps_in(form: PlanForm, frame: Frame) -> tuple[PlanStep, ...]:
    """Return the new steps of a plan without problems, with ids and pending; completed ones that it lists again are left out."""
    return _read(form, frame)[0]


def _read(form: PlanForm, frame: Frame) -> tuple[tuple[PlanStep, ...], list[str]]:
    number, problems = frame.plan.next_number, list[str]()
    names: dict[str, str] = {}
    drafts: list[PlanStep] = []
    for written in form.steps:
        draft = _draft(written, f"s{number + len(drafts)}", frame.version)
        label = written.id or draft.id
        known = frame.plan.by_id.get(label)
        if known is not None and known not in frame.gone:
            if known.status != "completed" or _work(known) != _work(draft):
                problems.append(f"{label} is the id of an earlier step; number new steps from s{number} on")
            continue
        if label in names:
            problems.append(f"two steps have the id {label}")
        names[label] = draft.id
        drafts.append(draft)
    steps = tuple(with_names(each, names) for each in drafts)
    return steps, [*problems, *_problems(steps, frame)]


def _draft(written: StepForm, step_id: str, version: int) -> PlanStep:
    kind, instruction = written.kind, written.instruction.strip()
    arguments = to_json(written.tool_args) if kind == "tool_call" else {}
    return PlanStep(
        id=step_id,
        type=kind,
        title=written.title.strip(),
        instruction=instruction,
        tool_name=written.tool_name if kind == "tool_call" else None,
        tool_args=arguments,
        tool_hints=written.tool_hints if kind == "composite" else (),
        depends_on=tuple(dict.fromkeys((*written.depends_on, *references(instruction, arguments)))),
        rationale=written.stated,
        version=version,
    )


def _work(step: PlanStep) -> tuple[object, ...]:
    """Return what a step does; the title is but a name of it."""
    return step.type, step.tool_name, step.tool_args, step.instruction


def with_names(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    """Return the step with other names for the steps that it needs."""
    return replace(
        step,
        instruction=as_text(renamed(step.instruction, names)),
        tool_args=renamed(step.tool_args, names),
        depends_on=tuple(dict.fromkeys(names.get(each, each) for each in step.depends_on)),
    )


def _problems(steps: Sequence[PlanStep], frame: Frame) -> list[str]:
    if not 0 < len(steps) <= frame.most:
        return [f"it has {len(steps) or 'no'} steps; at most {frame.most} can be carried out"]
    found = [f"{step.id}: {problem}" for step in steps for problem in _problems_of(step, frame.tools)]
    done = {each.id for each in frame.plan.having("completed")}
    waiting, first = list(steps), 1 if frame.plan.mode == "linear" else len(steps)
    while begun := [each for each in waiting[:first] if done.issuperset(each.depends_on)]:
        done |= {each.id for each in begun}
        waiting = [each for each in waiting if each.id not in done]
    where = "does not come before it; steps run in order" if frame.plan.mode == "linear" else "can never be completed"
    lacking = ((each, next((need for need in each.depends_on if need not in done), None)) for each in waiting)
    return [*found, *(f"{each.id} needs {need}, which {where}" for each, need in lacking if need is not None)]


def _problems_of(step: PlanStep, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    if step.type == "tool_call" and not step.tool_name:
        yield "a step of type tool_call needs tool_name"
    elif step.type != "tool_call" and not (step.instruction or step.title):
        yield f"a step of type {step.type} needs an instruction"
    for name in filter(None, (step.tool_name, *step.tool_hints)):
        if name not in tools:
            yield f"there is no tool {name[:LONGEST_NAME]!r}.{nearest(name[:LONGEST_NAME], tools)}"
        elif step.type == "tool_call":
            lacking = [each for each in tools[name].parameters.get("required", ()) if each not in step.tool_args]
            if lacking:
                yield f"tool_args of {name} lacks {', '.join(lacking)}"
    if (wrong := misspelled(step.instruction, step.tool_args)) is not None:
        yield f"{wrong!r} is no reference; write {{{{from_step:s1}}}} or {{{{from_step:s1:summary}}}}"
