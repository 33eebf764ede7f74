"""Redaction of tool results, for the model and for the caller."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.contexts import ToolResultContext
    from playhead.compose.harness import Block, Harness
    from playhead.kernel.state import Step
    from playhead.trace.types import Message


def redact_results(redact: Callable[[str], str], *, name: str = "redact_results") -> Block:
    """Change every tool result before the model, `RunResult.steps` or the output of a run without an answer has it.

    Both tags that tell a result are covered, and the hooks are required: when `redact` raises, the run ends and nothing
    leaves. The trace still holds what the tool returned; `Agent(redact=[…])` with the same function keeps it out of
    there too.
    """

    def for_model(message: Message, _: ToolResultContext) -> Message:
        return message.model_copy(update={"content": redact(str(message.content))})

    def for_observers(step: Step, _: ToolResultContext) -> Step:
        return replace(step, content=redact(step.content))

    def block(harness: Harness) -> None:
        harness.on("message.tool-result", for_model, name=name, required=True)
        harness.on("observation.tool-result", for_observers, name=name, required=True)

    return block
