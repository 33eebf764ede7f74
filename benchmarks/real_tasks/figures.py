"""Rates, and the paired difference with its interval.

The difference is paired by task and seed: for each task, the share of its repeats that the kernel solved minus the share
that the bare loop solved; then the mean over tasks. Repeats of one task are no independent evidence, so the interval is a
cluster bootstrap: tasks are drawn with replacement, each with all of its repeats, as many as there are, 10,000 times, and
the interval is from the 2.5th to the 97.5th percentile of the means (Efron and Tibshirani 1993, chapter 13; Cameron, Gelbach
and Miller 2008 for clusters). It speaks of tasks like these on this model, and of no other.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DRAWS: Final = 10_000
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference."""

    mean: float
    """The kernel's rate minus the bare loop's, -1 to 1."""
    low: float
    high: float
    """The ends of its 95 % interval."""
    tasks: int
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not hold zero."""
        return self.low > 0 or self.high < 0


def paired_difference(pairs: Iterable[tuple[str, float, float]], draws: int = DRAWS) -> Difference:
    """Return the mean difference of pairs (task, kernel, bare loop) with its interval.

    Raises:
        ValueError: there are no pairs.
    """
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for task, kernel, bare in pairs:
        by_task[task].append(kernel - bare)
    if not by_task:
        raise ValueError("there are no pairs")
    clusters = [fmean(by_task[task]) for task in sorted(by_task)]
    low, high = bootstrap_interval(clusters, draws)
    return Difference(fmean(clusters), low, high, len(clusters), sum(map(len, by_task.values())))


def bootstrap_interval(values: Sequence[float], draws: int = DRAWS) -> tuple[float, float]:
    """Return the percentile interval of the mean; the same for the same values."""
    draw = random.Random(20_240_601)  # noqa: S311 - no secret
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(draws))
    tail = (1 - LEVEL) / 2
    return percentile(means, tail), percentile(means, 1 - tail)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which this share of an ordered sequence lies, interpolated."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
