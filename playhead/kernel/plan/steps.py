"""A plan and its steps, and the forms in which a model writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, field_validator, model_validator

from playhead.kernel.rationale import parse_rationale
from playhead.kernel.repair.lenient_json import json_blocks
from playhead.trace.types import Rationale  # noqa: TC001 - read when a step is written
from playhead.trace.values import JsonValue  # noqa: TC001 - the same

StepType = Literal["tool_call", "analysis", "composite"]
StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
PlanMode = Literal["linear", "dag"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan."""

    id: str
    """`s1`, `s2` …; never given again within a plan, whatever becomes of the step."""
    type: StepType
    """One call of a tool without the model; one answer of the model without tools; or a small loop of both."""
    title: str = ""
    """What it is about, in a few words."""
    instruction: str = ""
    """What the model is told to do in it; of a tool call what it is for."""
    tool_name: str | None = None
    """The tool of a tool call."""
    tool_args: dict[str, JsonValue] = field(default_factory=dict)
    """Its arguments, with references to results of earlier steps."""
    tool_hints: tuple[str, ...] = ()
    """The tools of a composite step; empty for all."""
    depends_on: tuple[str, ...] = ()
    """Steps that have to be completed before it: those that it names, and those that it refers to."""
    rationale: Rationale | None = None
    """The model's own reason for the call."""
    version: int = 0
    """The version of the plan that brought it."""
    status: StepStatus = "pending"
    """Where it stands."""
    result: JsonValue = None
    """What it returned."""
    error: str | None = None
    """Why it failed or was skipped."""
    retries: int = 0
    """How often it was tried again."""

    @property
    def name(self) -> str:
        """What the model is told it is."""
        return self.title or self.instruction or self.tool_name or self.id

    def content(self) -> dict[str, JsonValue]:
        """Return the step as JSON, without what is empty and without what becomes of it."""
        content = _STEP.dump_python(self, mode="json", exclude=_STATE, exclude_defaults=True)
        return {**content, "status": self.status}


_STEP: Final = TypeAdapter(PlanStep)
_STATE: Final = {"version", "result", "error", "retries"}


@dataclass(slots=True)
class Plan:
    """The steps for a goal, in order."""

    id: str
    """Id of the plan; its versions share it."""
    goal: str
    """What it is for."""
    mode: PlanMode
    """Whether steps run one after another, or as soon as what they need is there."""
    by_id: dict[str, PlanStep] = field(default_factory=dict)
    """The steps by their ids, in order."""
    version: int = 0
    """0 for the first plan; one more for each time that steps were replaced or added."""
    next_number: int = 1
    """The number of the next step's id."""

    def having(self, *statuses: StepStatus) -> list[PlanStep]:
        """Return the steps that have one of these states."""
        return [each for each in self.by_id.values() if each.status in statuses]

    def ready(self) -> list[PlanStep]:
        """Return the pending steps that may begin now, of which in `linear` mode the first."""
        done = {each.id for each in self.having("completed")}
        found = [each for each in self.having("pending") if done.issuperset(each.depends_on)]
        return found[:1] if self.mode == "linear" else found


class StepForm(BaseModel):
    """A step as a model writes it, under one of the names that models use; the kernel gives it its id and its state."""

    id: str | None = Field(default=None, max_length=64, coerce_numbers_to_str=True)
    """What other steps of the same answer call it."""
    type: str | None = None
    """Only a hint: small models leave it out, or write the tool's name there; see `kind`."""
    title: str = ""
    instruction: str = Field(default="", validation_alias=AliasChoices("instruction", "task", "description"))
    tool_name: str | None = Field(
        default=None, validation_alias=AliasChoices("tool_name", "toolName", "tool", "action")
    )
    tool_args: dict[str, Any] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("tool_args", "toolArgs", "args", "arguments", "action_input", "input"),
    )
    tool_hints: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("tool_hints", "toolHints", "tools"))
    depends_on: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("depends_on", "dependsOn"))
    rationale: Any = Field(default=None, validation_alias=AliasChoices("rationale", "why", "reason"))

    @property
    def kind(self) -> StepType:
        """What type of step it is: by what it names rather than by what it says it is."""
        if self.tool_hints or self.type == "composite":
            return "composite"
        calls = self.type == "tool_call" or (self.tool_name is not None and self.type != "analysis")
        return "tool_call" if calls else "analysis"

    @property
    def stated(self) -> Rationale | None:
        """The reason that the model stated, or None; none is made up."""
        return parse_rationale(self.rationale)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"instruction": value} if isinstance(value, str) else value

    @field_validator("tool_args", mode="before")
    @classmethod
    def _as_object(cls, value: object) -> object:
        """Read arguments that were written as a text of JSON."""
        if isinstance(value, str):
            block = next(json_blocks(value), None)
            return value if block is None or block.problem else block.value
        return {} if value is None else value

    @field_validator("tool_hints", "depends_on", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        if value is None:
            return ()
        return (value,) if isinstance(value, (str, int)) else value


class PlanForm(BaseModel):
    """A plan as a model writes it: its steps, under one of the names that models use, or as a bare list."""

    steps: list[StepForm] = Field(validation_alias=AliasChoices("steps", "plan", "tasks"))

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return {"steps": value} if isinstance(value, list) else value


class ReflectionForm(BaseModel):
    """What the model finds when it looks at the results of a plan."""

    reason: str = Field(description="what is there and what is missing, in one or two sentences")
    satisfied: bool = Field(description="true when the results are enough to answer the task")
