"""What a profile says besides numbers: the words for a model, and how old turns and schemas are sent."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Synthesis = Literal["auto", "fast", "deep", "off", "custom"]
"""How old turns are put together: by rule (`fast`), by a question to the model (`deep`), by rule unless that would leave out
results (`auto`), by a function of the caller's (`custom`), or not at all (`off`)."""
SchemaDetail = Literal["full", "names-and-types", "names-only"]
"""How much of a tool's schema a model is sent."""
Words = Annotated[str, Field(max_length=2000)]
"""Something that the kernel says to a model."""


class Guidance(BaseModel):
    """What a model of a tier is told beside the task; an empty text is not told."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow", defer_build=True)

    prompt_patch: Words = ""
    """At the end of the system prompt."""
    tool_guidance: Words = ""
    """After that, when there are tools."""
    task_framing: Words = ""
    """After the task, before the first turn."""
    continuation_hint: Words = ""
    """After each turn, while required tools have not been called; their names follow it."""
    error_recovery: Words = ""
    """After a turn in which a call failed; `{task}` in it stands for the task."""
    synthesis_prompt: Words = ""
    """Once, when the last required tool has returned what it has to."""
    after_result: Words = ""
    """Below each result, also below those of the examples; `{task}` in it stands for the task."""
    no_call: Words = ""
    """Once, in answer to an answer before any call, where there are tools."""
    repeated_task: Words = ""
    """Once, in answer to an answer that only repeats the task."""
    unfounded_number: Words = ""
    """Once, in answer to a number that neither the task nor a call holds; `{numbers}` in it stands for them."""
    quality_check: Words = ""
    """Once, in answer to the first answer: it costs a request, so no tier has one of its own accord."""
