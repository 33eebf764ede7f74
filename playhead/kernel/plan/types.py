"""A plan and its steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AliasChoices, BaseModel, Field, field_validator, model_validator

from playhead.kernel.rationale import parse_rationale
from playhead.kernel.repair.lenient_json import json_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.types import Rationale
    from playhead.trace.values import JsonValue

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
    """Steps that have to be completed before it, beside those that it refers to."""
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
    tokens_used: int = 0
    """Tokens that it has cost so far."""

    @property
    def name(self) -> str:
        """What the model is told it is."""
        return self.title or self.instruction or self.tool_name or self.id

    def content(self) -> dict[str, JsonValue]:
        """Return the step as JSON, without what is empty and without what becomes of it."""
        fields: dict[str, Any] = {
            "id": self.id,
            "type": self.type,
            "title": self.title,
            "instruction": self.instruction,
            "tool_name": self.tool_name,
            "tool_args": self.tool_args if self.type == "tool_call" else None,
            "tool_hints": list(self.tool_hints),
            "depends_on": list(self.depends_on),
            "rationale": None
            if self.rationale is None
            else self.rationale.model_dump(mode="json", exclude_defaults=True),
            "status": self.status,
        }
        return {name: value for name, value in fields.items() if value not in (None, "", [])}


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps for a goal, in order."""

    id: str
    """Id of the plan; its versions share it."""
    goal: str
    """What it is for."""
    mode: PlanMode
    """Whether steps run one after another, or as soon as what they need is there."""
    by_id: dict[str, PlanStep] = field(default_factory=dict)
    """The steps by their ids, in order; changed in place, for a copy per change would cost the square of the steps."""
    version: int = 0
    """0 for the first plan; one more for each time that steps were replaced or added."""

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """The steps, in order."""
        return tuple(self.by_id.values())

    def step(self, step_id: str) -> PlanStep:
        """Return a step by its id; raises KeyError when there is none."""
        return self.by_id[step_id]

    def having(self, *statuses: StepStatus) -> list[PlanStep]:
        """Return the steps that have one of these states."""
        return [each for each in self.by_id.values() if each.status in statuses]

    def with_steps(self, steps: Iterable[PlanStep]) -> Plan:
        """Return the plan with these steps."""
        return replace(self, by_id={each.id: each for each in steps})

    def change(self, step_id: str, **changes: Any) -> None:  # noqa: ANN401 - the fields of a step
        """Change the state of one step."""
        self.by_id[step_id] = replace(self.by_id[step_id], **changes)


class StepForm(BaseModel):
    """A step as a model writes it; the kernel gives it its id and its state."""

    id: str | None = Field(default=None, max_length=64)
    """What other steps of the same answer call it."""
    type: StepType = "analysis"
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

    @model_validator(mode="before")
    @classmethod
    def _with_type(cls, value: object) -> object:
        """Take a text for an analysis, a step of no known type that names a tool for a call of it.

        Small models leave the type out, or write the tool's name there. An analysis with tools is a composite step.
        """
        if isinstance(value, str):
            return {"instruction": value}
        if not isinstance(value, dict):
            return value
        named = any(value.get(each) for each in ("tool_name", "toolName", "tool", "action"))
        hinted = any(value.get(each) for each in ("tool_hints", "toolHints"))
        match value.get("type"):
            case "analysis" if hinted:
                return {**value, "type": "composite"}
            case "tool_call" | "analysis" | "composite":
                return value
            case None if not named:
                return {**value, "type": "analysis"}
        return {**value, "type": "tool_call"} if named else value

    @field_validator("id", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if type(value) is int else value

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

    @property
    def stated(self) -> Rationale | None:
        """The reason that the model stated, or None; none is made up."""
        return parse_rationale(self.rationale)


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
