"""Reflexion in one call: `await reflexion.run("Write a summary.", llm="openai/gpt-4o-mini", tools=[read])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.kernel import checks
from playhead.planners import Limits, Planner, PlannerResult, run_planner, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.models.base import Model
    from playhead.planners import Filter, Session, Tools
    from playhead.trace.events import Critique
    from playhead.trace.types import Prices
    from playhead.trace.values import JsonValue


async def run(  # noqa: PLR0913 - one call says all
    goal: str,
    *,
    llm: str | Model,
    tools: Tools = None,
    tool_filter: Filter = None,
    session: Session | None = None,
    max_steps: int = 10,
    max_outer_iterations: int = 3,
    max_cost_usd: float | None = None,
    max_tokens: int | None = None,
    max_wall_time_s: float | None = None,
    max_tokens_per_call: int = 1024,
    temperature: float = 0.0,
    prices: Mapping[str, Prices] | None = None,
    settings: dict[str, JsonValue] | None = None,
    **options: Any,  # noqa: ANN401 - those of Agent
) -> PlannerResult:
    """Answer under a critic, until it accepts the answer; what it said is in `session.metadata["critiques"]`.

    Args:
        goal: what to do.
        llm: as for `react.run`, like everything that is not said here.
        tools: as for `react.run`.
        tool_filter: as for `react.run`.
        session: as for `react.run`.
        max_steps: turns for one answer at most.
        max_outer_iterations: answers at most; when the critic accepts none, `stopped` is `max_steps`.
        max_cost_usd: as for `react.run`.
        max_tokens: as for `react.run`.
        max_wall_time_s: as for `react.run`; for all answers together.
        max_tokens_per_call: tokens of one reply at most.
        temperature: as for `react.run`.
        prices: as for `react.run`.
        settings: further settings of the strategy `reflexion`.
        options: as for `react.run`.

    Raises:
        UsageError: an argument is not valid, or a key is missing.
    """
    steps = checks.at_least("max_steps", max_steps, 1)
    answers = checks.at_least("max_outer_iterations", max_outer_iterations, 1)
    planner = Planner(
        run,
        "reflexion",
        {**(settings or {}), "max_retries": answers - 1, "kernel_max_iterations": steps},
        max_iterations=answers * (steps + 1),  # an answer that took all its turns has one more to be given
        notes={"critique:critiques": _critique},
    )
    return await run_planner(
        goal,
        planner,
        llm=llm,
        tools=tools,
        tool_filter=tool_filter,
        session=session,
        limits=Limits(max_cost_usd, max_tokens, max_wall_time_s, prices),
        parameters={"temperature": temperature, "max_tokens": max_tokens_per_call},
        options=options,
    )


def run_sync(goal: str, **arguments: Any) -> PlannerResult:  # noqa: ANN401 - those of run
    """Run a goal and wait for the result; takes and raises what `run` does."""
    return wait_for(lambda: run(goal, **arguments))


def _critique(event: Critique) -> JsonValue:
    return {"text": event.text, "satisfied": event.satisfied, "score": event.score}
