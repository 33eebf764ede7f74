"""The order of steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.plan.types import Plan, PlanStep
from playhead.kernel.plan.waves import blocked, compute_waves, find_cycle, needs, turned, waiting_for


def step(number: int, *needed: int, status: Any = "pending") -> PlanStep:
    """Return an analysis that needs others: every second one by reference."""
    named = tuple(f"s{each}" for each in needed[::2])
    text = " ".join(f"{{{{from_step:s{each}}}}}" for each in needed[1::2])
    return PlanStep(id=f"s{number}", type="analysis", instruction=text, depends_on=named, status=status)


def ids(waves: list[list[PlanStep]]) -> list[list[str]]:
    """Return the ids in waves."""
    return [[each.id for each in wave] for wave in waves]


def test_a_wave_is_what_may_begin_together():
    """In `dag` mode steps begin as soon as what they need is completed; in `linear` mode one after another."""
    steps = [step(1), step(2), step(3, 1, 2), step(4, 1), step(5, 3)]
    assert ids(compute_waves(steps, "dag")) == [["s1", "s2"], ["s3", "s4"], ["s5"]]
    assert ids(compute_waves(steps, "linear")) == [["s1"], ["s2"], ["s3"], ["s4"], ["s5"]]


def test_completed_steps_are_in_no_wave():
    """What is completed never runs again, and what needs it may begin."""
    steps = [step(1, status="completed"), step(2, 1), step(3, status="skipped"), step(4, 3), step(5, 4)]
    for mode in ("dag", "linear"):
        assert ids(compute_waves(steps, mode)) == [["s2"]]
        assert blocked(Plan("p", "goal", mode).with_steps(steps)) == {"s4": "s3", "s5": "s4"}


def test_a_cycle_is_found():
    """The steps of a circle are named, in its order, and no others."""
    steps = [step(1), step(2, 1, 4), step(3, 2), step(4, 3), step(5, 4)]
    assert find_cycle(steps) == ["s2", "s4", "s3", "s2"]
    assert find_cycle([step(1, 1)]) == ["s1", "s1"]
    assert find_cycle([step(1), step(2, 1)]) is None
    assert ids(compute_waves(steps, "dag")) == [["s1"]]


GRAPHS = st.integers(1, 8).flatmap(
    lambda size: st.lists(st.lists(st.integers(1, size + 1), max_size=3, unique=True), min_size=size, max_size=size)
)
STATUSES = st.lists(st.sampled_from(["pending", "completed", "failed", "skipped"]), min_size=8, max_size=8)


@given(GRAPHS, STATUSES, st.sampled_from(["dag", "linear"]))
def test_no_step_begins_before_what_it_needs(graph: list[list[int]], statuses: list[Any], mode: Any):
    """In every plan each pending step is in one wave after all that it needs, or waits in vain for one that is named."""
    steps = [step(number, *needed, status=statuses[number - 1]) for number, needed in enumerate(graph, 1)]
    waves = compute_waves(steps, mode)
    done = {each.id for each in steps if each.status == "completed"}
    for wave in waves:
        assert all(each.status == "pending" and done.issuperset(needs(each)) for each in wave)
        done |= {each.id for each in wave}
    in_vain = blocked(Plan("p", "goal", mode).with_steps(steps))
    assert sorted(in_vain) == sorted(each.id for each in steps if each.status == "pending" and each.id not in done)
    assert mode == "linear" or not done & set(in_vain.values())


@given(GRAPHS, st.sets(st.integers(1, 8)))
def test_what_waits_for_a_failed_step_is_what_its_failure_blocked(graph: list[list[int]], failing: set[int]):
    """Looking at the failed steps alone finds the same as looking at the whole plan before and after."""
    steps = [step(number, *needed) for number, needed in enumerate(graph, 1)]
    plan = Plan("p", "goal", "dag").with_steps(steps)
    before, may_begin = set(blocked(plan)), compute_waves(steps, "dag")[:1]
    failed = [each.id for wave in may_begin for each in wave if int(each.id[1:]) in failing]
    for each in failed:
        plan.change(each, status="failed")
    found = waiting_for(plan, failed, turned({each.id: needs(each) for each in steps}))
    assert set(found) | before == set(blocked(plan)) | (set(found) & before)
    assert all(needed in needs(plan.step(waiting)) for waiting, needed in found.items())


@given(GRAPHS)
def test_a_cycle_is_a_circle_of_needs(graph: list[list[int]]):
    """What is said to be a circle is one; where there is none, every step whose needs are there is in a wave."""
    steps = [step(number, *(each for each in needed if each <= len(graph))) for number, needed in enumerate(graph, 1)]
    cycle = find_cycle(steps)
    edges = {each.id: needs(each) for each in steps}
    if cycle is None:
        assert sum(map(len, compute_waves(steps, "dag"))) == len(steps)
    else:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(later in edges[earlier] for earlier, later in pairwise(cycle))


def test_long_plans_cost_linear_time():
    """A chain of thousands of steps is ordered at once."""
    steps = [step(1), *(step(number, number - 1) for number in range(2, 5_001))]
    assert len(compute_waves(steps, "dag")) == 5_000
    assert find_cycle([*steps, step(5_001, 5_002), step(5_002, 5_001)]) == ["s5001", "s5002", "s5001"]
