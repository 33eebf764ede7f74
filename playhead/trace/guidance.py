"""What a profile says besides numbers: the words for a model, and how old turns are put together."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Synthesis = Literal["fast", "deep", "off"]
"""How old turns are put together: by rule (`fast`), by a question to the model (`deep`), or not at all (`off`)."""
Words = Annotated[str, Field(max_length=2000)]
"""Something that the kernel says to a model."""


class Guidance(BaseModel):
    """What a model of a tier is told beside the task; an empty text is not told."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow", defer_build=True)

    tool_guidance: Words = ""
    """At the end of the system prompt, when there are tools."""
    task_framing: Words = ""
    """After the task, before the first turn."""
    error_recovery: Words = ""
    """After a turn in which a call failed."""
