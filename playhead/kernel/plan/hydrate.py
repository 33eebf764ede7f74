"""From what a model wrote to steps with ids: everything in it that cannot work is found before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from playhead.errors import nearest
from playhead.kernel.plan.references import misspelled, references, renamed
from playhead.kernel.plan.types import PlanStep
from playhead.kernel.plan.waves import find_cycle, needs
from playhead.trace.values import json_hash, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playhead.kernel.plan.types import PlanForm, PlanMode, StepForm
    from playhead.trace.types import ToolSpec

FINISH: Final = "finish"
"""A tool that models make up for the answer; the answer is asked for at the end, when the results are there."""
MAX_PROBLEMS: Final = 5
"""Problems of one plan that the model is told at once."""
LONGEST_NAME: Final = 64
"""Characters of a tool's name, as of all tools."""
MAX_TOLD: Final = 300
"""Characters of one of them: it may quote the plan."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a plan, or new steps for one, have to fit into."""

    tools: Mapping[str, ToolSpec]
    """The tools that steps may call, by name."""
    mode: PlanMode
    most: int
    """Steps at most."""
    kept: tuple[PlanStep, ...] = ()
    """The steps of the plan that stay."""
    next_number: int = 1
    """The number of the next step's id."""
    version: int = 0
    """The version that the new steps make."""

    @property
    def taken(self) -> dict[str, PlanStep]:
        """The ids that new steps cannot have: of the steps that stay, and of those that were."""
        return {each.id: each for each in self.kept}


@dataclass(slots=True)
class _Names:
    """What an answer calls its steps, and what they are called from now on."""

    by_label: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def give(self, label: str, step_id: str) -> None:
        if label in self.by_label:
            self.problems.append(f"two steps have the id {label}")
        self.by_label[label] = step_id


def find_problems(form: PlanForm, frame: Frame) -> str | None:
    """Return what is wrong with a plan, as the model is told, or None."""
    _, problems = _read(form, frame)
    more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
    return "\n".join(f"- {each}"[:MAX_TOLD] for each in (*problems[:MAX_PROBLEMS], *more)) or None


def hydrate(form: PlanForm, frame: Frame) -> tuple[PlanStep, ...]:
    """Return the new steps of a plan without problems, with ids and pending.

    Steps that are done already and were only listed again are left out; references to them mean the step that is done.
    """
    return _read(form, frame)[0]


def _read(form: PlanForm, frame: Frame) -> tuple[tuple[PlanStep, ...], list[str]]:
    names = _Names()
    drafts: list[PlanStep] = []
    done = {_work(each): each for each in frame.kept if each.status == "completed" and _counts_once(each, frame)}
    for written in form.steps:
        if written.tool_name == FINISH and FINISH not in frame.tools:
            continue
        draft = _draft(written, f"s{frame.next_number + len(drafts)}", frame)
        label = written.id or draft.id
        again = done.get(_work(draft))
        if again is not None:
            names.give(label, again.id)
        elif label in frame.taken:
            names.problems.append(
                f"{label} is the id of an earlier step; number new steps from s{frame.next_number} on"
            )
        else:
            names.give(label, draft.id)
            drafts.append(draft)
    steps = tuple(_with_names(each, names.by_label) for each in drafts)
    return steps, [*names.problems, *_problems(steps, frame)]


def _draft(written: StepForm, step_id: str, frame: Frame) -> PlanStep:
    return PlanStep(
        id=step_id,
        type=written.type,
        title=written.title.strip(),
        instruction=written.instruction.strip(),
        tool_name=written.tool_name if written.type == "tool_call" else None,
        tool_args=to_json(written.tool_args) if written.type == "tool_call" else {},
        tool_hints=written.tool_hints if written.type == "composite" else (),
        depends_on=tuple(dict.fromkeys(written.depends_on)),
        rationale=written.stated,
        version=frame.version,
    )


def _counts_once(step: PlanStep, frame: Frame) -> bool:
    """Return whether a completed step is not done again when a later version lists it again; reading again may be meant."""
    spec = None if step.tool_name is None else frame.tools.get(step.tool_name)
    return spec is None or not spec.read_only


def _work(step: PlanStep) -> str:
    """Return what a step does, so that the same work can be told; the title is but a name of it."""
    if step.type == "tool_call":
        return json_hash([step.type, step.tool_name, step.tool_args])
    return json_hash([step.type, step.instruction or step.title, sorted(step.tool_hints)])


def _with_names(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    return replace(
        step,
        instruction=renamed(step.instruction, names),
        tool_args=renamed(step.tool_args, names),
        depends_on=tuple(names.get(each, each) for each in step.depends_on),
    )


def _problems(steps: Sequence[PlanStep], frame: Frame) -> list[str]:
    if len(steps) > frame.most:
        return [f"it has {len(steps)} steps; at most {frame.most} can be carried out"]
    found = [f"{step.id}: {problem}" for step in steps for problem in _problems_of(step, frame)]
    found += _wrong_needs(steps, frame)
    if not found and (cycle := find_cycle(steps)):
        found.append(f"steps wait for each other in a circle: {' needs '.join(cycle)}")
    return found if steps else ["it has no steps"]


def _problems_of(step: PlanStep, frame: Frame) -> Iterator[str]:
    if step.type == "tool_call":
        yield from _wrong_call(step, frame.tools)
    elif not (step.instruction or step.title):
        yield f"a step of type {step.type} needs an instruction"
    for hint in step.tool_hints:
        if hint not in frame.tools:
            yield _no_tool(hint, frame.tools)
    if (wrong := misspelled([step.instruction, step.tool_args])) is not None:
        yield f"{wrong!r} is no reference; write {{{{from_step:s1}}}} or {{{{from_step:s1:summary}}}}"
    if (key := next((key for key in step.tool_args if "{{" in key), None)) is not None:
        yield f"references may stand in the values of tool_args, not in their names: {key!r}"


def _wrong_call(step: PlanStep, tools: Mapping[str, ToolSpec]) -> Iterator[str]:
    if not step.tool_name:
        yield "a step of type tool_call needs tool_name"
        return
    spec = tools.get(step.tool_name)
    if spec is None:
        yield _no_tool(step.tool_name, tools)
        return
    required = spec.parameters.get("required", ())
    missing = [name for name in required if name not in step.tool_args]
    if missing:
        yield f"tool_args of {step.tool_name} lacks {', '.join(missing)}"


def _no_tool(name: str, tools: Mapping[str, ToolSpec]) -> str:
    return f"there is no tool {name[:LONGEST_NAME]!r}.{nearest(name[:LONGEST_NAME], tools)}"


def _wrong_needs(steps: Sequence[PlanStep], frame: Frame) -> Iterable[str]:
    """Return the references and dependencies that nothing can satisfy."""
    earlier = {each.id for each in frame.kept if each.status == "completed"}
    new = {each.id for each in steps}
    for step in steps:
        said = {*references([step.instruction, step.tool_args])}
        for each in needs(step):
            what = "refers to the result of" if each in said else "depends on"
            if each == step.id:
                yield f"{step.id} {what} {each}, which is itself"
            elif each not in new | earlier:
                yield f"{step.id} {what} {each}, and there is no such step that is completed or will be"
            elif frame.mode == "linear" and each not in earlier:
                yield f"{step.id} {what} {each}, which comes after it; steps run in order"
        earlier.add(step.id)
