"""Switching strategies: the recommendation, the handoff, and the limit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead import load_recording
from playhead.kernel.strategies.base import list_strategies
from playhead.testing import call, error, text
from tests.again import reproduce_sync
from tests.kernel.runs import make_agent
from tests.kernel.strategies.stuck import RAN, SAME, STUCK, broken, lookup, strategies, stuck  # noqa: F401 - a fixture
from tests.proving import sample


async def test_the_limit_of_switches(tmp_path: Path):
    """After the last switch the strategy stays, as the trace says each time it is stuck again; the model still gets nudges."""
    turns = [*SAME, *SAME, *SAME, text("42")]
    ran = await stuck(tmp_path, turns, switching={"fallback_strategy": "other"}, max_iterations=20)
    assert (ran.result.output, len(ran.events("strategy-switched"))) == ("42", 1)
    kept = [event for event in ran.events("decision-evaluated") if event.decision == "keep-strategy: other"]
    assert len(kept) == 2
    assert "max_switches=1 is used up. Fix: raise Switching(max_switches=" in kept[0].rationale
    assert [event.nudge for event in ran.events("nudge-issued")] == ["loop-detected"] * 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (text("reactive\nIt is nearly done."), "It is nearly done."),
        (text("keep going"), "kept: the model's answer named no single strategy"),
        (error("no model"), "kept: the model did not answer: no model"),
    ],
    ids=["kept", "no name", "error"],
)
async def test_the_strategy_is_kept(tmp_path: Path, said: Any, why: str):
    """The evaluation is recorded, and the model gets a nudge."""
    ran = await stuck(tmp_path, [*SAME, said, text("42")], switching={"candidates": ["reactive", "other"]})
    (evaluated,) = ran.events("strategy-switch-evaluated")
    assert (evaluated.recommended_strategy, evaluated.will_switch, evaluated.rationale) == ("reactive", False, why)
    assert ran.events("strategy-switched") == []
    assert [event.nudge for event in ran.events("nudge-issued")] == ["loop-detected"]
    assert (ran.result.output, ran.result.strategy_used) == ("42", "reactive")


BUILT_IN = sorted(set(list_strategies()) - {"adaptive"})


@pytest.mark.parametrize("to", sample(sorted(set(BUILT_IN) - {"reactive"}), ["plan-execute-reflect", "reflexion"]))
async def test_every_strategy_takes_over(tmp_path: Path, to: str):
    """It gets the handoff, and the recording is reproduced."""
    asked: list[str] = []

    def answer(request: Any) -> Any:
        asked.append("\n".join(str(message.content) for message in request.messages))
        if "finish" in [spec.name for spec in request.tools]:
            return call("finish", result="42")
        return text("42")

    ran = await stuck(tmp_path, [*SAME, *[answer] * 60], switching={"fallback_strategy": to}, max_iterations=30)
    assert [event.to_strategy for event in ran.events("strategy-switched")] == [to]
    assert "- lookup returned: found a" in asked[0]
    assert ran.result.status == "done"
    assert RAN == ["a"] * 3


TURNS = st.sampled_from([call("lookup", key="a"), call("lookup", key="b"), text(""), text("other\n."), call("broken")])


@pytest.mark.slow
@settings(max_examples=sample(40, 8))
@given(
    turns=st.lists(TURNS, max_size=12),
    to=st.sampled_from(["other", "passes", "direct", None]),
    most=st.integers(1, 3),
)
def test_any_run_that_may_switch_is_reproduced(turns: list[Any], to: str | None, most: int):
    """Random runs that switch are reproduced, and turns never go back."""
    switching = {"fallback_strategy": to, "max_switches": most, "candidates": ["reactive", "other"]}
    with tempfile.TemporaryDirectory() as folder:
        agent = make_agent(
            Path(folder), [*turns, *[text("42")] * 20], lookup, broken, switching=switching, required_tools=["lookup"]
        )
        result = agent.run_sync("Go.", run_id="run")
        reproduced = reproduce_sync(Path(folder) / "run.jsonl")
        recording = load_recording(Path(folder) / "run.jsonl")
    assert reproduced.identical, reproduced.divergences
    switches = [record for record in recording.records if record.kind == "strategy-switched"]
    assert len(switches) <= most
    places = [record.iteration for record in recording.records if record.iteration is not None]
    assert places == sorted(places)
    assert result.iterations <= 10
