"""Recordings with a secret in every text that a user, a model, a tool or an application may have written."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.trace import events as e
from playhead.trace.header import TelemetryContext
from playhead.trace.types import ImagePart, TextPart
from tests.spans.spans import golden

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

SECRET: Final = "SECRET"
NAMES: Final = frozenset(
    {
        # who, and which: never hidden
        *("agent.name", "model", "address", "strategy", "from_model", "to_model", "finish_reason", "run_id", "task_id"),
        *("call_id", "tool_call_id", "id", "call", "plan_id", "step_id", "step", "thought", "kept", "parent"),
        *("session_id", "user_id", "session", "switch", "hook", "guard", "nudge", "recommended_strategy"),
        *("strategy_used", "from_strategy", "to_strategy", "tool", "tools.name", "versions", "replay_of"),
        *("resumed_from", "purpose", "error.type", "service"),
        # words of Playhead's own
        *("kind", "type", "role", "status", "format", "ended", "rung", "source", "stage", "action", "timing", "at"),
        *("terminated_by", "terminated_source", "on_trigger", "args_hash", "path", "mode", "phase", "severity"),
        *("risk", "confidence", "prompt_bound", "replay_mode", "trace_id", "span_id", "decision", "tag"),
    }
)
"""Fields, some with the field that they are in, whose texts stay: ids, names that the program gave, and words of Playhead's."""
KEPT: Final = frozenset({"agent", "chat", "imported", "telemetry"})
"""Fields that stay as a whole in what begins an agent, but for what is planted there by itself."""
APPLICATION: Final = TelemetryContext(
    session_id="session",
    user_id="user",
    tags=(f"{SECRET}-tag~APPLICATION~",),
    metadata={
        f"{SECRET}-key~APPLICATION~": {f"{SECRET}-inner~APPLICATION~": f"{SECRET}-value~APPLICATION~"},
        "playhead": {"mine": f"{SECRET}-same-name~APPLICATION~"},
    },
    prompt_template=f"{SECRET}-template~TEMPLATE~",
    prompt_template_version=f"{SECRET}-version~TEMPLATE~",
    prompt_template_variables={f"{SECRET}-variable~TEMPLATE~": f"{SECRET}-content~TEMPLATE~"},
    service={"service.name": "shop"},
)
_FOUND: Final = re.compile(rb"SECRET[-\w.]*~([A-Z]+)~")
_FROM_OUTSIDE: Final = (e.LlmResponded, e.LlmFailed, e.ToolCallCompleted, e.FactRecorded)
"""What a later message of the run may quote."""
_KINDS: Final = {
    "content": "TASK",
    "thinking": "REASONING",
    "text": "ANSWER",
    "tool_calls": "ARGUMENT",
    "args": "ARGUMENT",
    "result": "RESULT",
    "output": "ANSWER",
    "tools": "TOOL",
    "parameters": "PARAMETER",
    "steps": "PLAN",
    "alternatives": "ANSWER",
    "understood": "QUOTING",
}
"""Kinds of text, by the field of an event that holds it; all others are words, which may quote anything."""


@cache
def planted(name: str) -> tuple[Record, ...]:
    """Return a golden recording in which every text is a secret; what is called besides, in words and out of them, too.

    Each secret says of what kind it is: `SECRET-text~ANSWER~`.
    """
    records: list[Record] = []
    begins = True
    for record in golden(name).records:
        begins = begins and not isinstance(record.event, _FROM_OUTSIDE)
        records.append(_changed(record, begins=begins))
    last = records[-1]
    more = [last._replace(event=event) for event in _more()]
    return tuple(_in_order([*records[:-1], *more, last]))


def kinds_in(sent: bytes) -> set[str]:
    """Return of which kinds the secrets are that stand in bytes."""
    return {found.decode() for found in _FOUND.findall(sent)}


def _parts(kind: str, image: str) -> list[dict[str, Any]]:
    parts = (
        TextPart(text=f"{SECRET}-task~{kind}~"),
        ImagePart(url=f"data:image/png;base64,{SECRET}IMAGE~{image}~"),
        ImagePart(url=f"https://host.test/{SECRET}.png~{image}~"),
    )
    return [part.model_dump() for part in parts]


