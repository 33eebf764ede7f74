"""What a debrief says of the strategies: critiques, plans, thoughts, choices, repaired calls, reviews and fallbacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from docs.schemas import debrief_schema
from playhead import load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.trace import events as e
from playhead.trace.types import Usage
from tests.diagnose.recordings import made, printed

if TYPE_CHECKING:
    from playhead.diagnose import debrief_model as m
    from playhead.diagnose.recording import Recording

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))
VALIDATOR = Draft202012Validator(debrief_schema())


def golden(name: str) -> Recording:
    """Return a recording of a strategy."""
    return load_recording(next(path for path in GOLDEN if path.stem == name))


def lines(debrief: m.Debrief) -> list[str]:
    """Return the debrief as it is printed, in lines that are not broken."""
    return printed(debrief_document(debrief), width=400).splitlines()


def section(debrief: m.Debrief, title: str) -> list[str]:
    """Return the lines of a section; none when it is not there."""
    shown = lines(debrief)
    if title not in shown:
        return []
    rest = shown[shown.index(title) + 1 :]
    end = next((number for number, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return [line.strip() for line in rest[:end]]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_strategy_has_a_debrief(path: Path):
    """The debrief of each recording is JSON that the schema takes, and safe in 80 columns."""
    debrief = build_debrief(load_recording(path))
    VALIDATOR.validate(json.loads(debrief.model_dump_json()))
    debrief_document(debrief).markdown()
    assert max(map(cell_len, printed(debrief_document(debrief)).splitlines())) <= 80


def test_each_critique_with_the_answer_that_it_judged():
    """Every answer that was judged stands there with the verdict, the score and what the critic said."""
    debrief = build_debrief(golden("reflexion-unsatisfied"))
    assert [each.ok for each in debrief.entries if each.section == "answers"] == [False] * 4
    assert section(debrief, "Answers, and what the critic said of them") == [
        'turn 0 e11 not satisfied, score 0.2: - Wrong. The answer: "answer 2"',
        'turn 1 e21 not satisfied, score 0.6: - Wrong. The answer: "answer 6" (×2)',  # noqa: RUF001
        'turn 3 e41 not satisfied, score 0: - Wrong. The answer: "answer 0"',
    ]
    assert section(debrief, "Best answer (no critic was satisfied with it)") == ["answer 6"]


def test_a_plan_with_its_versions():
    """Each version with its steps and its reason, where each step stands, and what the reflections found."""
    assert section(build_debrief(golden("plan-execute-reflect-mended")), "Plan") == [
        'e7 plan_0 v0 (How high is Mount Zed, and how deep is Lake Quill?): s1 lookup(key="Mount Zet"); s2 lookup(key="Lake Quill")',
        "turn 0 e12 plan_0 s1 failed: error: nothing is known of Mount Zet",
        "turn 0 e16 plan_0 s2 skipped: replaced in version 1",
        'turn 0 e17 plan_0 v1 (How high is Mount Zed, and how deep is Lake Quill?): s3 lookup(key="Mount Zed"): s1 failed',
        "turn 1 e22 plan_0 s3 completed",
        "turn 1 e26 satisfied: both are there",
    ]


def test_thoughts_with_scores_and_which_were_kept():
    """Every thought, its score and, where it was pruned, why."""
    debrief = build_debrief(golden("tree-of-thought-best-path"))
    assert section(debrief, "Thoughts") == [
        "e8 1: Look it up.",
        "e9 2: Guess.",
        "e13 1, satisfied, score 0.8: 8",
        "e17 2, not satisfied, score 0.3: 3",
        "e18 tree-of-thought: depth 1: keep 1 (0.80) (kept 1): not 2 (score 0.30: it is below 0.50)",
        "e24 1.1: By name.",
        "e25 1.2: By place.",
        "e29 1.1, not satisfied, score 0.4: 4",
        "e33 1.2, satisfied, score 0.9: 9",
        "e34 tree-of-thought: depth 2: keep 1.2 (0.90) (kept 1.2): not 1.1 (score 0.40: it is below 0.50)",
    ]
    assert section(debrief, "Alternatives considered") == []
    assert "(kept none)" in section(build_debrief(golden("tree-of-thought-no-path")), "Thoughts")[-1]


def test_the_strategy_and_why():
    """The agent's own strategy, the one that was chosen or took over, and why."""
    chosen = build_debrief(golden("adaptive-not-chosen"))
    why = "the first candidate; the model's answer named no single strategy"
    assert section(chosen, "Strategy") == ["adaptive", f"e8 reactive: {why}", "the output is from reactive"]
    switched = build_debrief(golden("reactive-switched"))
    assert (switched.strategy, switched.strategy_used) == ("reactive", "direct")
    assert section(switched, "Strategy") == [
        "reactive",
        "turn 3 e29 reactive: switch to direct: It needs no reasoning.",
        "turn 3 e31 reactive → direct, switch 1: It needs no reasoning. (lookup was called 3 times with the same arguments)",
        "the output is from direct",
    ]
    silent = build_debrief(made(e.StrategySelected(strategy="direct")))
    assert section(silent, "Strategy") == ["reactive", "turn 0 e1 direct"]


def test_repaired_calls():
    """A call that was put right says so in the path, and what was changed stands below."""
    debrief = build_debrief(golden("reactive-repaired"))
    assert debrief.path[0].note == "repaired: name, arguments"
    assert section(debrief, "Repaired calls")[0] == "turn 0 e8 call call_0_0, name: Look_Up → lookup"


def test_reviews_and_fallbacks():
    """What reviews said of an answer, and which model took over, each under its own title."""
    events = (
        e.ProviderFallback(from_model="a", to_model="b", reason="busy", attempt=2),
        e.VerifierVerdict(verified=False, summary="no source"),
        e.NudgeIssued(nudge="output-rejected", text="Your answer was not accepted: no source", severity="warn"),
        e.NudgeIssued(nudge="loop", text="try another"),
    )
    debrief = build_debrief(made(*events))
    assert section(debrief, "Reviews of the answer") == [
        "turn 0 e2 verifier-verdict did not pass: no source",
        "turn 0 e3 nudge-issued output-rejected (warn): Your answer was not accepted: no source",
    ]
    assert section(debrief, "Other models") == ["turn 0 e1 a → b, failure 2: busy"]
    assert section(debrief, "Hooks and limits that steered") == ["turn 0 e4 nudge-issued loop (info): try another"]


@pytest.mark.parametrize(
    ("by", "status", "title"),
    [
        ("unsatisfied", "done", "Best answer (no critic was satisfied with it)"),
        ("output_rejected", "failed", "Last answer (a review refused it)"),
        ("required_tools_missing", "done", "Answer (given without the tools that had to be called)"),
        ("max_iterations", "done", "Last result (the agent gave no answer of its own)"),
    ],
)
def test_an_answer_that_does_not_stand_is_still_an_answer(by: str, status: Any, title: str):
    """The model did answer: it is not said that it did not."""
    end = e.RunCompleted(status=status, terminated_by=by, terminated_source="kernel", output="42", usage=Usage())
    debrief = build_debrief(made(end=end))
    assert section(debrief, title) == ["42"]
    assert section(debrief, "Path") == ["no call"]
