"""Plan-and-execute in one call: `await plan_and_execute.run("Compare both.", llm="openai/gpt-4o-mini", tools=[lookup])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.kernel import checks
from playhead.planners import Limits, Planner, PlannerResult, run_planner, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.models.base import Model
    from playhead.planners import Filter, Session, Tools
    from playhead.trace.events import PlanCreated
    from playhead.trace.types import Prices
    from playhead.trace.values import JsonValue


async def run(  # noqa: PLR0913 - one call says all
    goal: str,
    *,
    llm: str | Model,
    tools: Tools = None,
    tool_filter: Filter = None,
    session: Session | None = None,
    max_steps: int = 20,
    max_replans: int = 3,
    max_cost_usd: float | None = None,
    max_tokens: int | None = None,
    max_wall_time_s: float | None = None,
    max_tokens_per_step: int = 1024,
    temperature: float = 0.0,
    prices: Mapping[str, Prices] | None = None,
    settings: dict[str, JsonValue] | None = None,
    **options: Any,  # noqa: ANN401 - those of Agent
) -> PlannerResult:
    """Plan, carry the plan out, and plan anew where that fails; the plans are in `session.metadata["plans"]`.

    Args:
        goal: what to do.
        llm: as for `react.run`, like everything that is not said here.
        tools: as for `react.run`.
        tool_filter: as for `react.run`.
        session: as for `react.run`.
        max_steps: steps at most, over all plans; the answer is one turn more.
        max_replans: how often steps that failed are replaced.
        max_cost_usd: as for `react.run`.
        max_tokens: as for `react.run`.
        max_wall_time_s: as for `react.run`.
        max_tokens_per_step: as for `react.run`.
        temperature: as for `react.run`.
        prices: as for `react.run`.
        settings: further settings of the strategy `plan-execute-reflect`, such as `{"plan_mode": "dag"}`.
        options: as for `react.run`.

    Raises:
        UsageError: an argument is not valid, or a key is missing.
    """
    planner = Planner(
        run,
        "plan-execute-reflect",
        {**(settings or {}), "max_replans": checks.at_least("max_replans", max_replans, 0)},
        max_iterations=checks.at_least("max_steps", max_steps, 1) + 1,
        notes={"plan-created:plans": _plan},
    )
    return await run_planner(
        goal,
        planner,
        llm=llm,
        tools=tools,
        tool_filter=tool_filter,
        session=session,
        limits=Limits(max_cost_usd, max_tokens, max_wall_time_s, prices),
        parameters={"temperature": temperature, "max_tokens": max_tokens_per_step},
        options=options,
    )


def run_sync(goal: str, **arguments: Any) -> PlannerResult:  # noqa: ANN401 - those of run
    """Run a goal and wait for the result; takes and raises what `run` does."""
    return wait_for(lambda: run(goal, **arguments))


def _plan(event: PlanCreated) -> JsonValue:
    return list(event.steps)
