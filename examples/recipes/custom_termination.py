"""Let the model go on until its answer passes a check of yours, for a number of tries.

A hook before `complete` returns `Resume(what is missing)`: the model is told, and the loop goes on. `Stop` there would end
the run. When the tries are used up the run ends as `check_failed`: the last answer is kept, and `success` is False.

Limits: only an answer of the model's can be sent back; a run that ended for another reason (turns used up, a killswitch)
stays ended. Each try takes turns of `max_iterations`. A check that raises is passed over, and the answer stands. Only the
agent itself is checked, not the agents that it calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import Agent
from playhead.compose import Resume, Stop
from playhead.testing import ScriptedModel, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose import Block, Harness, PhaseContext


def until(check: Callable[[Any], str | None], *, tries: int = 3) -> Block:
    """Return a block that sends an answer back until a check passes.

    Args:
        check: takes the answer; returns None when it is good, else what the model is to be told.
        tries: how many answers are looked at.
    """

    def decide(context: PhaseContext) -> Resume | Stop | None:
        problem = None if context.state is None else check(context.state.output)
        if problem is None:
            return None
        looked_at = context.notes["looked at"] = context.notes.get("looked at", 0) + 1
        if looked_at < tries:
            return Resume(problem)
        return Stop(f"after {tries} tries: {problem}", terminated_by="check_failed")

    def block(harness: Harness) -> None:
        harness.before("complete", decide, name="until", inherit=False)

    return block


def names_a_source(answer: str) -> str | None:
    """Return what is wrong with an answer that names no source."""
    return None if "Source:" in answer else "Name your source in a line that begins with `Source:`."


def main() -> None:
    """Print how a run ends that gets better, and one that does not."""
    for script in (["4,180 feet.", "4,180 feet.\nSource: the table"], ["4,180 feet."] * 2):
        model = ScriptedModel([text(answer) for answer in script])
        result = Agent(model, compose=[until(names_a_source, tries=2)], trace=None).run_sync("How high is Mount Zed?")
        print(f"{result.terminated_by}, success {result.success}: {result.output!r}")
        print("  the model was told:", model.requests[1].messages[-1].content)


if __name__ == "__main__":
    main()
