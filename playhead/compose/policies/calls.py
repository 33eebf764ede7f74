"""Policies about calls: which tools an agent has to use, and how often it may."""

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
    """Let an agent end by itself only after these tools have returned a result.

    Args:
        tools: their names; in a dict, how many results of each.
        retries: how often a model that answers before that is sent back; then its answer is taken, as `required_tools_missing`.
        max_failures: failures in a row, with the same error, of one of them that end the run as `required_tools_missing`;
            None: no number does.
        infer: ask the model first which tools the task requires, beside those.
    """
    named = (tools,) if isinstance(tools, str) else tools
    return Policy("require_tools", {"tools": named, "retries": retries, "max_failures": max_failures, "infer": infer})


def tool_budgets(budgets: Mapping[str, int]) -> Policy:
    """Give each tool so many calls: one more is refused and the run goes on, where the killswitch `tool_limit` ends it.

    A required tool has two more than it needs, unless `Execution(max_parallel=1)`; what is given here counts before that.
    """
    return Policy("tool_budgets", {"budgets": budgets})
