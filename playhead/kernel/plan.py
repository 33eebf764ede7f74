"""Plans: the form of steps, their checks, and their progress.

Every change of a step is an event.

A step refers to the result of another one as `{{from_step:s1}}`. References are resolved once, in the plan's own text and never in
inserted results, so a result that looks like a reference stays as it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from playhead.errors import nearest
from playhead.kernel.rationale import parse_rationale
from playhead.kernel.state import Step, transition
from playhead.trace.events import PlanCreated, PlanStepChanged
from playhead.trace.types import Rationale
from playhead.trace.values import JsonValue, as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.types import ToolSpec


StepType = Literal["tool_call", "analysis", "composite"]
StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
PlanMode = Literal["linear", "dag"]
NO_TURNS: Final = "the turns of the agent are used up"
MAX_TOLD: Final = 20
"""The number of calls with side effects that a prompt lists."""
_STATE: Final = {"version", "result", "error"}
_REFERENCE: Final = re.compile(r"\{\{\s*from_step\s*:\s*([\w-]{1,64})\s*\}\}")
_LOOKS_LIKE_ONE: Final = re.compile(r'\{\{\s*(?:from_step|s\d+\b)[^"]{0,40}')


class StepForm(BaseModel):
    """A step as a model writes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: str = Field(default="", pattern=r"^[\w-]{0,64}$")
    """The id by which other steps refer to it; empty: `s1`, `s2` … by its position."""
    type: StepType
    """One call of a tool without the model; one answer of the model without tools; or a small loop of both."""
    title: str = ""
    """Its subject, in a few words."""
    instruction: str = ""
    """The instruction for the model; for a tool call, its purpose."""
    tool_name: str | None = None
    """The tool of a tool call."""
    tool_args: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, with references to results of earlier steps."""
    tool_hints: tuple[str, ...] = ()
    """The tools of a composite step; empty for all."""
    depends_on: tuple[str, ...] = ()
    """Steps that must be completed first, in addition to those that it refers to."""
    rationale: Rationale | None = None
    """The model's reason for the call, in its own words; None if it stated none that can be read."""

    @field_validator("rationale", mode="before")
    @classmethod
    def _reason(cls, value: object) -> Rationale | None:
        return parse_rationale(value)


class PlanStep(StepForm):
    """One step of a plan. Its id is never reused within the plan, and `depends_on` includes the steps that it refers to."""

    version: int = 0
    """The version of the plan that added it."""
    status: StepStatus = "pending"
    """The state of the step."""
    result: Any = None
    """Its result."""
    error: str | None = None
    """Why it failed or was skipped."""

    @property
    def name(self) -> str:
        """The name of the step in prompts."""
        return self.title or self.instruction or self.tool_name or self.id


class PlanForm(BaseModel):
    """A plan as a model writes it."""

    steps: list[StepForm] = Field(min_length=1)


