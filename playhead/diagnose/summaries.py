"""Every event as a sentence, shown beside its kind in a timeline.

The sentences contain text from the trace, so they are not safe for a terminal; `terminal.fit` escapes them.
"""

from __future__ import annotations

import json
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final

from playhead.diagnose.parts import content_text, usage_text
from playhead.trace import events as e
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 4000
"""The maximum number of characters of one value in a sentence."""


SENTENCES: Final = {
    "hook-fired": "{hook}, {timing} {phase}, asked to {action}",
    "provider-fallback": "{from_model} → {to_model}, failure {attempt}",
    "plan-step-changed": "{plan_id} {step_id} {status}",
    "rationale-missing": "no reason stated for {tool} (call {call_id})",
    "strategy-selected": "{strategy}",
    "strategy-switched": "{from_strategy} → {to_strategy}, switch {switch_number}",
    "decision-evaluated": "{decision}",
    "curator-decision": "{ref} {action}",
    "nudge-issued": "{nudge} ({severity}): {text}",
    "emission-changed": "{tag} by {hook}: {before} → {after}",
    "emission-suppressed": "{tag} by {hook}: {before}",
    "assumption-recorded": "{assumption}",
    "tool-call-repaired": "call {call_id}, {stage}: {before} → {after}",
    "strategy-switch-evaluated": "{from_strategy}: {will_switch:switch|not} to {recommended_strategy}",
    "guardrail-violation": "{guard} {blocked:stopped the run|noticed}: {violations}",
    "verifier-verdict": "{verified:passed|did not pass}: {summary}",
    "llm-failed": "request {request}: {error.type}{retryable: (may pass later)|}: {error.message}",
    "killswitch-fired": "{switch} ({on_trigger}{ends:, ends {ends}|})",
    "approval-decided": "{approved:approved|denied}{by: by {by}|}{why:: {why}|} (call {call_id})",
    "kernel-state-snapshot": "{status}{terminated_by: by {terminated_by}|}: {steps} steps, {messages} messages",
    "final-answer": "{output}{confidence: ({confidence} confidence)|}",
}
"""Kinds whose sentence is only their fields, and the stated reason behind them. `{field:this|that}` is `this` if the field is
set and true, else `that`."""


class _Value:
    """A field in a sentence."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __getattr__(self, name: str) -> _Value:
        """Return a field of its value."""
        return _Value(getattr(self._value, name))

    def __format__(self, words: str) -> str:
        """Return its value, or one of two texts, the second of which contains no `|`."""
        if words:
            yes, _, no = words.rpartition("|")
            return yes if self._value else no
        return "; ".join(map(preview, self._value)) if isinstance(self._value, tuple) else preview(self._value)


@singledispatch
def summarise(event: e.EventBase) -> str:
    """Return the event in a sentence; for a rare kind, or one that this version does not know, its fields."""
    if event.kind in SENTENCES:
        reason = getattr(event, "reason", None) or getattr(event, "rationale", None)
        fields = {name: _Value(value) for name, value in event.__dict__.items()}
        return _because(
            SENTENCES[event.kind].format_map(fields), reason.why if isinstance(reason, Rationale) else reason
        )
    dumped = event.model_dump(exclude={"kind"})
    return _clauses(f"{name}={preview(value)}" for name, value in dumped.items() if value not in (None, "", (), []))


def preview(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return the beginning of a JSON value: strings bare, everything else as JSON."""
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))[:LONGEST]


