"""The paired difference and its interval, on cases whose answer is known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.real_tasks.figures import Difference, bootstrap_interval, paired_difference, percentile


def test_a_difference_that_every_task_shows_has_no_width():
    """Each task is solved by one and never by the other: 1, with no doubt within these tasks."""
    pairs = [(f"t{task}", 1.0, 0.0) for task in range(30) for _ in range(5)]
    assert paired_difference(pairs, 200) == Difference(1.0, 1.0, 1.0, tasks=30, pairs=150)


def test_the_mean_is_over_tasks_and_not_over_pairs():
    """A task that was run more often counts no more than another."""
    pairs = [("often", 1.0, 0.0)] * 9 + [("once", 0.0, 0.0)]
    assert paired_difference(pairs, 10).mean == 0.5


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


def test_the_same_pairs_give_the_same_interval():
    """The draws are seeded: the printed figure can be had again."""
    pairs = [(f"t{task}", float(task % 3 == 0), float(task % 2)) for task in range(20)]
    assert paired_difference(pairs) == paired_difference(list(reversed(pairs)))


def test_no_pairs_are_no_result():
    """Nothing is said about nothing."""
    with pytest.raises(ValueError, match="no pairs"):
        paired_difference([])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_the_interval_is_within_the_values(values: list[float]):
    """It is ordered, and no mean of a draw lies outside of what was measured."""
    low, high = bootstrap_interval(values, 50)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (1.0, 5), (0.5, 3), (0.25, 2), (0.125, 1.5)])
def test_percentiles_are_interpolated(share: float, value: float):
    """As everywhere: 0 is the smallest, 1 the largest, between them a straight line."""
    assert percentile([1, 2, 3, 4, 5], share) == value
