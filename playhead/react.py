"""ReAct in one call: `await react.run("How high is it?", llm="openai/gpt-4o-mini", tools=[lookup], max_steps=5)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.kernel import checks
from playhead.planners import Limits, Planner, PlannerResult, run_planner, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.models.base import Model
    from playhead.planners import Filter, Session, Tools
    from playhead.trace.types import Prices


async def run(  # noqa: PLR0913 - one call says all
    goal: str,
    *,
    llm: str | Model,
    tools: Tools = None,
    tool_filter: Filter = None,
    session: Session | None = None,
    max_steps: int = 10,
    max_cost_usd: float | None = None,
    max_tokens: int | None = None,
    max_wall_time_s: float | None = None,
    max_tokens_per_step: int = 1024,
    temperature: float = 0.0,
    prices: Mapping[str, Prices] | None = None,
    **options: Any,  # noqa: ANN401 - those of Agent
) -> PlannerResult:
    """Think, act and observe until the goal is reached or a limit is.

    Args:
        goal: what to do.
        llm: `provider/model`, or anything that is a `Model`.
        tools: None for all registered tools, a number for the newest so many, a list of tools and of names of registered
            ones, or a function without parameters that returns such a list.
        tool_filter: words, or a function of a tool's metadata, which say what of these is offered.
        session: a conversation to go on with; a new one by default.
        max_steps: turns at most.
        max_cost_usd: US dollars at most; None: no limit.
        max_tokens: tokens at most, prompts and answers together; None: no limit.
        max_wall_time_s: seconds at most; None: no limit. What is in flight then is cancelled.
        max_tokens_per_step: tokens of one answer at most.
        temperature: sampling temperature.
        prices: US dollars per token by model, where the adapter does not know them.
        options: further arguments of `Agent`, such as `trace=` and `approver=`.

    Raises:
        UsageError: an argument is not valid, or a key is missing.
    """
    return await run_planner(
        goal,
        Planner(run, "reactive", max_iterations=checks.at_least("max_steps", max_steps, 1)),
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