def arguments(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a call's arguments in Python syntax."""
    if not isinstance(value, dict):
        return preview(value)
    return ", ".join(f"{name}={json.dumps(each, ensure_ascii=False)[:LONGEST]}" for name, each in value.items())


def duration_text(milliseconds: float) -> str:
    """Return a duration in milliseconds, or in seconds from one second on."""
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"  # noqa: PLR2004


def ending_text(ending: e.RunCompleted | e.AgentCompleted) -> str:
    """Return how a run ended, in the words of its codes."""
    by = "" if ending.terminated_source == "kernel" else f" by {ending.terminated_source}"
    return f"{ending.status}: {ending.terminated_by}{by}"


def _clauses(parts: Iterable[str | None]) -> str:
    return ", ".join(part for part in parts if part)


def _because(text: str, reason: str | None) -> str:
    return f"{text}: {reason}" if reason else text


def _agent(event: e.RunStarted | e.AgentStarted) -> str:
    return f"{event.agent.name} on {event.agent.model}: {content_text(event.task)}"


# --- run --------------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.RunStarted) -> str:
    origin = f"replay of {event.replay_of}, " if event.replay_of else ""
    origin += f"resumed from {event.resumed_from}, " if event.resumed_from else ""
    origin += f"imported from {event.imported.format}, " if event.imported else ""
    origin += "credentials not redacted, " if event.redaction == "off" else ""
    return origin + _agent(event)


@summarise.register
def _(event: e.AgentStarted) -> str:
    return _agent(event)


@summarise.register(e.RunCompleted)
@summarise.register(e.AgentCompleted)
def _(event: e.RunCompleted | e.AgentCompleted) -> str:
    outcome = event.error if event.error is not None else preview(event.output) if event.output is not None else None
    turns = f"{event.iterations} turn{'' if event.iterations == 1 else 's'}"
    because = event.terminated_because
    why = f" ({because})" if because and because != event.error else ""
    return _because(_clauses([f"{ending_text(event)}{why}", turns, usage_text(event.usage)]), outcome)


# --- thread -----------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.MessageAdded) -> str:
    notes = [f"in place of {', '.join(map(str, event.replaces))}" if event.replaces else None]
    notes.append("sent once" if event.transient else None)
    note = f" ({_clauses(notes)})" if any(notes) else ""
    calls = f"[calls {', '.join(call.name for call in event.tool_calls)}]" if event.tool_calls else ""
    content = content_text(event.content) if event.ref is None else _reference(event.ref, event.name)
    return f"{event.id} {event.role}{note}: {' '.join(filter(None, [content, calls]))}"


def _reference(ref: e.MessageRef, tool: str | None) -> str:
    if ref.call is None:
        return f"the answer to request {ref.request}"
    return f"the result of {tool} (call {ref.call})" if tool else f"the result of call {ref.call}"


@summarise.register
def _(event: e.ToolsDefined) -> str:
    return ", ".join(spec.name for spec in event.tools)


# --- model ------------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.LlmRequested) -> str:
    count = sum(last - first + 1 for first, last in event.messages)
    attempt = f"attempt {event.attempt + 1}" if event.attempt else None
    purpose = None if event.purpose == "think" else f"to {event.purpose}"
    purpose = purpose if event.step is None else f"for step {event.step}"
    messages = f"{count} message{'' if count == 1 else 's'} to {event.model}"
    return f"request {event.request}: {_clauses([messages, purpose, attempt])}"


@summarise.register
def _(event: e.LlmResponded) -> str:
    calls = f"calls {', '.join(call.name for call in event.tool_calls)}" if event.tool_calls else None
    figures = _clauses([calls, duration_text(event.latency_ms), usage_text(event.usage.of_answer())])
    return figures if calls else _because(figures, event.text or "(no text)")


# --- reasoning --------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.Thought) -> str:
    text = event.text if event.text is not None else f"the text of answer {event.request}"
    return text if event.name is None else f"{event.name}: {text}"


@summarise.register
def _(event: e.PlanCreated) -> str:
    steps = "; ".join(_step(each) for each in event.steps[:20])
    more = f"; and {len(event.steps) - 20} more" if len(event.steps) > 20 else ""  # noqa: PLR2004
    return _because(f"{event.plan_id} v{event.version} ({event.goal}): {steps}{more}", event.reason)


def _step(step: Any) -> str:  # noqa: ANN401 - JSON, typed by the strategy
    if not isinstance(step, dict):
        return preview(step)
    tool = step.get("tool_name")
    called = f"{tool}({arguments(step.get('tool_args') or {})})" if isinstance(tool, str) else None
    what = called or step.get("title") or step.get("instruction") or step
    return " ".join(preview(each) for each in (step.get("id"), what) if each is not None)


@summarise.register(e.Reflection)
@summarise.register(e.Critique)
def _(event: e.Reflection | e.Critique) -> str:
    verdict = {True: "satisfied", False: "not satisfied", None: None}[event.satisfied]
    score, thought = getattr(event, "score", None), getattr(event, "thought", None)
    opinion = _clauses([thought, verdict, None if score is None else f"score {score:g}"])
    return f"{opinion}: {event.text}" if opinion else event.text


@summarise.register
def _(event: e.AlternativesConsidered) -> str:
    rejected = "; ".join(f"not {each.name or each.option} ({each.rejected_because})" for each in event.alternatives)
    kept = f" (kept {', '.join(event.kept) or 'none'})" if event.kept is not None else ""
    return _because(f"{event.decision}{kept}", rejected)


# --- tools ------------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.ToolCallStarted) -> str:
    source = "" if event.source == "native" else f" [from {event.source}]"
    return f"{event.tool}({arguments(event.args)}){source}"


@summarise.register
def _(event: e.ToolCallCompleted) -> str:
    flags = ["cached" if event.cached else None, "abandoned" if event.abandoned else None, event.rung]
    note = f" [{_clauses(flags)}]" if any(flags) else ""
    if event.ok:
        return f"{event.tool}{note} → {preview(event.result)}"
    return f"{event.tool}{note} failed: {f'{event.error.type}: {event.error.message}' if event.error else 'no reason given'}"


# --- control ----------------------------------------------------------------------------------------------------------


@summarise.register
def _(event: e.Erased) -> str:
    return _because(
        f"content of {len(event.lines)} events: {preview([line.seq for line in event.lines])}", event.reason
    )
