"""Policies about calls: the tools that an agent must use, and how often it may call each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.compose.policies.base import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def require_tools(
    tools: str | Sequence[str] | Mapping[str, int] = (),
    *,
    retries: int = 2,
    max_failures: int | None = 3,
    infer: bool = False,
) -> Policy:
    """Accept an answer only after these tools have returned a result.

    Args:
        tools: their names; a dict also gives the number of results of each.
        retries: how often an earlier answer is sent back; then it is taken, and the run ends as `required_tools_missing`.
        max_failures: consecutive failures of one tool with the same error that end the run as `required_tools_missing`;
            None for no limit.
        infer: first ask the model which further tools the task requires.
    """
    named = (tools,) if isinstance(tools, str) else tools
    return Policy("require_tools", {"tools": named, "retries": retries, "max_failures": max_failures, "infer": infer})


def tool_budgets(budgets: Mapping[str, int]) -> Policy:
    """Limit the calls of each tool: a further call is refused and the run continues; the killswitch `tool_limit` ends it.

    A required tool may be called twice more than required, unless `Execution(max_parallel=1)`; a budget given here wins.
    """
    return Policy("tool_budgets", {"budgets": budgets})
