"""Every event has a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.diagnose.summaries import arguments, duration_text, preview, summarise
from playhead.trace.events import EVENT_TYPES, UnknownEvent
from playhead.trace.types import AgentHeader

AGENT = AgentHeader(name="helper", model="openai/gpt")
ENDING = {"status": "done", "terminated_by": "end_turn", "terminated_source": "kernel", "output": "42", "iterations": 1}
USAGE = {"input_tokens": 1200, "output_tokens": 34}
ERROR = {"type": "Timeout", "message": "too slow"}

SENTENCES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "run-started": [
        ({"format": "2.0", "run_id": "r", "agent": AGENT, "task": "Find it."}, "helper on openai/gpt: Find it."),
        (
            {"format": "2.0", "run_id": "r", "agent": AGENT, "replay_of": "old",
             "task": [{"type": "text", "text": "Look:"}, {"type": "image", "url": "http://x/y.png"}]},
            "replay of old, helper on openai/gpt: Look: [image http://x/y.png]",
        ),
        (
            {"format": "2.0", "run_id": "r", "agent": AGENT, "task": "t", "resumed_from": "old"},
            "resumed from old, helper on openai/gpt: t",
        ),
    ],
    "run-completed": [
        ({**ENDING, "usage": USAGE}, "done: end_turn, 1 turn, 1,200+34 tokens: 42"),
        ({**ENDING, "usage": {**USAGE, "unknown": 1}}, "done: end_turn, 1 turn, at least 1,200+34 tokens: 42"),
        ({**ENDING, "usage": {}}, "done: end_turn, 1 turn, 0+0 tokens: 42"),
        (
            {**ENDING, "status": "failed", "terminated_source": "killswitch:budget", "error": "out of money", "iterations": 2},
            "failed: end_turn by killswitch:budget, 2 turns, tokens not known: out of money",
        ),
        (
            {**ENDING, "terminated_by": "unsatisfied", "terminated_because": "no answer was good"},
            "done: unsatisfied (no answer was good), 1 turn, tokens not known: 42",
        ),
        (
            {**ENDING, "status": "failed", "terminated_because": "form: no JSON", "error": "form: no JSON"},
            "failed: end_turn, 1 turn, tokens not known: form: no JSON",
        ),
    ],
    "run-paused": [({"reason": "approval"}, "reason=approval")],
    "run-resumed": [({"reason": "approved"}, "reason=approved")],
    "agent-started": [({"agent": AGENT, "task": "Look.", "parent": "root", "call_id": "c"}, "helper on openai/gpt: Look.")],
    "agent-completed": [({**ENDING, "output": {"a": 1}}, 'done: end_turn, 1 turn, tokens not known: {"a": 1}')],
    "phase-entered": [({"phase": "attempt", "number": 2}, "phase=attempt, number=2")],
    "phase-completed": [({"phase": "attempt", "number": 2}, "phase=attempt, number=2")],
    "hook-fired": [
        (
            {"hook": "guard", "phase": "think", "timing": "before", "action": "stop", "reason": "enough"},
            "guard, before think, asked to stop: enough",
        )
    ],
    "hook-failed": [({"hook": "tap", "where": "thought", "error": "KeyError"}, "hook=tap, where=thought, error=KeyError")],
    "emission-changed": [
        ({"tag": "prompt.system", "hook": "trim", "before": "a", "after": "b"}, "prompt.system by trim: a → b")
    ],
    "emission-suppressed": [({"tag": "nudge.novelty", "hook": "quiet", "before": "x"}, "nudge.novelty by quiet: x")],
    "message-added": [
        ({"id": 1, "role": "user", "content": "Hi"}, "1 user: Hi"),
        ({"id": 2, "role": "assistant", "ref": {"request": 0}}, "2 assistant: the answer to request 0"),
        ({"id": 3, "role": "tool", "ref": {"call": "c"}, "name": "lookup"}, "3 tool: the result of lookup (call c)"),
        ({"id": 3, "role": "user", "ref": {"call": "c"}}, "3 user: the result of call c"),
        (
            {"id": 4, "role": "assistant", "replaces": [1, 2], "transient": True,
             "tool_calls": [{"id": "c", "name": "lookup"}]},
            "4 assistant (in place of 1, 2, sent once): [calls lookup]",
        ),
    ],
    "tools-defined": [({"first_id": 0, "tools": [{"name": "lookup"}, {"name": "add"}]}, "lookup, add")],
    "llm-requested": [
        ({"request": 0, "model": "m/x", "messages": [[0, 0]]}, "request 0: 1 message to m/x"),
        (
            {"request": 1, "model": "m/x", "messages": [[0, 1], [4, 5]], "attempt": 1, "purpose": "critique"},
            "request 1: 4 messages to m/x, to critique, attempt 2",
        ),
    ],
    "llm-responded": [
        ({"request": 0, "text": "Hi", "latency_ms": 12, "usage": USAGE}, "12.0 ms, 1,200+34 tokens: Hi"),
        ({"request": 0}, "0.0 ms, tokens not known: (no text)"),
        ({"request": 0, "tool_calls": [{"id": "c", "name": "add"}], "text": "t"}, "calls add, 0.0 ms, tokens not known"),
    ],
    "llm-failed": [
        ({"request": 0, "error": ERROR, "retryable": True}, "request 0: Timeout (may pass later): too slow"),
        ({"request": 0, "error": ERROR}, "request 0: Timeout: too slow"),
    ],
    "llm-retried": [({"request": 0, "attempt": 1, "delay_s": 0.5}, "request=0, attempt=1, delay_s=0.5")],
    "provider-fallback": [
        ({"from_model": "a/b", "to_model": "c/d", "reason": "down", "attempt": 3}, "a/b → c/d, failure 3: down")
    ],
    "thought": [({"request": 0, "text": "Hm."}, "Hm."), ({"request": 2}, "the text of answer 2"), ({"request": 2, "name": "1.2", "text": "Hm."}, "1.2: Hm.")],
    "plan-created": [({"plan_id": "p", "version": 0, "goal": "Win.", "steps": [{"id": "s1", "tool_name": "add", "tool_args": {"a": 1}}, "think"]}, "p v0 (Win.): s1 add(a=1); think")],
    "plan-step-changed": [
        ({"plan_id": "p", "step_id": "s1", "status": "failed", "reason": "no tool"}, "p s1 failed: no tool"),
        ({"plan_id": "p", "step_id": "s1", "status": "completed"}, "p s1 completed"),
    ],
    "reflection": [({"text": "Good.", "satisfied": True}, "satisfied: Good."), ({"text": "Hm."}, "Hm.")],
    "critique": [({"text": "Weak.", "satisfied": False, "score": 0.25}, "not satisfied, score 0.25: Weak.")],
    "assumption-recorded": [({"request": 0, "assumption": "it is metric"}, "it is metric")],
    "alternatives-considered": [
        (
            {"decision": "lookup", "alternatives": [{"option": "guess", "rejected_because": "unsafe"}]},
            "lookup: not guess (unsafe)",
        )
    ],
    "rationale-missing": [
        ({"path": "native", "call_id": "c", "tool": "add"}, "no reason stated for add (call c)")
    ],
    "structured-output-failed": [({"expected": "Plan", "error": "no goal", "attempt": 0}, "expected=Plan, error=no goal, attempt=0")],
    "tool-call-started": [
        (
            {"call_id": "c", "tool": "add", "position": 0, "args": {"a": 1, "b": "é"}, "args_hash": ""},
            'add(a=1, b="é")',
        ),
        (
            {"call_id": "c", "tool": "add", "position": 0, "args": "{broken", "args_hash": "", "source": "text"},
            "add({broken) [from text]",
        ),
    ],
    "tool-call-repaired": [({"call_id": "c", "stage": "name", "before": "Add", "after": "add"}, "call c, name: Add → add")],
    "tool-call-completed": [
        ({"call_id": "c", "tool": "add", "position": 0, "ok": True, "result": [1, 2]}, "add → [1, 2]"),
        (
            {"call_id": "c", "tool": "add", "position": 0, "ok": True, "result": "x", "cached": True, "rung": "exact"},
            "add [cached, exact] → x",
        ),
        (
            {"call_id": "c", "tool": "add", "position": 0, "ok": False, "error": ERROR, "abandoned": True},
            "add [abandoned] failed: Timeout: too slow",
        ),
        ({"call_id": "c", "tool": "add", "position": 0, "ok": False}, "add failed: no reason given"),
    ],
    "tool-call-late": [
        (
            {"call_id": "c", "tool": "add", "ok": True, "duration_ms": 31_000},
            "call_id=c, tool=add, ok=true, duration_ms=31000.0",
        )
    ],
    "strategy-selected": [({"strategy": "reactive", "reason": "short"}, "reactive: short")],
    "strategy-switch-evaluated": [
        (
            {"from_strategy": "a", "recommended_strategy": "b", "will_switch": False, "rationale": "fine"},
            "a: not to b: fine",
        ),
        ({"from_strategy": "a", "recommended_strategy": "b", "will_switch": True}, "a: switch to b"),
    ],
    "strategy-switched": [
        ({"from_strategy": "a", "to_strategy": "b", "switch_number": 1, "rationale": "stuck"}, "a → b, switch 1: stuck")
    ],
    "decision-evaluated": [({"decision": "stop", "rationale": "done"}, "stop: done")],
    "curator-decision": [({"action": "dropped", "ref": "obs:1", "rationale": "old"}, "obs:1 dropped: old")],
    "context-synthesized": [({"mode": "window", "kept": 4, "dropped": 9}, "mode=window, kept=4, dropped=9")],
    "nudge-issued": [({"nudge": "loop-detected", "text": "Move on."}, "loop-detected (info): Move on.")],
    "guardrail-violation": [
        ({"guard": "pii", "violations": ["email", "name"], "blocked": True}, "pii stopped the run: email; name")
    ],
    "verifier-verdict": [({"verified": False, "summary": "no source"}, "did not pass: no source")],
    "approval-requested": [
        ({"call_id": "c", "tool": "pay", "args_hash": "0123456789abcdef"}, "call_id=c, tool=pay, args_hash=0123456789abcdef")
    ],
    "approval-decided": [
        ({"call_id": "c", "approved": False, "why": "too much", "by": "Ann"}, "denied by Ann: too much (call c)")
    ],
    "budget-reserved": [
        (
            {"request": 0, "tokens": 5000, "cost_usd": 0.5, "output_cap": 100},
            "request=0, attempt=0, switch=budget_limit, tokens=5000, cost_usd=0.5, output_cap=100",
        )
    ],
    "killswitch-fired": [({"switch": "budget", "reason": "50,000 tokens"}, "budget (stop): 50,000 tokens")],
    "fact-recorded": [({"name": "approval", "key": "c", "value": {"ok": True}}, 'approval = {"ok": true} (for c)')],
    "kernel-state-snapshot": [
        (
            {"status": "done", "steps": 2, "messages": 3, "usage": USAGE, "terminated_by": "end_turn"},
            "done by end_turn: 2 steps, 3 messages, 1,200+34 tokens",
        )
    ],
    "final-answer": [({"output": "42", "confidence": "high"}, "42 (high confidence)")],
    "debrief-completed": [({"debrief": {"goal": "x"}}, '{"goal": "x"}')],
    "erased": [({"lines": [{"seq": 3, "previous": "h"}], "reason": "asked for"}, 'lines=[{"seq": 3, "previous": "h"}], reason=asked for')],
    "replay-served": [({"call_id": "c", "rung": "exact", "source_seq": 12}, "call c: exact, from event 12")],
    "replay-diverged": [
        (
            {"what": "another tool", "where": "root, iteration 1", "expected": "a", "actual": "b"},
            "root, iteration 1: another tool; expected a, got b",
        )
    ],
}  # fmt: skip


def test_every_kind_of_the_catalogue_has_its_sentence_here() -> None:
    """None is missing above; those of rare kinds are their fields."""
    assert SENTENCES.keys() == EVENT_TYPES.keys()


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [(kind, *case) for kind, cases in SENTENCES.items() for case in cases],
)
def test_the_sentence_says_what_happened(kind: str, fields: dict[str, Any], sentence: str) -> None:
    """The sentence of an event is exactly this."""
    assert summarise(EVENT_TYPES[kind].model_validate(fields)) == sentence


def test_an_unknown_kind_shows_its_fields() -> None:
    """An event of a newer format is not hidden."""
    assert summarise(UnknownEvent(kind="dream-dreamt", colour="red", depth=2)) == "colour=red, depth=2"  # type: ignore[call-arg]


def test_values_are_bounded() -> None:
    """A result of megabytes makes no sentence of megabytes."""
    assert len(preview("x" * 10**7)) == len(preview(["x" * 10**7])) == 4000
    assert len(arguments({"a": "x" * 10**7})) < 4100


def test_durations_have_the_unit_that_suits_them() -> None:
    """Below a second in milliseconds, from there on in seconds."""
    assert [duration_text(value) for value in (0.25, 999.9, 1000, 61_000)] == ["0.2 ms", "999.9 ms", "1.0 s", "61.0 s"]
