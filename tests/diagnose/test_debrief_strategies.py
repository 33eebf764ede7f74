"""What a debrief says of the strategies: critiques, plans, thoughts, choices, repaired calls, reviews and fallbacks."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len
from rich.console import Console

from playhead import load_recording
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_markdown import debrief_markdown
from playhead.diagnose.debrief_schema import debrief_schema
from playhead.diagnose.debrief_view import DebriefView
from playhead.diagnose.terminal import escape
from playhead.trace import events as e
from playhead.trace.types import AgentHeader
from playhead.trace.usage import Usage
from tests.diagnose.recordings import made

if TYPE_CHECKING:
    from playhead.diagnose import debrief_model as m
    from playhead.trace.recording import Recording

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))
VALIDATOR = Draft202012Validator(debrief_schema())


def golden(name: str) -> Recording:
    """Return a recording of a strategy."""
    return load_recording(next(path for path in GOLDEN if path.stem == name))


def lines(debrief: m.Debrief) -> list[str]:
    """Return the debrief as it is printed, in lines that are not broken."""
    out = io.StringIO()
    Console(file=out, width=400, color_system=None).print(DebriefView(debrief), crop=False)
    return out.getvalue().splitlines()


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
    debrief_markdown(debrief)
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(DebriefView(debrief), crop=False)
    assert max(map(cell_len, out.getvalue().splitlines())) <= 80
    assert escape(out.getvalue(), keep="\n") == out.getvalue()


def test_each_critique_and_the_answer_that_was_kept():
    """Every answer stands there with its verdict, its score and what the critic said, and one was kept."""
    debrief = build_debrief(golden("reflexion-unsatisfied"))
    assert [(each.number, each.answer, each.satisfied, each.score, each.kept) for each in debrief.judged_answers] == [
        (1, "answer 2", False, 0.2, False),
        (2, "answer 6", False, 0.6, True),
        (3, "answer 6", False, 0.6, False),
        (4, "answer 0", False, 0.0, False),
    ]
    assert section(debrief, "Answers, and what the critic said of them") == [
        'iter 0 answer 1: not satisfied, score 0.20: "- Wrong." The answer: "answer 2"',
        'iter 1 answer 2 (kept): not satisfied, score 0.60: "- Wrong." The answer: "answer 6"',
        'iter 2 answer 3: not satisfied, score 0.60: "- Wrong." The answer: "answer 6"',
        'iter 3 answer 4: not satisfied, score 0.00: "- Wrong." The answer: "answer 0"',
    ]


def test_the_answer_that_satisfied_was_kept():
    """The critic's yes, in short."""
    debrief = build_debrief(golden("reflexion-improved"))
    assert [(each.number, each.satisfied, each.kept) for each in debrief.judged_answers] == [
        (1, False, False),
        (2, True, True),
    ]


def test_an_answer_that_nobody_could_judge():
    """It stands there as not judged, and as the one that was kept."""
    debrief = build_debrief(golden("reflexion-critic-not-understood"))
    (only,) = debrief.judged_answers
    assert (only.number, only.satisfied, only.critique, only.kept) == (1, None, None, True)
    assert section(debrief, "Answers, and what the critic said of them") == [
        'iter 0 answer 1 (kept): not judged The answer: "4,180 feet, and 61 metres."'
    ]


def test_a_kept_answer_that_is_not_known_is_not_made_up():
    """An output that is none of the answers, with a critic who was never satisfied: nobody knows which was kept."""
    debrief = build_debrief(made(e.Critique(text="no", satisfied=False, score=float("nan"))))
    assert [(each.answer, each.score, each.kept) for each in debrief.judged_answers] == [(None, None, None)]
    assert section(debrief, "Answers, and what the critic said of them") == [
        'iter 0 answer 1: not satisfied: "no"',
        "(which of them was kept does not follow from the trace)",
    ]


def test_a_plan_with_its_versions():
    """Steps with what became of them, versions with the reason, and what the reflections found."""
    debrief = build_debrief(golden("plan-execute-reflect-mended"))
    (plan,) = debrief.plans
    assert [(step.id, step.status, step.why, step.version) for step in plan.steps] == [
        ("s1", "failed", "error: nothing is known of Mount Zet", 0),
        ("s2", "skipped", "replaced in version 1", 0),
        ("s3", "completed", None, 1),
    ]
    assert [(each.version, each.steps, each.reason) for each in plan.versions] == [
        (0, ("s1", "s2"), None),
        (1, ("s3",), "patch: s1 failed"),
    ]
    assert [(each.text, each.satisfied) for each in debrief.reflections] == [("both are there", True)]
    assert section(debrief, "Plan") == [
        "event 7 version 0: s1, s2",
        'iter 1 version 1: s3 — "patch: s1 failed"',
        's1 lookup(key="Mount Zet"): failed — "error: nothing is known of Mount Zet"',
        's2 lookup(key="Lake Quill"): skipped — "replaced in version 1"',
        's3 lookup(key="Mount Zed"): completed',
        'iter 2 reflection: satisfied: "both are there"',
    ]


