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
    """Redact every tool result before it reaches the model, `RunResult.steps` or the output of a run without an answer.

    Both tags with results are covered, and the hooks are required: if `redact` raises, the run ends without an output.
    The trace still holds the tool's original result; pass the same function to `Agent(redact=[…])` to keep it out of
    the trace as well.
    """

    def for_model(message: Message, _: ToolResultContext) -> Message:
        return message.model_copy(update={"content": redact(str(message.content))})

    def for_observers(step: Step, _: ToolResultContext) -> Step:
        return replace(step, content=redact(step.content))

    def block(harness: Harness) -> None:
        harness.on("message.tool-result", for_model, name=name, required=True)
        harness.on("observation.tool-result", for_observers, name=name, required=True)

    return block