@dataclass(slots=True)
class Plan:
    """The steps for a goal, in order, together with the agent's state."""

    id: str
    """Id of the plan; its versions share it."""
    goal: str
    """The goal of the plan."""
    mode: PlanMode
    """Whether steps run one after another, or as soon as the steps that they need are completed."""
    session: Session
    state: KernelState
    tools: dict[str, ToolSpec]
    """The tools that steps may call."""
    by_id: dict[str, PlanStep] = field(default_factory=dict)
    """The steps by their ids, in order."""
    taken: set[str] = field(default_factory=set)
    """The ids of all steps so far."""
    version: int = -1
    """0 for the first plan, plus 1 each time steps are replaced or added."""
    replans: int = 0
    """How often steps were replaced."""
    acted: dict[str, tuple[PlanStep, str | None]] = field(default_factory=dict)
    """Calls with side effects, by tool and arguments: the step that made them, and the result; None for a failed call, which may
    have had its effect."""

    def having(self, *statuses: StepStatus) -> list[PlanStep]:
        """Return the steps with one of these states."""
        return [each for each in self.by_id.values() if each.status in statuses]

    def ready(self) -> list[PlanStep]:
        """Return the pending steps that may begin now; in `linear` mode only the first."""
        found = [each for each in self.having("pending") if self.results.keys() >= set(each.depends_on)]
        return found[:1] if self.mode == "linear" else found

    @property
    def results(self) -> dict[str, JsonValue]:
        """The results of the completed steps, by their ids."""
        return {each.id: each.result for each in self.having("completed")}

    @property
    def turns_left(self) -> int:
        """Turns that the agent has left."""
        return self.session.header.max_iterations - self.state.iteration

    @property
    def has_room(self) -> bool:
        """Whether there is a turn for another step and one for the answer."""
        return self.turns_left > 1

    @property
    def next_number(self) -> int:
        """The number of the next step."""
        return len(self.taken) + 1

    def begin(self, steps: Sequence[PlanStep], reason: str | None = None) -> None:
        """Make these the plan's steps after the completed ones, and record it."""
        self.version += 1
        for each in self.having("pending"):
            self.change(each, "skipped", f"replaced in version {self.version}")
        self.by_id = {each.id: each for each in (*self.having("completed"), *steps)}
        self.taken |= self.by_id.keys()
        content: tuple[dict[str, JsonValue], ...] = tuple(
            {**each.model_dump(mode="json", exclude=_STATE, exclude_defaults=True), "status": each.status}
            for each in self.by_id.values()
        )
        self.session.emit(
            PlanCreated(plan_id=self.id, version=self.version, goal=self.goal, steps=content, reason=reason)
        )
        made = Step(type="plan", content=json.dumps(content, ensure_ascii=False), iteration=self.state.iteration)
        self.reach(steps=(*self.state.steps, made))

    def change(
        self, step: PlanStep, status: StepStatus, reason: str | None = None, *, result: JsonValue = None
    ) -> None:
        """Change the state of a step, and record it; a step that is not carried out keeps the reason."""
        step.status, step.result = status, result
        if status in ("failed", "skipped"):
            step.error = reason
        self.session.emit(PlanStepChanged(plan_id=self.id, step_id=step.id, status=status, reason=reason))

    def skip_the_rest(self) -> None:
        """Skip pending steps: they need a step that is not completed, or no turns are left for them."""
        for step in self.having("pending"):
            lacking = [each for each in step.depends_on if each not in self.results]
            self.change(step, "skipped", f"it needs {lacking[0]}, which is not completed" if lacking else NO_TURNS)

    def reach(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of a state
        """Change the agent's state; its `output` is returned if the run is stopped now."""
        self.state = self.session.reach(transition(self.state, **changes))

    def is_read_only(self, step: PlanStep) -> bool:
        """Return whether a step is one call that changes nothing."""
        return step.type == "tool_call" and self.tools[step.tool_name or ""].read_only

    def earlier(self, step: PlanStep, arguments: JsonValue) -> tuple[PlanStep, str | None] | None:
        """Return the call with side effects that this one would repeat, or None if it may be made.

        Two equal calls in one version of a plan are intended; a call that a later version repeats is not.
        """
        made = self.acted.get(_call_key(step.tool_name, as_text(arguments)))
        is_meant = made is not None and made[1] is not None and made[0].version == step.version
        return None if is_meant or self.is_read_only(step) else made

    def note_calls(self, step: PlanStep, new: Sequence[Step]) -> None:
        """Note the calls with side effects among the new steps of the state."""
        returned = {each.call_id: each.content for each in new if each.type == "observation" and each.ok}
        for each in new:
            if each.type == "action" and self._acts(each):
                self.acted[_call_key(each.tool, each.content)] = (step, returned.get(each.call_id))

    def _acts(self, made: Step) -> bool:
        spec = self.tools.get(made.tool or "")
        return spec is not None and not spec.read_only and made.call_id not in self.session.tools.refused

    @property
    def calls_made(self) -> list[str]:
        """The newest calls with side effects, for the model, which must not make them again."""
        newest = list(self.acted.items())[-MAX_TOLD:]
        return [
            f"{key[:200]} (in {step.id}): {'failed, and may have had its effect' if result is None else 'done'}"
            for key, (step, result) in newest
        ]


def _call_key(tool: str | None, arguments: str) -> str:
    """Return the key of a call, which equal calls share; `arguments` is their JSON."""
    return f"{tool} {json.dumps(json.loads(arguments), sort_keys=True)}"


def steps_in(form: PlanForm, plan: Plan) -> list[PlanStep]:
    """Return the steps that a model wrote as pending steps, with ids and all their dependencies."""
    steps = []
    for number, written in enumerate(form.steps, plan.next_number):
        arguments = to_json(written.tool_args)
        needed = dict.fromkeys((*written.depends_on, *references(written.instruction, arguments)))
        own = {"id": written.id or f"s{number}", "tool_args": arguments, "depends_on": tuple(needed)}
        steps.append(PlanStep.model_construct(**{**dict(written), **own, "version": plan.version + 1}))
    return steps


def find_problems(form: PlanForm, plan: Plan) -> str | None:
    """Return the problems of steps for the model, one per line; None if the steps can be carried out."""
    return "\n".join(f"- {each}" for each in _problems(steps_in(form, plan), plan)) or None


def _problems(steps: Sequence[PlanStep], plan: Plan) -> Iterator[str]:
    if len(steps) >= plan.turns_left:  # one turn is kept for the answer
        yield f"it has {len(steps)} steps; at most {plan.turns_left - 1} can be carried out"
        return
    known, done = set(plan.taken), set(plan.results)
    for step in steps:
        if step.id in known:
            yield f"{step.id} is the id of another step; number new steps from s{plan.next_number} on"
        yield from (f"{step.id}: {problem}" for problem in _problems_of(step, plan.tools))
        lacking = (need for need in step.depends_on if need not in done)
        yield from (f"{step.id} needs {need}, which does not come before it" for need in lacking)
        known.add(step.id)
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
    written = json.dumps([step.instruction, step.tool_args], ensure_ascii=False)
    if wrong := _LOOKS_LIKE_ONE.search(_REFERENCE.sub("|", written)):
        yield f"{wrong[0]!r} is no reference; write {{{{from_step:s1}}}}"


def references(*values: JsonValue) -> Iterable[str]:
    """Return the ids of the steps that values refer to, in order."""
    return _REFERENCE.findall(json.dumps(values, ensure_ascii=False))


def resolved(value: JsonValue, results: Mapping[str, JsonValue]) -> JsonValue:
    """Return the value with results in place of references; a text that is only a reference becomes the result itself.

    A step begins when all steps that it refers to are completed, so each has a result.
    """
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value.strip())
        return results[whole[1]] if whole else _REFERENCE.sub(lambda match: as_text(results[match[1]]), value)
    if isinstance(value, list):
        return [resolved(each, results) for each in value]
    if isinstance(value, dict):
        return {key: resolved(each, results) for key, each in value.items()}
    return value
