"""Show what was put right: results of calls that were repaired are marked, and calls that could not be repaired are told of.

Repair reads a broken call (a misspelt tool, a number given as text) in one way before it runs; see docs/repair.md.

Limits: the mark is for people: it stands in `RunResult.steps`, and so in the output of a run that ends without an answer.
The model is told by a line of its own before the result, `(understood as …)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead import Agent, Context, tool
from playhead.testing import ScriptedModel, call, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose import Block, Harness, NudgeContext, ToolResultContext
    from playhead.kernel.state import Step


def repair_transparency(tell: Callable[[str], object]) -> Block:
    """Return a block that marks repaired results, and calls `tell` with a line for each repair that failed."""

    def failed(nudge: str, context: NudgeContext) -> None:
        turn = "" if context.iteration is None else f" in turn {context.iteration}"
        tell(f"{context.severity}: repair failed{turn}: {nudge}")

    def marked(step: Step, context: ToolResultContext) -> Step | None:
        return replace(step, content=f"[repaired] {step.content}") if context.repaired else None

    def block(harness: Harness) -> None:
        harness.tap("nudge.repair-failed", failed, name="failed-repairs")
        harness.on("observation.tool-result", marked, name="repair-marks")

    return block


@tool(read_only=True)
def height(mountain: str) -> str:
    """Return the height of a mountain."""
    return f"{mountain}: 4,180 feet"


def main() -> None:
    """Print the failure that was told of, and the results with their marks."""
    model = ScriptedModel(
        [
            call("climb", mountain="Mount Zed"),  # no tool: it is refused, and the model is told why
            call("Height", Mountain="Mount Zed"),  # read as height(mountain=…)
            call("height", mountain="Mount Zed"),
            text("4,180 feet"),
        ]
    )
    agent = Agent(
        model, tools=[height], compose=[repair_transparency(print)], context=Context(rationale=False), trace=None
    )
    for step in agent.run_sync("How high is Mount Zed?").steps:
        if step.type == "observation":
            print(f"{step.call_id}: {step.content}")


if __name__ == "__main__":
    main()