def _kind(event: EventBase, field: str, *, begins: bool) -> str:
    """Return of which kind the text of a field is."""
    if not isinstance(event, e.MessageAdded):
        only_words = isinstance(event, (e.NudgeIssued, e.Critique))
        return "WORD" if only_words else _KINDS.get(field, "WORD")
    if field != "content":
        return "QUOTING" if field == "followed_by" else _KINDS.get(field, "WORD")
    said = {"assistant": "ANSWER", "tool": "RESULT"}.get(event.role, "QUOTING")
    return {"system": "SYSTEM", "user": "TASK"}.get(event.role, said) if begins else said


def _in_order(records: Iterable[Record]) -> list[Record]:
    return [record._replace(seq=seq) for seq, record in enumerate(records)]


def _changed(record: Record, *, begins: bool) -> Record:
    event = record.event
    told = event.model_dump(mode="json")
    secret: dict[str, Any] = {
        key: value if key in KEPT else _secret(key, value, _kind(event, key, begins=begins))
        for key, value in told.items()
    }
    if isinstance(event, (e.RunStarted, e.AgentStarted)):
        of_run = isinstance(event, e.RunStarted)
        secret["task"] = _parts("TASK", "IMAGE") if of_run else _parts("SUBTASK", "SUBTASK")
        secret["agent"] = told["agent"] | {"system_prompt": f"{SECRET}-system", "parameters": {SECRET: SECRET}}
    if isinstance(event, e.RunStarted):
        secret["telemetry"] = APPLICATION.model_dump(mode="json")
    if isinstance(event, e.LlmResponded):
        secret["thinking"] = f"{SECRET}-thinking~REASONING~"
    if begins and isinstance(event, e.MessageAdded) and event.role == "user":
        secret["content"] = _parts("TASK", "IMAGE")
    return record._replace(event=type(event).model_validate(secret))


def _secret(path: str, value: Any, kind: str) -> Any:
    """Return a JSON value with secrets for its texts and for the names of its members that no schema gives."""
    field = path.rpartition(".")[2]
    if field in NAMES or path in NAMES:
        return value
    if isinstance(value, str):
        return f"{SECRET}-{field}~{kind}~"
    if isinstance(value, list):
        return [_secret(path, each, kind) for each in value]
    if not isinstance(value, dict):
        return value
    if field in {"args", "arguments", "parameters", "result", "output", "before", "after", "value"}:
        return {f"{SECRET}-{key}~{kind}~": _secret(f"{field}.x", each, kind) for key, each in value.items()}
    return {key: _secret(f"{field}.{key}", each, kind) for key, each in value.items()}


def _more() -> Iterable[EventBase]:
    """Yield what few runs have: a tool that is not there, and everything that steers a run."""
    error = e.ErrorInfo(type="ToolNotFoundError", message=f"{SECRET}-error~WORD~")
    yield e.ToolCallStarted(call_id="invented", tool=f"{SECRET}-tool~WORD~", position=0, args={}, args_hash="")
    yield e.ToolCallRepaired(
        call_id="invented", stage="name", before=f"{SECRET}-before~WORD~", after=f"{SECRET}-after~WORD~"
    )
    yield e.ApprovalDecided(call_id="invented", approved=False, why=f"{SECRET}-why~WORD~", by=f"{SECRET}-by~WORD~")
    yield e.ToolCallCompleted(call_id="invented", tool=f"{SECRET}-tool~WORD~", position=0, ok=False, error=error)
    yield e.LlmRequested(
        request=9_000, model="m/x", messages=(), parameters={f"{SECRET}-key~PARAMETER~": f"{SECRET}-value~PARAMETER~"}
    )
    yield e.LlmFailed(request=9_000, error=error)
    yield e.ProviderFallback(from_model="m/x", to_model="m/y", reason=f"{SECRET}-reason~WORD~", attempt=1)
    yield e.KillswitchFired(switch="stop_when", reason=f"{SECRET}-reason~WORD~")
    yield e.GuardrailViolation(guard="guard", violations=(f"{SECRET}-violation~WORD~",), blocked=True)
    yield e.VerifierVerdict(verified=False, summary=f"{SECRET}-summary~WORD~", checks=(f"{SECRET}-check~WORD~",))
    yield e.RunPaused(reason=f"{SECRET}-reason~WORD~")
    yield e.RunResumed(reason=f"{SECRET}-reason~WORD~")
    yield e.NudgeIssued(nudge="nudge", text=f"{SECRET}-text~WORD~")
    yield e.HookFired(hook="hook", phase="think", timing="before", action="stop", reason=f"{SECRET}-reason~WORD~")
