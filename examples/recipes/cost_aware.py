"""Stop a run when it has cost too much, and see what each judgement of the strategy cost.

Limits: this counts after a call, so it cannot promise that the ceiling is kept: a run may exceed it by all that one turn
costs, sub-agents included, which are counted when they come back. The killswitch `budget_limit` sets
the worst case aside before it is spent (docs/killswitches/budget-limit.md). A call whose price is not known ends the run: there is no ceiling to
keep then. `control.strategy-evaluated` is emitted by a later part too; `main` emits one in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from examples.tools import lookup
from playhead import Agent
from playhead.compose import Stop
from playhead.testing import ScriptedModel, call

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose import Block, Harness, HookContext, PhaseContext
    from playhead.trace.types import Completion, Request
    from playhead.trace.values import JsonValue

SWITCH: Final = "cost-ceiling"


def cost_ceiling(usd: float) -> Block:
    """Return a block that ends the run in order, before its next turn, when it has cost more than this many US dollars."""

    def check(context: PhaseContext) -> Stop | None:
        spent = 0.0 if context.state is None else context.state.cost_usd
        if spent is None:
            return Stop("what a call costs is not known", switch=SWITCH, terminated_by="cost_ceiling")
        if spent <= usd:
            return None
        return Stop(f"{spent:.4f} US dollars, over {usd:.4f}", switch=SWITCH, terminated_by="cost_ceiling")

    def block(harness: Harness) -> None:
        # Not for agents below: what they cost is part of what this one costs.
        harness.before("think", check, name=SWITCH, inherit=False)

    return block


def report_evaluations(tell: Callable[[str], object]) -> Block:
    """Return a block that calls `tell` with each judgement of the strategy beside the cost up to then."""

    def report(evaluation: dict[str, JsonValue], context: HookContext) -> None:
        spent = context.state.cost_usd if context.state else 0.0
        cost = "unknown" if spent is None else f"{spent:.4f} US dollars"
        tell(
            f"{context.strategy}: score {evaluation.get('score')}, {evaluation.get('recommended_action')}; cost {cost}"
        )

    def block(harness: Harness) -> None:
        harness.tap("control.strategy-evaluated", report, name="report-evaluations")

    return block


class PricedModel(ScriptedModel):
    """A scripted model of which every answer costs half a cent."""

    async def complete(self, request: Request) -> Completion:
        """Return the next turn, and what it costs."""
        return replace(await super().complete(request), cost_usd=0.005)


def evaluated(harness: Harness) -> None:
    """Emit a judgement, as a strategy will."""
    harness.emit("control.strategy-evaluated", {"score": 0.4, "recommended_action": "continue"})


def main() -> None:
    """Print how a run ends that would look things up for ever."""
    model = PricedModel([call("lookup", key="Mount Zed")] * 10)
    agent = Agent(
        model, tools=[lookup], compose=[cost_ceiling(0.012), report_evaluations(print), evaluated], trace=None
    )
    result = agent.run_sync("How high is Mount Zed?")
    print(f"{result.terminated_by} by {result.terminated_source}: {result.terminated_because}")
    print(f"after {len(model.requests)} answers, with: {result.output}")


if __name__ == "__main__":
    main()
