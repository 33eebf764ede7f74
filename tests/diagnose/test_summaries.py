"""Sentences of events that no other test shows: the debrief's table and the golden timeline have the rest."""

from __future__ import annotations

from typing import Any

import pytest

from playhead.diagnose.summaries import arguments, duration_text, preview, summarise
from playhead.trace.events import EVENT_TYPES, UnknownEvent
from playhead.trace.header import AgentHeader

AGENT = AgentHeader(name="helper", model="openai/gpt")
ENDING = {"status": "done", "terminated_by": "end_turn", "terminated_source": "kernel", "output": "42", "iterations": 1}
USAGE = {"input_tokens": 1200, "output_tokens": 34}
STARTED = {"format": "2.0", "run_id": "r", "agent": AGENT, "task": "t"}
CALL = {"call_id": "c", "tool": "add", "position": 0}
STEPS = [{"id": "s1", "tool_name": "add", "tool_args": {"a": 1}}, "think"]

SENTENCES: list[tuple[str, dict[str, Any], str]] = [
    ("run-started", {**STARTED, "replay_of": "old"}, "replay of old, helper on openai/gpt: t"),
    (
        "run-completed",
        {**ENDING, "status": "failed", "terminated_source": "killswitch:budget", "error": "out of money"},
        "failed: end_turn by killswitch:budget, 1 turn, tokens not known: out of money",
    ),
    ("message-added", {"id": 2, "role": "assistant", "ref": {"request": 0}}, "2 assistant: the answer to request 0"),
    (
        "llm-requested",
        {"request": 1, "model": "m/x", "messages": [[0, 1], [4, 5]], "attempt": 1, "purpose": "critique"},
        "request 1: 4 messages to m/x, to critique, attempt 2",
    ),
    ("llm-responded", {"request": 0}, "0.0 ms, tokens not known: (no text)"),
    ("tool-call-started", {**CALL, "args": "{broken", "args_hash": "", "source": "text"}, "add({broken) [from text]"),
    (
        "tool-call-completed",
        {**CALL, "ok": True, "result": "x", "cached": True, "rung": "exact"},
        "add [cached, exact] → x",
    ),
    ("replay-served", {"call_id": "c", "rung": "exact", "source_seq": 12}, "call_id=c, rung=exact, source_seq=12"),
]


@pytest.mark.parametrize(("kind", "fields", "sentence"), SENTENCES)
def test_the_sentence_says_what_happened(kind: str, fields: dict[str, Any], sentence: str) -> None:
    """The sentence of an event is exactly this; a rare kind shows its fields."""
    assert summarise(EVENT_TYPES[kind].model_validate(fields)) == sentence


def test_an_unknown_kind_shows_its_fields() -> None:
    """An event of a newer format is not hidden."""
    assert summarise(UnknownEvent(kind="dream-dreamt", colour="red", depth=2)) == "colour=red, depth=2"  # type: ignore[call-arg]


def test_values_are_bounded() -> None:
    """A result of megabytes makes no sentence of megabytes; a duration has the unit that suits it."""
    assert len(preview("x" * 10**7)) == len(preview(["x" * 10**7])) == 4000
    assert len(arguments({"a": "x" * 10**7})) < 4100
    assert [duration_text(value) for value in (0.25, 999.9, 1000, 61_000)] == ["0.2 ms", "999.9 ms", "1.0 s", "61.0 s"]
