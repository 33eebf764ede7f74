"""How many tokens each part of a request may have: the past, the schemas of the tools, what is left for all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.trace.types import ContextProfile


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The tokens that a model can read, by what they are for."""

    total: int
    """All of them."""
    tool_schemas: int
    """For the tools that are offered."""
    step_history: int
    """For the thread; from there on old turns are put together."""
    remaining: int
    """Left for the answer, and for results yet to come."""


def allocate_budget(
    total: int, profile: ContextProfile, iteration: int, max_iterations: int, *, tool_schemas: int = 0
) -> TokenBudget:
    """Return what the tokens of a request are for.

    The fewer turns are still to come, the more of the window the past may have: from `soft_ratio` at the first turn to
    `hard_ratio` at the last. The tools' schemas are a part of that.

    Args:
        total: tokens that the model can read, 0 or more.
        profile: what says the shares.
        iteration: the turn, from 0.
        max_iterations: turns at most.
        tool_schemas: tokens of the tools' schemas; see `estimate_tokens`.
    """
    gone = min(max(iteration, 0) / max(max_iterations, 1), 1.0)
    share = profile.soft_ratio + max(profile.hard_ratio - profile.soft_ratio, 0.0) * gone
    schemas = min(tool_schemas, total)
    history = max(int(share * total) - schemas, 0)
    return TokenBudget(total, schemas, history, total - schemas - history)
