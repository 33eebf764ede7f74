"""What each strategy looks like as spans."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.kernel.strategies.base import list_strategies
from tests.spans.spans import RUNS, check_sound, golden, spans_in, tree_of, trees_in

TREES = trees_in(Path(__file__).with_name("trees.txt"))


@pytest.mark.parametrize("run", RUNS)
def test_every_golden_run_is_sound(run: str) -> None:
    """Whatever a strategy did: one root, parents that are there, times inside one another, a span for each call."""
    records = golden(run).records
    spans = spans_in(records)
    check_sound(records, spans)
    assert tree_of(spans) == TREES.get(run, tree_of(spans))


def test_every_strategy_has_a_tree() -> None:
    """Of each strategy with spans of its own, somebody looked at the tree of a run."""
    seen = {strategy for strategy in list_strategies() if any(name.startswith(strategy) for name in TREES)}
    assert set(list_strategies()) - seen == {"autonomous"}
    assert TREES.keys() <= set(RUNS)


def test_what_phases_show() -> None:
    """An attempt shows its answer and what the critic said of it; a step its own definition and its result."""
    attempts = [span for span in spans_in(golden("reflexion-improved").records) if span.name.startswith("attempt")]
    found = [(span.attributes or {}) for span in attempts]
    assert [each["output.value"] for each in found] == ["4,180", "4,180 feet, and 61 metres."]
    assert '"satisfied":false,"score":0.3,"critique":"- The lake is missing."' in str(found[0]["metadata"])
    steps = [span for span in spans_in(golden("plan-execute-reflect-mended").records) if span.name.startswith("step")]
    shown = [(span.attributes or {}) for span in steps]
    assert [each["output.value"] for each in shown] == ["error: nothing is known of Mount Zet", "4,180 feet"]
    assert [str(each["input.value"])[:10] for each in shown] == ['{"id":"s1"', '{"id":"s3"']
    assert steps[0].status.description == "error: nothing is known of Mount Zet"
