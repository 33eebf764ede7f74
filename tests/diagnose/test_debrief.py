"""The account of a run: what it says of every ending, of the samples, and of files that are not whole."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.schemas import debrief_schema
from playhead import Agent, load_recording
from playhead.diagnose.debrief import DebriefFold, build_debrief
from playhead.diagnose.numbers import MOST
from playhead.diagnose.parts import short
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace import events as e
from playhead.trace.events.model import ErrorInfo
from playhead.trace.events.run import FIXES, TERMINATED_BY
from playhead.trace.reader import Problem
from playhead.trace.types import Alternative, Rationale, ToolSpec, Usage
from tests.diagnose.recordings import ENDINGS, SAMPLES, ended_by, lookup, made, sample
from tests.kernel.runs import make_agent, record_agent

VALIDATOR = Draft202012Validator(debrief_schema())
DOCS = Path(__file__).parents[2] / "docs"


def test_the_published_schema_is_current():
    """docs/debrief.schema.json is what the module prints, is valid, and has words for every field."""
    printed = subprocess.run(
        [sys.executable, str(DOCS / "schemas.py"), "debrief"],
        capture_output=True, text=True, check=True, encoding="utf-8",
    ).stdout  # fmt: skip
    assert (DOCS / "debrief.schema.json").read_text(encoding="utf-8") == printed, "run `make docs`"
    schema = json.loads(printed)
    Draft202012Validator.check_schema(schema)
    parts = [schema, *schema["$defs"].values()]
    assert all("description" in field for part in parts for field in part["properties"].values())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_valid_json(path: Path):
    """The debrief of every sample is JSON that the schema takes."""
    VALIDATOR.validate(json.loads(build_debrief(load_recording(path)).model_dump_json()))


OUTCOMES = {
    "end_turn": ("success", "consistent"),
    "final_answer": ("success", "suspect"),
    "final_answer_tool": ("success", "consistent"),
    "max_iterations": ("partial", "no-claim"),
    "output_truncated": ("partial", "no-claim"),
    "output_filtered": ("partial", "no-claim"),
    "required_tools_missing": ("partial", "no-claim"),
    "timeout": ("partial", "no-claim"),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_every_kind_of_ending(tmp_path: Path, name: str):
    """Outcome, termination and its meaning follow from the last event, and the schema takes the whole."""
    recording = await ended_by(name, tmp_path)
    debrief = build_debrief(recording)
    VALIDATOR.validate(json.loads(debrief.model_dump_json()))
    assert (debrief.outcome, debrief.honesty) == OUTCOMES.get(name, ("failed", "no-claim"))
    assert debrief.termination is not None
    assert debrief.termination.by == name
    meaning = TERMINATED_BY.get(name, f"{debrief.termination.source} ended it")
    assert debrief.termination.meaning == (f"{meaning}. {FIXES[name]}" if name in FIXES else meaning)
    assert debrief.caveats == ()


async def test_a_result_is_observed_once_however_often_a_hook_sends_it_anew(tmp_path: Path):
    """A message that is sent once in the place of another is no observation; `obs:2` stays the second result."""

    def hide(hooks: Any) -> None:
        def changed(request: Any, _: Any) -> Any:
            messages = (
                each.model_copy(update={"content": "*"}) if each.role == "tool" else each for each in request.messages
            )
            return replace(request, messages=tuple(messages))

        hooks.on("llm.request", changed)

    turns = [call("lookup", key=str(number)) for number in range(100)]
    agent = make_agent(tmp_path, [*turns, text("done")], lookup, compose=[hide], max_iterations=200)
    ran = await record_agent(agent, tmp_path)
    fold = DebriefFold()
    for each in ran.recording.records:
        fold.add(each)
    assert [*fold.facts.agents["root"].observed] == [f"call_{number}_0" for number in range(100)]


async def test_the_whole_account(tmp_path: Path):
    """A run with a failure that was learned from: the account in full."""
    reason = '<rationale>{"why": "the table has heights", "confidence": 0.9, "refs": ["obs:1"]}</rationale>'
    second = calls(call("lookup", key="Mount Zed"), text=reason)
    turns = [call("lookup", key="Mt Zed"), second]
    agent = make_agent(tmp_path, [*turns, text("4,180 feet.")], lookup, rationale=True, name="guide")
    ran = await record_agent(agent, tmp_path, "How high is Mount Zed?")
    debrief = build_debrief(ran.recording)
    assert [(step.action, step.arguments, step.ok, step.note) for step in debrief.path] == [
        ("tool:lookup", 'key="Mt Zed"', False, "LookupError"),
        ("tool:lookup", 'key="Mount Zed"', True, None),
        ("answer", None, True, None),
    ]
    (decision,) = [each for each in debrief.entries if each.section == "reasons"]
    assert decision.model_dump() == {
        "seq": ran.recording.records[decision.seq].seq, "owner": "root", "iteration": 1,
        "section": "reasons", "kind": "tool-call-started", "by": "model", "what": "chose tool:lookup", "tool": "lookup",
        "call_id": "call_1_0", "ok": None,
        "why": {"why": "the table has heights", "refs": ("obs:1",), "confidence": 0.9},
    }  # fmt: skip
    assert [(error.where, error.type, error.count) for error in debrief.errors] == [("tool:lookup", "LookupError", 1)]
    assert [(found.source, found.text) for found in debrief.key_findings] == [
        ("tool:lookup", "Mount Zed is 4,180 feet high"),
        ("answer", "4,180 feet."),
    ]
    metrics = debrief.metrics
    assert (metrics.iterations, metrics.model_calls, metrics.tool_calls, metrics.tool_failures) == (3, 3, 2, 1)
    assert (metrics.reasons_expected, metrics.reasons_stated, metrics.agents) == (2, 1, 1)
    assert (metrics.tokens_in, metrics.tokens_out) == (ran.result.usage.input_tokens, ran.result.usage.output_tokens)
    assert debrief.claim.startswith("Agent's claim: success | support in the trace: high | ")


def test_decisions_of_every_kind():
    """Every event that carries a reason becomes a decision, by the name that the catalogue gives it."""
    recording = made(
        e.StrategySelected(strategy="reactive", reason="short"),
        e.StrategySwitchEvaluated(from_strategy="a", recommended_strategy="b", will_switch=True, rationale="stuck"),
        e.StrategySwitched(from_strategy="a", to_strategy="b", switch_number=1, rationale="stuck"),
        e.DecisionEvaluated(decision="early-stop", rationale="enough"),
        e.CuratorDecision(action="dropped", ref="obs:2", rationale="stale"),
        e.ApprovalDecided(call_id="x", approved=False, why="too much", by="ann"),
        e.HookFired(hook="guard", phase="think", timing="before", action="skip", reason="seen"),
        e.KillswitchFired(switch="budget", reason="1,000 tokens", on_trigger="stop"),
        e.AlternativesConsidered(decision="b", alternatives=(Alternative(option="c", rejected_because="slow"),)),
        e.EmissionChanged(tag="prompt.system", key="0", hook="redact", before="a", after="b"),
        e.EmissionSuppressed(tag="tool.result", hook="hush", before="x"),
        e.NudgeIssued(nudge="loop", text="try another"),
        e.GuardrailViolation(guard="pii", violations=("a name",), blocked=True),
        e.VerifierVerdict(verified=False, summary="no source"),
        e.ProviderFallback(from_model="a", to_model="b", reason="busy", attempt=2),
        e.HookFailed(hook="bad", where="**", error="ValueError: x"),
        e.LlmFailed(request=0, error=ErrorInfo(type="Busy", message="later")),
        e.KernelStateSnapshot(
            status="done", steps=0, messages=0, usage=Usage(), terminated_by="quality_threshold",
            termination_rationale=Rationale(why="the score is 0.9"),
        ),
        end=e.RunCompleted(status="done", terminated_by="quality_threshold", terminated_source="strategy:b", output=1),
    )  # fmt: skip
    debrief = build_debrief(recording)
    assert [(each.section, each.by, each.what, each.why and each.why.why) for each in debrief.entries] == [
        ("strategy", "strategy", "reactive: short", "short"),
        ("strategy", "strategy", "a: switch to b: stuck", "stuck"),
        ("strategy", "strategy", "a → b, switch 1: stuck", "stuck"),
        ("reasons", "strategy", "early-stop: enough", "enough"),
        ("curator", "curator", "obs:2 dropped: stale", "stale"),
        ("approvals", "approver", "denied by ann: too much (call x)", "too much"),
        ("steering", "hook", "guard, before think, asked to skip: seen", "seen"),
        ("steering", "killswitch", "budget (stop): 1,000 tokens", "1,000 tokens"),
        ("alternatives", "model", "b: not c (slow)", None),
        ("steering", "hook", "prompt.system by redact: a → b", None),
        ("steering", "hook", "tool.result by hush: x", None),
        ("steering", "kernel", "loop (info): try another", None),
        ("steering", "kernel", "pii stopped the run: a name", None),
        ("reviews", "kernel", "did not pass: no source", None),
        ("models", "kernel", "a → b, failure 2: busy", "busy"),
    ]
    assert debrief.termination is not None
    assert debrief.termination.rationale is not None
    assert debrief.termination.rationale.why == "the score is 0.9"
    assert [each.action for each in debrief.path] == ["switch:b"]
    assert [(each.where, each.type) for each in debrief.errors] == [("hook:bad", "HookFailed"), ("model", "Busy")]
    assert [each.ok for each in debrief.entries if each.section == "approvals"] == [False]


def test_a_replay_says_what_it_is():
    """Origin, overrides in short, and how results came about."""
    header = {
        "replay_of": "01ABC",
        "replay_mode": "replay",
        "overrides": {"system_prompt": "x" * 999, "temperature": 0},
    }
    started = e.ToolCallStarted(call_id="1", tool="t", position=0, args_hash="h")
    done = e.ToolCallCompleted(call_id="1", tool="t", position=0, ok=True, result=1, rung="exact")
    replay = build_debrief(made(started, done, e.ReplayDiverged(what="x", where="y"), header=header)).replay
    assert replay is not None
    assert (replay.replay_of, replay.mode, replay.rungs, replay.diverged) == ("01ABC", "replay", {"exact": 1}, 1)
    assert replay.overrides["temperature"] == "0"
    assert replay.overrides["system_prompt"].endswith("… (699 more characters)")


def test_sub_agents_keep_their_own():
    """Steps, answers and flags of a sub-agent carry its owner, and its end stands among the agents."""
    debrief = build_debrief(sample("sub-agents"))
    assert [(step.owner, step.action) for step in debrief.path] == [
        ("root", "agent:researcher"),
        ("root/researcher@0.0", "answer"),
        ("root", "tool:final-answer"),
    ]
    (agent,) = debrief.agents
    assert (agent.name, agent.status, agent.by) == ("researcher", "done", "end_turn")
    assert {(flag.rule, flag.owner) for flag in debrief.flags} == {
        ("ungrounded-numbers", "root"),
        ("ungrounded-numbers", "root/researcher@0.0"),
    }


FLAGS = {
    "autonomous": [("ungrounded-numbers", "warning")],
    "chain-of-thought": [],
    "cut-answer": [],
    "denied-approval": [("repeated-after-failure", "warning")],
    "direct": [],
    "failed-call": [("repeated-after-failure", "info")],
    "limit-reached": [],
    "no-tools": [],
    "reflexion": [],
    "several-tools": [],
    "stated-reasons": [("reason-missing", "info")],
    "sub-agents": [("ungrounded-numbers", "warning")] * 2,
}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_flags_of_the_samples(path: Path):
    """What the rules find in the runs of a real model, each looked at by a person."""
    debrief = build_debrief(load_recording(path))
    assert [(flag.rule, flag.severity) for flag in debrief.flags] == FLAGS[path.stem]


def test_a_run_without_an_end():
    """An open file has an account too; it claims no outcome and says why."""
    recording = sample("several-tools")
    debrief = build_debrief(replace(recording, records=recording.records[:14]))
    assert (debrief.recording, debrief.outcome, debrief.termination) == ("open", "unknown", None)
    assert debrief.claim.startswith("Outcome: unknown (the trace has no end) | 482 tok | ")
    assert debrief.caveats == (
        "this run has no end in the file: it is still going on, or was killed; nothing here is final",
        "1 call of a tool without a result in the file",
    )
    assert debrief.metrics.duration_ms == (recording.records[13].ts - recording.records[0].ts) / 1000


@pytest.mark.parametrize(("kind", "state"), [("truncated", "truncated"), ("chain", "damaged")])
def test_a_damaged_file(kind: Any, state: str):
    """What is wrong with the file is among the caveats, and a damaged one has no high confidence."""
    recording = replace(sample("several-tools"), problems=(Problem(kind, 3, "what is wrong"),))
    debrief = build_debrief(recording)
    assert debrief.recording == state
    assert any(f"the file is {state} (line 3: {kind}: what is wrong)" in caveat for caveat in debrief.caveats)
    assert debrief.confidence == ("low" if state == "damaged" else "high")


def test_lost_events_redaction_and_unknown_kinds_are_said():
    """Whatever makes the account incomplete is among the caveats."""
    end = e.RunCompleted(status="done", terminated_by="end_turn", terminated_source="kernel", lost_events=3)
    debrief = build_debrief(made(e.UnknownEvent(kind="novelty-seen"), header={"redacted": True}, end=end))
    assert len(debrief.caveats) == 3
    assert "3 events could not be written" in debrief.caveats[0]
    assert "redaction" in debrief.caveats[1]
    assert "novelty-seen" in debrief.caveats[2]


def test_too_many_numbers_are_not_checked():
    """A trace with more numbers than are remembered has no flag about them, and says so."""
    numbers = " ".join(map(str, range(1000, 1000 + MOST + 2)))
    spec = e.ToolsDefined(first_id=0, tools=(ToolSpec(name="t"),))
    message = e.MessageAdded(id=0, role="user", content=numbers)
    debrief = build_debrief(made(spec, message, e.FinalAnswer(output="It is 77")))
    assert debrief.flags == ()
    assert "different numbers" in debrief.caveats[0]


async def test_a_live_run(tmp_path: Path):
    """The fold watches a run as a subscriber and ends up with what the file says."""
    fold = DebriefFold()
    agent = Agent(ScriptedModel([call("lookup", key="a"), text("4,180")]), tools=[lookup], trace=tmp_path)
    agent.subscribe(None, fold.add)
    await agent.run("How high?", run_id="live")
    assert fold.result() == build_debrief(load_recording(tmp_path / "live.jsonl"))


def test_large_results_are_not_kept():
    """A result of megabytes leaves a few hundred characters behind."""
    events: list[Any] = []
    for number in range(5):
        events += [
            e.ToolCallStarted(call_id=str(number), tool="t", position=0, args={"n": number}, args_hash=str(number)),
            e.ToolCallCompleted(
                call_id=str(number), tool="t", position=0, ok=True, result=f"{number} " + "word " * 10**5
            ),
        ]
    assert len(build_debrief(made(*events)).model_dump_json()) < 20_000


def test_no_number_is_absurd():
    """Not-a-number, infinities and the largest integers leave valid JSON."""
    nan, infinite = float("nan"), float("inf")
    recording = made(
        e.LlmResponded(request=0, usage=Usage(input_tokens=2**63 - 1, output_tokens=5), cost_usd=nan, latency_ms=infinite),
        e.ToolCallStarted(
            call_id="1", tool="t", position=0, args={"x": nan}, args_hash="", rationale=Rationale(why="w", confidence=nan)
        ),
        e.ToolCallCompleted(call_id="1", tool="t", position=0, ok=True, result=[nan, 10**400], duration_ms=infinite),
        end=e.RunCompleted(
            status="done", terminated_by="x", terminated_source="y", cost_usd=-infinite, duration_ms=nan, output=nan
        ),
    )  # fmt: skip
    shown = json.loads(build_debrief(recording).model_dump_json(), parse_constant=pytest.fail)
    VALIDATOR.validate(shown)
    assert (shown["metrics"]["cost_usd"], shown["metrics"]["duration_ms"]) == (None, 0.0)


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [
        ("short", 10, "short"),
        ("one two three four", 12, "one two … (11 more characters)"),
        ("x" * 30, 10, "x" * 10 + " … (20 more characters)"),
        ("half a \ud800", 20, "half a \ufffd"),
    ],
)
def test_short(given: str, limit: int, expected: str):
    """What is cut says so, at the end of a word where there is one."""
    assert short(given, limit) == expected
