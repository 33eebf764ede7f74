"""What is counted while runs are read, and what it comes to."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal

from playhead.diagnose import statistics_model as m
from playhead.trace.spending import Spent

_FEW: Final = 2


@dataclass(slots=True)
class ModelFigures:
    """What is counted of one model."""

    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    open: int = 0
    spent: Spent = field(default_factory=Spent)
    not_believed: str | None = None
    latencies: list[float] = field(default_factory=list)


@dataclass(slots=True)
class ToolFigures:
    """What is counted of one tool."""

    kind: Literal["function", "agent", "meta"] = "function"
    calls: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    durations: list[float] = field(default_factory=list)


@dataclass(slots=True)
class AgentFigures:
    """What is counted of one agent."""

    name: str = ""
    runs: int = 0
    iterations: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    spent: Spent = field(default_factory=Spent)
    endings: Counter[str] = field(default_factory=Counter)


def model_statistics(name: str, each: ModelFigures) -> m.ModelStatistics:
    """Return the figures of one model."""
    usage = each.spent.usage
    uncounted = usage.known(usage.total_tokens) is None
    return m.ModelStatistics(
        model=name,
        requests=each.requests,
        answers=len(each.latencies),
        failed=each.failed,
        cancelled=each.cancelled,
        retries=each.retries,
        unanswered=each.open,
        tokens_in=usage.known(usage.input_tokens),
        tokens_out=usage.known(usage.output_tokens),
        cache_read_tokens=None if uncounted else usage.cache_read_tokens,
        cache_write_tokens=None if uncounted else usage.cache_write_tokens,
        reasoning_tokens=None if uncounted else usage.reasoning_tokens,
        cost_usd=each.spent.priced_usd,
        cost_unknown=each.spent.unpriced + each.spent.untold,
        usage_unknown=usage.unknown or 0,
        latency=spread(each.latencies),
    )


def tool_statistics(name: str, each: ToolFigures) -> m.ToolStatistics:
    """Return the figures of one tool."""
    return m.ToolStatistics(
        tool=name,
        kind=each.kind,
        calls=each.calls,
        ok=each.ended["ok"],
        failed=each.ended["failed"],
        refused=each.ended["refused"],
        timeouts=each.ended["timeout"],
        cancelled=each.ended["cancelled"],
        unanswered=each.calls - sum(each.ended.values()),
        cached=each.marks["cached"],
        abandoned=each.marks["abandoned"],
        repeated=each.marks["repeated"],
        errors=dict(each.errors.most_common()),
        duration=spread(each.durations),
    )


def agent_statistics(owner: str, each: AgentFigures) -> m.AgentStatistics:
    """Return the figures of one agent."""
    usage = each.spent.usage
    return m.AgentStatistics(
        agent=each.name or owner.rpartition("/")[2],
        owner=owner,
        runs=each.runs,
        iterations=each.iterations,
        model_calls=each.model_calls,
        tool_calls=each.tool_calls,
        tokens_in=usage.known(usage.input_tokens),
        tokens_out=usage.known(usage.output_tokens),
        usage_unknown=usage.unknown or 0,
        endings=dict(each.endings.most_common()),
    )


def spread(values: list[float]) -> m.Spread:
    """Return how values are spread."""
    total = round(finite(sum(values)), 3)
    if not values:
        return m.Spread(count=0, total=total, median=None, p95=None, max=None)
    few = len(values) < _FEW
    p95 = values[0] if few else statistics.quantiles(values, n=20, method="inclusive")[-1]
    return m.Spread(
        count=len(values),
        total=total,
        median=_between(statistics.median(values), values),
        p95=_between(p95, values),
        max=max(values),
    )


def _between(value: float, values: list[float]) -> float:
    """Return a value between others; two that are absurdly large have no mean, then it is the largest."""
    return round(value, 3) if isfinite(value) else max(values)


def finite(value: float) -> float:
    """Return the number, or 0 for one that is none."""
    return value if isfinite(value) else 0.0
