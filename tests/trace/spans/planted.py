"""Recordings with a secret in every text that a user, a model, a tool or an application may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.trace import events as e
from playhead.trace.telemetry import TelemetryContext
from playhead.trace.types import ImagePart, TextPart
from tests.trace.spans.span_runs import golden

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

SECRET: Final = "SECRET"
NAMES: Final = frozenset(
    {
        # who, and which: never hidden
        *("agent.name", "model", "address", "strategy", "from_model", "to_model", "finish_reason", "run_id", "task_id"),
        *("call_id", "tool_call_id", "id", "call", "plan_id", "step_id", "parent", "session_id", "user_id", "session"),
        *("switch", "hook", "guard", "nudge", "strategy_used", "from_strategy", "to_strategy", "recommended_strategy"),
        *("tool", "tools.name", "versions", "replay_of", "resumed_from", "purpose", "error.type", "service"),
        # words of Playhead's own
        *("kind", "type", "role", "status", "format", "ended", "rung", "source", "stage", "action", "timing", "at"),
        *("terminated_by", "terminated_source", "on_trigger", "args_hash", "path", "mode", "phase", "severity"),
        *("risk", "confidence", "prompt_bound", "task_phase", "replay_mode", "trace_id", "span_id", "decision", "tag"),
    }
)
"""Fields, some with the field that they are in, whose texts stay: ids, names that the program gave, and words of Playhead's."""
KEPT: Final = frozenset({"agent", "chat", "imported", "telemetry", "guidance"})
"""Fields that stay as a whole in what begins an agent, but for what is planted there by itself."""
APPLICATION: Final = TelemetryContext(
    session_id="session",
    user_id="user",
    tags=(f"{SECRET}-tag",),
    metadata={f"{SECRET}-key": {f"{SECRET}-inner": f"{SECRET}-value"}, "playhead": {"mine": f"{SECRET}-same-name"}},
    prompt_template=f"{SECRET}-template",
    prompt_template_version=f"{SECRET}-version",
    prompt_template_variables={f"{SECRET}-variable": f"{SECRET}-content"},
    service={"service.name": "shop"},
)
IMAGES: Final = (
    TextPart(text=f"{SECRET}-task"),
    ImagePart(url=f"data:image/png;base64,{SECRET}IMAGE"),
    ImagePart(url=f"https://host.test/{SECRET}.png"),
)


def planted(name: str) -> list[Record]:
    """Return a golden recording in which every text is a secret; what is called besides, in words and out of them, too."""
    recording = golden(name)
    records = [_changed(record) for record in recording.records]
    last = records[-1]
    more = [last._replace(event=event) for event in _more()]
    return _in_order([*records[:-1], *more, last])


def _in_order(records: Iterable[Record]) -> list[Record]:
    return [record._replace(seq=seq) for seq, record in enumerate(records)]


def _changed(record: Record) -> Record:
    event = record.event
    told = event.model_dump(mode="json")
    secret: dict[str, Any] = {key: value if key in KEPT else _secret(key, value) for key, value in told.items()}
    if isinstance(event, (e.RunStarted, e.AgentStarted)):
        secret["task"] = [part.model_dump() for part in IMAGES]
        secret["agent"] = told["agent"] | {"system_prompt": f"{SECRET}-system", "parameters": {SECRET: SECRET}}
    if isinstance(event, e.RunStarted):
        secret["telemetry"] = APPLICATION.model_dump(mode="json")
    return record._replace(event=type(event).model_validate(secret))


def _secret(path: str, value: Any) -> Any:
    """Return a JSON value with secrets for its texts and for the names of its members that no schema gives."""
    field = path.rpartition(".")[2]
    if field in NAMES or path in NAMES:
        return value
    if isinstance(value, str):
        return f"{SECRET}-{field}"
    if isinstance(value, list):
        return [_secret(path, each) for each in value]
    if not isinstance(value, dict):
        return value
    if field in {"args", "arguments", "parameters", "result", "output", "before", "after", "value"}:
        return {f"{SECRET}-{key}": _secret(f"{field}.x", each) for key, each in value.items()}
    return {key: _secret(f"{field}.{key}", each) for key, each in value.items()}


def _more() -> Iterable[EventBase]:
    """Yield what few runs have: a tool that is not there, and everything that steers a run."""
    error = e.ErrorInfo(type="ToolNotFoundError", message=f"{SECRET}-error")
    yield e.ToolCallStarted(call_id="invented", tool=f"{SECRET}-tool", position=0, args={}, args_hash="")
    yield e.ToolCallHealed(call_id="invented", stage="name", before=f"{SECRET}-before", after=f"{SECRET}-after")
    yield e.ApprovalDecided(call_id="invented", approved=False, why=f"{SECRET}-why", by=f"{SECRET}-by")
    yield e.ToolCallCompleted(call_id="invented", tool=f"{SECRET}-tool", position=0, ok=False, error=error)
    yield e.LlmRequested(request=9_000, model="m/x", messages=(), parameters={f"{SECRET}-key": f"{SECRET}-value"})
    yield e.LlmFailed(request=9_000, error=error)
    yield e.ProviderFallback(from_model="m/x", to_model="m/y", reason=f"{SECRET}-reason", attempt=1)
    yield e.KillswitchFired(switch="stop_when", reason=f"{SECRET}-reason")
    yield e.GuardrailViolation(guard="guard", violations=(f"{SECRET}-violation",), blocked=True)
    yield e.VerifierVerdict(verified=False, summary=f"{SECRET}-summary", checks=(f"{SECRET}-check",))
    yield e.RunPaused(reason=f"{SECRET}-reason")
    yield e.RunResumed(reason=f"{SECRET}-reason")
    yield e.NudgeIssued(nudge="nudge", text=f"{SECRET}-text")
    yield e.HookFired(hook="hook", phase="think", timing="before", action="stop", reason=f"{SECRET}-reason")
    yield e.DebriefCompleted(debrief={"summary": f"{SECRET}-summary"})
