"""The account of a run: what it says of every ending, of the samples, and of files that are not whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.schemas import debrief_schema
from playhead import Agent, load_recording
from playhead.diagnose import debrief_model as m
from playhead.diagnose.debrief import TERMINATED_BY, build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.numbers import MOST
from playhead.diagnose.report_page import render_pair, render_report
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace import events as e
from playhead.trace.reader import Problem
from playhead.trace.types import Alternative, Rationale, ToolSpec, Usage
from tests.diagnose.recordings import ENDINGS, SAMPLES, ended_by, lookup, made, printed, sample
from tests.kernel.runs import make_agent, record_agent

VALIDATOR = Draft202012Validator(debrief_schema())
DOCS = Path(__file__).parents[2] / "docs"


def test_the_published_schema_is_current():
    """docs/debrief.schema.json is what the module prints, is valid, and has words for every field."""
    schema = debrief_schema()
    published = json.loads((DOCS / "debrief.schema.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(schema)), "run `make docs`"
    Draft202012Validator.check_schema(schema)
    parts = [schema, *schema["$defs"].values()]
    assert all("description" in field for part in parts for field in part["properties"].values())


SUCCESS = {"end_turn", "final_answer", "final_answer_tool"}
PARTIAL = {"max_iterations", "output_truncated", "output_filtered", "required_tools_missing", "timeout"}


@pytest.mark.parametrize("name", ENDINGS)
async def test_every_kind_of_ending(tmp_path: Path, name: str):
    """Outcome, termination and its meaning follow from the last event, and the schema takes the whole."""
    recording = await ended_by(name, tmp_path)
    debrief = build_debrief(recording)
    VALIDATOR.validate(json.loads(debrief.model_dump_json()))
    assert debrief.outcome == ("success" if name in SUCCESS else "partial" if name in PARTIAL else "failed")
    assert debrief.termination is not None
    assert debrief.termination.by == name
    meaning = TERMINATED_BY.get(name, f"{debrief.termination.source} ended it")
    assert debrief.termination.meaning == meaning
    assert debrief.caveats == ()
    (line,) = [line for line in printed(debrief_document(debrief)).splitlines() if line.startswith("Termination: ")]
    assert line.startswith(f"Termination: {name} ")


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
    stated = m.Reason(why="the table has heights", refs=("obs:1",), confidence=0.9)
    assert decision == m.Entry(
        seq=decision.seq, owner="root", iteration=1, section="reasons", kind="tool-call-started", by="model",
        what="chose tool:lookup", tool="lookup", call_id="call_1_0", why=stated,
    )  # fmt: skip
    assert [(error.where, error.type, len(error.seqs)) for error in debrief.errors] == [
        ("tool:lookup", "LookupError", 1)
    ]
    metrics = debrief.metrics
    assert (metrics.iterations, metrics.model_calls, metrics.tool_calls, metrics.tool_failures) == (3, 3, 2, 1)
    assert (metrics.reasons_expected, metrics.reasons_stated, metrics.agents) == (2, 1, 1)
    assert (metrics.tokens_in, metrics.tokens_out) == (ran.result.usage.input_tokens, ran.result.usage.output_tokens)
    assert debrief.claim.startswith("Agent's claim: success | 0 flags | ")


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
    assert [(each.where, each.type) for each in debrief.errors] == [("hook:bad", "HookFailed")]
    assert [each.ok for each in debrief.entries if each.section == "approvals"] == [False]


def test_sub_agents_keep_their_own():
    """Steps, answers and flags of a sub-agent carry its owner, and its end stands among the agents."""
    debrief = build_debrief(sample("sub-agents"))
    assert [(step.owner, step.action) for step in debrief.path] == [
        ("root", "agent:researcher"),
        ("root/researcher@0.0", "answer"),
        ("root", "tool:final-answer"),
    ]
    assert debrief.agents == {"root/researcher@0.0": "end_turn"}
    assert {(flag.rule, flag.owner) for flag in debrief.flags} == {
        ("ungrounded-numbers", "root"),
        ("ungrounded-numbers", "root/researcher@0.0"),
    }


FLAGS: dict[str, list[tuple[str, str]]] = {
    "autonomous": [("ungrounded-numbers", "warning")],
    "sub-agents": [("ungrounded-numbers", "warning")] * 2,
}


def test_flags_of_the_samples():
    """What the rules find in the runs of a real model, each looked at by a person."""
    debriefs = {path.stem: build_debrief(load_recording(path)) for path in SAMPLES}
    found = {name: [(flag.rule, flag.severity) for flag in debrief.flags] for name, debrief in debriefs.items()}
    assert found == {name: FLAGS.get(name, []) for name in found}


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


@pytest.mark.parametrize(
    ("kind", "words"), [("truncated", "cut off"), ("chain", "damaged"), ("erased", "erased in part")]
)
def test_a_damaged_file(kind: Any, words: str):
    """What is wrong with the file is among the caveats and heads its pages, and among what to look at first is nothing else."""
    recording = replace(sample("several-tools"), problems=(Problem(kind, 3, "what is wrong"),))
    debrief = build_debrief(recording)
    assert debrief.recording == {"chain": "damaged"}.get(kind, kind)
    assert any(f"the file is {words} (line 3: {kind}: what is wrong)" in caveat for caveat in debrief.caveats)
    for page in (render_report(recording), render_pair(sample("no-tools"), recording)):
        assert page.count(f"<strong>{words.capitalize()}</strong>") == 1
    assert debrief.findings == ()


def test_lost_events_redaction_and_unknown_kinds_are_said():
    """Whatever makes the account incomplete is among the caveats."""
    end = e.RunCompleted(status="done", terminated_by="end_turn", terminated_source="kernel", lost_events=3)
    debrief = build_debrief(made(e.UnknownEvent(kind="novelty-seen"), header={"redacted": True}, end=end))
    for said, caveat in zip(("3 events could not", "redaction", "novelty-seen"), debrief.caveats, strict=True):
        assert said in caveat


@pytest.mark.slow
def test_too_many_numbers_are_not_checked():
    """A trace with more numbers than are remembered has no flag about them, and says so."""
    numbers = " ".join(map(str, range(1000, 1000 + MOST + 2)))
    spec = e.ToolsDefined(first_id=0, tools=(ToolSpec(name="t"),))
    message = e.MessageAdded(id=0, role="user", content=numbers)
    debrief = build_debrief(made(spec, message, e.FinalAnswer(output="It is 77")))
    assert debrief.flags == ()
    assert "different numbers" in debrief.caveats[0]


async def test_a_run_without_a_trace(tmp_path: Path):
    """Its debrief is the same as that of an equal run's file, but for the times."""
    turns = [call("lookup", key="a"), text("4,180")]
    debriefs = []
    for folder in (tmp_path, None):
        agent = Agent(ScriptedModel(turns), tools=[lookup], trace=folder, clock=TickingClock)
        debriefs.append((await agent.run("How high?", run_id="untraced")).debrief)
    assert debriefs[0] == debriefs[1]
