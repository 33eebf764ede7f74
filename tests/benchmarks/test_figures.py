"""The paired difference and its interval, on cases whose answer is known."""

from __future__ import annotations

import random

import pytest

from benchmarks.real_tasks.figures import Difference, paired_difference, percentile

EVERY_TASK = [(f"t{task}", 1.0, 0.0) for task in range(30) for _ in range(5)]
OFTEN = [("often", 1.0, 0.0)] * 9 + [("once", 0.0, 0.0)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (EVERY_TASK, Difference(1.0, 1.0, 1.0, tasks=30, pairs=150)),
        (OFTEN, Difference(0.5, 0.0, 1.0, tasks=2, pairs=10)),
    ],
)
def test_a_difference_is_over_tasks(pairs: list[tuple[str, float, float]], expected: Difference):
    """A difference that every task shows has no width; a task that was run more often counts no more than another."""
    assert paired_difference(pairs, 200) == expected


def test_repeats_of_a_task_are_no_further_evidence():
    """The same results five times over leave the interval as it is: what varies is the task."""
    draw = random.Random(1)
    once = [(f"t{task}", float(draw.random() < 0.7), float(draw.random() < 0.5)) for task in range(40)]
    single, repeated = paired_difference(once, 2000), paired_difference(once * 5, 2000)
    assert (single.mean, single.low, single.high) == (repeated.mean, repeated.low, repeated.high)
    assert (single.pairs, repeated.pairs) == (40, 200)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """Of 200 made-up benchmarks with 38 tasks and a true difference of 0.1, about 95 % have it in their interval."""
    draw = random.Random(3)
    held = 0
    for _ in range(200):
        pairs = []
        for task in range(38):
            base = draw.betavariate(1, 1) * 0.9
            pairs += [(str(task), float(draw.random() < base + 0.1), float(draw.random() < base)) for _ in range(5)]
        found = paired_difference(pairs, 200)
        held += found.low <= 0.1 <= found.high
    assert 0.88 <= held / 200 <= 0.99


def test_no_pairs_are_no_result():
    """Nothing is said about nothing."""
    with pytest.raises(ValueError, match="no pairs"):
        paired_difference([])


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (1.0, 5), (0.5, 3), (0.25, 2), (0.125, 1.5)])
def test_percentiles_are_interpolated(share: float, value: float):
    """As everywhere: 0 is the smallest, 1 the largest, between them a straight line."""
    assert percentile([1, 2, 3, 4, 5], share) == value