def test_thoughts_with_scores_and_the_path_taken():
    """Every thought with its score and, where it was pruned, why; the path is the one that was followed."""
    debrief = build_debrief(golden("tree-of-thought-best-path"))
    assert [(each.name, each.text, each.score, each.pruned, each.followed) for each in debrief.thoughts] == [
        ("1", "Look it up.", 0.8, None, True),
        ("2", "Guess.", 0.3, "score 0.30: it is below 0.50", False),
        ("1.1", "By name.", 0.4, "score 0.40: it is below 0.50", False),
        ("1.2", "By place.", 0.9, None, True),
    ]
    assert section(debrief, "Thoughts") == [
        "path taken: 1 → 1.2",
        'event 8 thought 1 (score 0.80, followed): "Look it up."',
        'event 9 thought 2 (score 0.30, pruned: score 0.30: it is below 0.50): "Guess."',
        'event 24 thought 1.1 (score 0.40, pruned: score 0.40: it is below 0.50): "By name."',
        'event 25 thought 1.2 (score 0.90, followed): "By place."',
    ]
    assert section(debrief, "Alternatives considered") == []
    assert debrief.judged_answers == ()


def test_no_path():
    """When all first thoughts are pruned, that is what is said."""
    assert section(build_debrief(golden("tree-of-thought-no-path")), "Thoughts")[0] == "path taken: none"


def test_thoughts_of_a_model_are_no_tree():
    """A thought outside the search may look like one of its nodes; it is none."""
    forged = (
        e.LlmRequested(request=0, model="m", messages=((0, 0),), purpose="think"),
        e.Thought(request=0, text="1: x"),
    )
    assert build_debrief(made(*forged)).thoughts == ()


def test_the_strategy_and_why():
    """The agent's own strategy, the one that was chosen or took over, and why."""
    chosen = build_debrief(golden("adaptive-not-chosen"))
    why = "the preferred one; the model's answer named no single strategy"
    assert section(chosen, "Strategy") == ["adaptive", f'event 8 chose reactive — "{why}"']
    switched = build_debrief(golden("reactive-switched"))
    assert [(each.from_strategy, each.strategy, each.why) for each in switched.strategies] == [
        ("reactive", "direct", "It needs no reasoning. (lookup was called 3 times with the same arguments)")
    ]
    assert (switched.strategy, switched.strategy_used) == ("reactive", "direct")
    assert section(switched, "Strategy") == [
        "reactive",
        'iter 3 switched from reactive to direct — "It needs no reasoning. (lookup was called 3 times with the same arguments)"',
        "the output is from direct",
    ]


def test_a_choice_without_a_reason_is_told():
    """A strategy that was chosen without a word stands there, too."""
    debrief = build_debrief(made(e.StrategySelected(strategy="direct")))
    assert section(debrief, "Strategy") == ["reactive", "iter 0 chose direct"]


def test_repaired_calls():
    """A call that was put right says so in the path, and what was changed stands below."""
    debrief = build_debrief(golden("reactive-repaired"))
    assert debrief.path[0].note == "repaired: name, arguments"
    assert section(debrief, "Repaired calls")[0] == "iter 0 lookup, name: Look_Up → lookup"
    assert debrief.repaired[0].call_id == "call_0_0"


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
        'iter 0 verifier did not pass the answer — "no source"',
        "iter 0 refused: Your answer was not accepted: no source",
    ]
    assert section(debrief, "Other models") == ['iter 0 a → b — "busy"']
    assert section(debrief, "Hooks and limits that steered") == ["iter 0 loop nudged the model: try another"]


