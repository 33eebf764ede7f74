"""One call for one task: `await react("How high is it?", "openai/gpt-4o-mini", tools=[lookup], max_tokens=50_000)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.agent.agent import Agent
from playhead.compose.killswitches import budget_limit, timeout_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.agent.agent import ToolLike
    from playhead.agent.result import RunResult
    from playhead.compose.durations import Duration
    from playhead.compose.harness import Block
    from playhead.kernel.models.base import Model
    from playhead.trace.types import Content


@dataclass(frozen=True, slots=True)
class OneCall:
    """Run one task with a fixed strategy, within limits. For anything more, use `Agent`."""

    strategy: str
    """The strategy's name."""

    async def __call__(  # noqa: PLR0913 - all are keywords
        self,
        task: Content,
        model: str | Model,
        *,
        tools: Sequence[ToolLike] = (),
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        max_time: Duration | None = None,
        **options: Any,  # noqa: ANN401 - those of Agent
    ) -> RunResult:
        """Run a task to its end.

        Args:
            task: the task.
            model: `provider/model`, or any object that implements `Model`.
            tools: functions made with `@tool`, plain typed functions, or agents.
            max_tokens: the maximum number of tokens, prompts and answers together.
            max_cost_usd: the maximum cost in US dollars.
            max_time: the maximum duration, in seconds or as a text such as `"5m"`.
            options: further arguments of `Agent`, such as `max_iterations=`, `context=` and `trace=`.

        Returns:
            The `RunResult`. If a limit was reached, `terminated_by` names it and `output` is the best answer so far.

        Raises:
            UsageError: an argument is not valid, or a key is missing.
            RunError: the run failed; it carries the partial result.
        """
        limits: dict[str, Any] = {"max_tokens": max_tokens, "max_cost_usd": max_cost_usd, "max_time": max_time}
        return await self._agent(model, tools=tools, **limits, **options).run(task)

    def sync(self, task: Content, model: str | Model, **arguments: Any) -> RunResult:  # noqa: ANN401 - those of a call
        """Run a task and block until the result. Arguments and errors are those of the async call."""
        return self._agent(model, **arguments).run_sync(task)

    def _agent(self, model: str | Model, *, compose: Sequence[Block] = (), **options: Any) -> Agent:  # noqa: ANN401
        budget = {name: options.pop(name, None) for name in ("max_tokens", "max_cost_usd")}
        max_time = options.pop("max_time", None)
        limits = [budget_limit(**budget)] if any(each is not None for each in budget.values()) else []
        if max_time is not None:
            limits.append(timeout_after(max_time))
        return Agent(model, strategy=self.strategy, compose=[*compose, *limits], **options)


react: Final = OneCall("reactive")
"""Reason, act and observe in a loop until there is an answer."""
plan_and_execute: Final = OneCall("plan-execute-reflect")
"""Make a plan, execute it, and replan when a step fails."""
reflexion: Final = OneCall("reflexion")
"""Answer, and revise the answer until a critic accepts it."""
