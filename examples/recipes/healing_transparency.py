"""Show what was put right: results of calls that were healed are marked, and calls that could not be healed are told of.

Healing puts right a malformed call (a misspelt tool, a number given as text) before it runs.

Limits: Playhead does not heal yet; this is written for the part that will, and nothing calls it until then except a
strategy of your own (`main` has one that stands in). The mark is for people: it stands in `RunResult.steps`, and so in
the output of a run that ends without an answer. The model is not told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead import Agent, register_strategy
from playhead.kernel.state import Step, transition
from playhead.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose import Block, Harness, NudgeContext, ToolResultContext
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState


def healing_transparency(tell: Callable[[str], object]) -> Block:
    """Return a block that marks healed results, and calls `tell` with a line for each healing that failed."""

    def failed(nudge: str, context: NudgeContext) -> None:
        turn = "" if context.iteration is None else f" in turn {context.iteration}"
        tell(f"{context.severity}: healing failed{turn}: {nudge}")

    def marked(step: Step, context: ToolResultContext) -> Step | None:
        return replace(step, content=f"[healed] {step.content}") if context.healed else None

    def block(harness: Harness) -> None:
        harness.tap("nudge.healing-failure", failed, name="healing-failures")
        harness.on("observation.tool-result", marked, name="healing-marks")

    return block


async def stand_in(state: KernelState, session: Session) -> KernelState:
    """Do what a strategy with healing will do: one call fails to be healed, one is healed, one needs no healing."""
    session.enter_iteration(0)
    why = "`lokup` is no tool, and none has a name like it"
    thread = await session.messages.nudge(state.thread, "healing-failure", why, severity="warn")
    steps: list[Step] = []
    for number, healed in enumerate((True, False)):
        call_id = f"call_0_{number}"
        step = Step("observation", "4,180 feet", 0, tool="lookup", call_id=call_id, ok=True)
        details = {"tool": "lookup", "call_id": call_id, "healed": healed, "duration_ms": 1.0}
        steps.append(await session.offer("observation.tool-result", step, key=call_id, **details))
    return transition(state, thread=thread, steps=tuple(steps), output="4,180 feet")


def main() -> None:
    """Print the failure that was told of, and the steps with their marks."""
    register_strategy("healing-stand-in", stand_in)
    blocks = [healing_transparency(print)]
    agent = Agent(ScriptedModel([]), strategy="healing-stand-in", compose=blocks, trace=None)
    for step in agent.run_sync("How high is Mount Zed?").steps:
        print(f"{step.call_id}: {step.content}")


if __name__ == "__main__":
    main()