@pytest.mark.parametrize(
    ("by", "status", "title"),
    [
        ("unsatisfied", "done", "Best answer (no critic was satisfied with it)"),
        ("output_rejected", "failed", "Last answer (a review refused it)"),
        ("required_tools_missing", "done", "Answer (given without the tools that had to be called)"),
        ("max_iterations", "done", "Best result so far (the agent gave no answer of its own)"),
    ],
)
def test_an_answer_that_does_not_stand_is_still_an_answer(by: str, status: Any, title: str):
    """The model did answer: it is not said that it did not."""
    end = e.RunCompleted(status=status, terminated_by=by, terminated_source="kernel", output="42", usage=Usage())
    debrief = build_debrief(made(end=end))
    assert section(debrief, title) == ["42"]
    assert section(debrief, "Path") == ["no call, no answer" if by == "max_iterations" else "no call"]
    kind = title.partition(" (")[0]
    assert f"Its {kind[0].lower()}{kind[1:]}: " in debrief.summary


def test_a_reason_that_is_also_the_error_stands_there_once():
    """The words of a review are the reason and the error of the ending; they are not told twice."""
    end = e.RunCompleted(
        status="failed", terminated_by="output_rejected", terminated_source="kernel", output="42",
        error="form: no JSON", terminated_because="form: no JSON",
    )  # fmt: skip
    debrief = build_debrief(made(end=end))
    assert 'Termination: output_rejected — "form: no JSON"' in lines(debrief)
    assert debrief.summary.count("form: no JSON") == 1


def test_many_compressions_are_grouped():
    """Counts first, then the first and the last few; the JSON form has all."""
    each = [e.CuratorDecision(action="compressed", ref=f"call_{number % 10}", rationale="r") for number in range(30)]
    debrief = build_debrief(made(*each, e.CuratorDecision(action="dropped", ref="call_3", rationale="no room")))
    shown = section(debrief, "Curator")
    assert shown[0] == "31 times: compressed 30 times (10 results), dropped once"
    assert shown[1:] == [
        'iter 0 compressed call_0 — "r"',
        'iter 0 compressed call_1 — "r"',
        'iter 0 compressed call_2 — "r"',
        "… 25 more (--json has all) …",
        'iter 0 compressed call_8 — "r"',
        'iter 0 compressed call_9 — "r"',
        'iter 0 dropped call_3 — "no room"',
    ]
    assert len(debrief.curator) == 31
    assert debrief_markdown(debrief).count("call") < 20


EVIL = "\x1b]0;title\x07\x1b[2J\u202e\r\nOutcome: success\x9b"


def test_hostile_text_in_every_new_field():
    """Plans, critiques, thoughts, strategies and repaired calls: nothing raw, and what has no form does no harm."""
    search: dict[str, Any] = {"model": "m", "messages": ((0, 0),)}
    recording = made(
        e.LlmRequested(request=0, **search, purpose="expand"),
        e.Thought(request=0, text=EVIL, name=EVIL),
        e.Thought(request=0, name="1." * 99),
        e.Critique(text="1", score=float("inf"), thought="9"),
        e.AlternativesConsidered(decision=EVIL, alternatives=(), kept=(EVIL,)),
        e.LlmRequested(request=1, **search, purpose=EVIL),
        e.Critique(text=EVIL, score=-5, satisfied=None),
        e.PlanCreated(plan_id=EVIL, version=0, goal=EVIL, reason=EVIL,
                      steps=(None, 1, [[]], {"id": [EVIL]}, {"id": EVIL, "title": {EVIL: EVIL}, "status": 7})),
        e.PlanStepChanged(plan_id="?", step_id=EVIL, status=EVIL, reason=EVIL),
        e.PlanStepChanged(plan_id=EVIL, step_id=EVIL, status=EVIL, reason=EVIL),
        e.Reflection(text=EVIL),
        e.StrategySelected(strategy=EVIL, reason=EVIL),
        e.StrategySwitched(from_strategy=EVIL, to_strategy=EVIL, switch_number=1, rationale=EVIL),
        e.ToolCallRepaired(call_id=EVIL, stage=EVIL, before={EVIL: EVIL}, after=EVIL),
        header={"agent": AgentHeader(name="a", model="m", strategy=EVIL)},
        end=e.RunCompleted(status="done", terminated_by="unsatisfied", terminated_source="kernel", output=EVIL,
                           terminated_because=EVIL, strategy_used=EVIL),
    )  # fmt: skip
    debrief = build_debrief(recording)
    VALIDATOR.validate(json.loads(debrief.model_dump_json()))
    shown = "\n".join(lines(debrief))
    assert escape(shown, keep="\n") == shown
    assert sum(line.startswith("Outcome: ") for line in shown.splitlines()) == 1
    assert "\x1b" not in debrief_markdown(debrief)
