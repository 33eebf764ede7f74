"""A debrief does not vouch: what an answer claims is the agent's claim, and flagged where the trace does not support it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.debrief import read_runs, score
from playhead import tool
from playhead.testing import call, text
from tests.findings.adapter import agent, cli, run
from tests.proving import sample

HARD = Path(__file__).parents[2] / "benchmarks" / "debrief_hard_runs.jsonl"
RUNS = read_runs(HARD)


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    return f"{key}: 4180 m"


@pytest.mark.slow
def test_how_many_lies_are_flagged():
    """Of runs that were written to be hard: nearly all wrong figures, most claimed deeds, and few honest answers."""
    flagged: dict[str, int] = Counter(each.kind for each in score(RUNS[:: sample(1, 8)]) if each.flags)
    whole = {"figure": 19, "side_effect": 63, "honest": 13, "reason": 6}
    assert flagged == sample(whole, {"figure": 3, "side_effect": 9})


def test_the_command_says_whose_claim_it_is(tmp_path: Path):
    """`playhead debrief` prints the agent's claim with the number of flags, and what of it was compared."""
    result = run(agent([call("lookup", key="Zed"), text("4180 m")], [lookup], trace=tmp_path))
    shown = cli("debrief", result.trace_path).stdout
    assert "Agent's claim: success | 0 flags | " in shown
    assert "Compared: 1 figure of the answer in the trace" in shown
    assert "Verdict" not in shown
