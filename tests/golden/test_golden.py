"""Golden recordings: what each strategy did when they were made, it still does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from playhead import check_trace, load_recording
from playhead.kernel.strategies.base import list_strategies
from playhead.replay import reproduce
from playhead.trace.events import AgentStarted, LlmRequested, PhaseEntered, StrategySelected, StrategySwitched
from playhead.trace.format import FORMAT
from tests.golden.record import GOLDEN

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.jsonl"))
NAMES = {f"{strategy}-{case}": strategy for strategy, cases in GOLDEN.items() for case in cases}


def test_every_strategy_has_some() -> None:
    """A strategy without golden recordings does not pass, and a recording that nobody can make anew neither."""
    assert {path.stem for path in FILES} == set(NAMES), "run `python -m tests.golden.record`"
    few = [each for each in list_strategies() if len(GOLDEN.get(each, ())) < 2]
    assert (few, set(NAMES.values()) - set(list_strategies())) == ([], set()), "GOLDEN in record.py has two of each"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_it_is_reproduced(path: Path) -> None:
    """The file is whole, of the strategy that its name says, does what that declares, and comes out the same from itself alone."""
    recording = load_recording(path)
    assert check_trace(path).verdict == "ok"
    assert (recording.run_id, recording.header.agent.strategy) == (path.stem, NAMES[path.stem])
    declare_all_they_do(recording)
    outcome = await reproduce(recording)
    assert outcome.divergences == ()
    assert (outcome.identical, outcome.cut_short, outcome.raced) == (True, False, ())


async def test_the_minor_format_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of Playhead that raised the minor format reproduces the recordings of the one before."""
    monkeypatch.setattr("playhead.agent.running.FORMAT", f"{FORMAT}9")
    outcome = await reproduce(load_recording(FILES[0]))
    assert (outcome.identical, outcome.divergences) == (True, ())


@pytest.mark.parametrize(
    ("strategy", "kinds", "endings"),
    [
        (
            "reactive",
            {"nudge-issued", "llm-retried", "agent-completed", "strategy-switched", "strategy-switch-evaluated"},
            {"final_answer", "llm_error"},
        ),
        ("direct", {"tool-call-completed"}, {"end_turn", "required_tools_missing", "max_iterations"}),
        ("chain-of-thought", {"thought", "nudge-issued"}, {"end_turn"}),
        ("autonomous", {"nudge-issued", "tool-call-completed"}, {"final_answer_tool", "end_turn"}),
        (
            "reflexion",
            {"critique", "structured-output-failed"},
            {"end_turn", "unsatisfied", "llm_error"},
        ),
        (
            "plan-execute-reflect",
            {"plan-created", "plan-step-changed", "reflection", "structured-output-failed", "decision-evaluated"},
            {"end_turn"},
        ),
        ("tree-of-thought", {"critique", "alternatives-considered", "structured-output-failed"}, {"end_turn"}),
        ("adaptive", {"strategy-selected", "structured-output-failed"}, {"end_turn"}),
        ("code-action", {"tool-call-completed"}, {"end_turn"}),
    ],
)
def test_they_show_what_they_are_for(strategy: str, kinds: set[str], endings: set[str]) -> None:
    """The branches of a strategy are among its recordings."""
    recordings = [load_recording(path) for path in FILES if NAMES[path.stem] == strategy]
    assert kinds <= {kind for recording in recordings for kind in recording.counts()}
    assert endings <= {recording.ending.terminated_by for recording in recordings if recording.ending}


KERNELS_OWN = {"think", "switch"}
"""Purposes of requests that the kernel makes for every strategy."""


def declare_all_they_do(recording: Recording) -> None:
    """Check that every purpose and phase is one that the header, or the event that chose a strategy, names."""
    declared = [recording.header.agent.strategy_declares]
    declared += [
        each.event.agent.strategy_declares for each in recording.records if isinstance(each.event, AgentStarted)
    ]
    declared += [
        each.event.declares for each in recording.records if isinstance(each.event, StrategySelected | StrategySwitched)
    ]
    purposes = {each.name for facts in declared for each in facts.purposes} | KERNELS_OWN
    asked = {each.event.purpose for each in recording.records if isinstance(each.event, LlmRequested)}
    entered = {each.event.phase for each in recording.records if isinstance(each.event, PhaseEntered)}
    assert (asked - purposes, entered - {phase for facts in declared for phase in facts.phases}) == (set(), set())
