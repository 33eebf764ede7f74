"""The steps of a plan, and the forms in which a model writes them.

A step refers to the result of another one: `{{from_step:s1}}`, and `{{from_step:s1:summary}}` for its beginning. References are read
in what the plan says, once, and never in what was put in for them: a result that looks like one stays what it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead.kernel.rationale import parse_rationale
from playhead.trace.types import Rationale
from playhead.trace.values import JsonValue, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

StepType = Literal["tool_call", "analysis", "composite"]
StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
PlanMode = Literal["linear", "dag"]
_STATE: Final = {"version", "status", "result", "error", "retries"}
SUMMARY: Final = 500
"""Characters of a summary."""
_REFERENCE: Final = re.compile(r"\{\{\s*from_step\s*:\s*([\w-]{1,64})\s*(:\s*summary\s*)?\}\}")
_LOOKS_LIKE_ONE: Final = re.compile(r'\{\{\s*(?:from_step|s\d+\b)[^"]{0,40}')


class StepForm(BaseModel):
    """A step as a model writes it; the kernel gives it its id and its state."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: str | None = Field(default=None, max_length=64)
    """What other steps of the same answer call it."""
    type: StepType
    """One call of a tool without the model; one answer of the model without tools; or a small loop of both."""
    title: str = ""
    """What it is about, in a few words."""
    instruction: str = ""
    """What the model is told to do in it; of a tool call what it is for."""
    tool_name: str | None = None
    """The tool of a tool call."""
    tool_args: dict[str, Any] = Field(default_factory=dict)
    """Its arguments, with references to results of earlier steps."""
    tool_hints: tuple[str, ...] = ()
    """The tools of a composite step; empty for all."""
    depends_on: tuple[str, ...] = ()
    """Steps that have to be completed before it, beside those that it refers to."""
    rationale: Any = None
    """Why the call is made."""

    @property
    def reason(self) -> Rationale | None:
        """The model's own reason; None where it stated none that can be read."""
        return parse_rationale(self.rationale)


class PlanStep(StepForm):
    """One step of a plan."""

    id: str
    """`s1`, `s2` …; never given again within a plan, whatever becomes of the step."""
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

    def with_names(self, names: Mapping[str, str]) -> PlanStep:
        """Return the step with other names for the steps that it needs."""
        changed = {name: renamed(getattr(self, name), names) for name in ("instruction", "tool_args")}
        needed = dict.fromkeys(names.get(each, each) for each in self.depends_on)
        return self.model_copy(update={**changed, "depends_on": tuple(needed)})

    def content(self) -> dict[str, JsonValue]:
        """Return the step as JSON, without what is empty and without what becomes of it."""
        content = self.model_dump(mode="json", exclude=_STATE, exclude_defaults=True)
        return {**content, "status": self.status}


class PlanForm(BaseModel):
    """A plan as a model writes it."""

    steps: list[StepForm] = Field(min_length=1)


class ReflectionForm(BaseModel):
    """What the model finds when it looks at the results of a plan."""

    reason: str = Field(description="what is there and what is missing, in one or two sentences")
    satisfied: bool = Field(description="true when the results are enough to answer the task")


def references(*values: JsonValue) -> list[str]:
    """Return the ids of the steps that values refer to, each once, in order."""
    text = json.dumps(values, ensure_ascii=False)
    return list(dict.fromkeys(match[1] for match in _REFERENCE.finditer(text)))


def misspelled(*values: JsonValue) -> str | None:
    """Return the beginning of what looks like a reference and is none, or None."""
    found = _LOOKS_LIKE_ONE.search(_REFERENCE.sub("|", json.dumps(values, ensure_ascii=False)))
    return None if found is None else found[0]


def renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """Return the value with references to other steps; a step that is not in `names` keeps its name."""

    def rename(match: re.Match[str]) -> str:
        return f"{{{{from_step:{names.get(match[1], match[1])}{':summary' if match[2] else ''}}}}}"

    return _mapped(value, lambda text: _REFERENCE.sub(rename, text))


def resolved(value: JsonValue, results: Mapping[str, JsonValue]) -> JsonValue:
    """Return the value with results in place of references; a text that is nothing but one becomes the result itself.

    A step begins when all that it refers to is completed, so that there is a result for each.
    """

    def result_of(match: re.Match[str]) -> JsonValue:
        result = results[match[1]]
        return as_text(result)[:SUMMARY] if match[2] else result

    def resolve(text: str) -> JsonValue:
        whole = _REFERENCE.fullmatch(text.strip())
        return result_of(whole) if whole else _REFERENCE.sub(lambda match: as_text(result_of(match)), text)

    return _mapped(value, resolve)


def _mapped(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """Return the value with its texts changed; it is no deeper than JSON may be, see `repair/lenient_json.py`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    return value
