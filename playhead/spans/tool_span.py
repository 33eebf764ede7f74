"""The span of a tool call: TOOL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openinference.semconv.trace import SpanAttributes as S

from playhead.spans.failures import failed
from playhead.spans.texts import clean, json_taken_apart
from playhead.spans.tree import OK

if TYPE_CHECKING:
    from opentelemetry.trace import Status
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import Rationale, ToolSpec
    from playhead.trace.values import JsonValue


def call_attributes(
    started: ToolCallStarted, record: Record, tool: ToolSpec | None, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a call begins with; `tool.parameters` is the schema, the arguments are `input.value`."""
    name = masking.tool_name(started.tool, tool)
    attributes: dict[str, AttributeValue] = {S.TOOL_NAME: name, S.TOOL_ID: clean(started.call_id)}
    if record.iteration is not None:
        attributes["agent.iteration"] = record.iteration
    if tool is not None and masking.tools:
        attributes[S.TOOL_DESCRIPTION] = clean(tool.description)
        attributes[S.TOOL_PARAMETERS] = json_taken_apart(tool.parameters)
    attributes.update(masking.passed(started.args))
    return attributes


def call_metadata(
    started: ToolCallStarted, record: Record, repaired: list[str] | None, masking: Masking
) -> dict[str, Any]:
    """Return what else is worth knowing of a call, the model's own reason first of all."""
    metadata: dict[str, Any] = {
        "owner": record.owner,
        "seq": record.seq,
        "position": started.position,
        "source": started.source,
    }
    if started.rationale is not None and masking.words:
        metadata["rationale"] = _stated(started.rationale)
    if repaired:
        metadata["repaired"] = repaired
    return metadata


def brought(completed: ToolCallCompleted) -> JsonValue:
    """Return what a call brought: its result, or what the model was told in place of one."""
    return completed.result if completed.ok else completed.observation()


def result_attributes(
    completed: ToolCallCompleted, tool: ToolSpec | None, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a call ends with."""
    return {"tool.success": completed.ok, **masking.result(brought(completed), tool, ok=completed.ok)}


def result_status(span: OpenSpan, completed: ToolCallCompleted, now: int, masking: Masking) -> Status:
    """Return how a call ended."""
    facts = {"cached": completed.cached, "abandoned": completed.abandoned}
    span.metadata.update({name: True for name, fact in facts.items() if fact})
    told = {"ended": completed.ended, "rung": completed.rung}
    span.metadata.update({name: value for name, value in told.items() if value is not None})
    if completed.ok:
        return OK
    error = completed.error
    kind, message = (error.type, error.message) if error else (completed.ended or "error", "the call failed")
    return failed(span, kind, message, now, masking)


def _stated(rationale: Rationale) -> dict[str, Any]:
    return rationale.model_dump(mode="json", exclude_defaults=True)
