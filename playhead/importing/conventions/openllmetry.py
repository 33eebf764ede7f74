"""OpenLLMetry (Traceloop): `gen_ai.prompt.0.content`, `gen_ai.completion.0.tool_calls.0.name`, `traceloop.span.kind`.

See traceloop/openllmetry, `opentelemetry-instrumentation-openai`, `shared/chat_wrappers.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.attributes import items_of
from playhead.importing.conventions.messages import call_of, content_of, role_of
from playhead.importing.conventions.openinference import parameters_of
from playhead.importing.conventions.shapes import spec_of
from playhead.importing.readings import AgentReading, ForeignMessage, ModelReading, ToolReading
from playhead.importing.values import NOTHING, object_of, parsed_json, text_of

if TYPE_CHECKING:
    from playhead.importing.attributes import Attributes
    from playhead.importing.readings import Kind
    from playhead.importing.spans import ForeignSpan

NAME: Final = "openllmetry"
_KINDS: Final[dict[str, Kind]] = {"tool": "tool", "agent": "agent", "workflow": "other", "task": "other"}
_WRAPPED: Final = ("inputs", "input", "kwargs")


def kind(span: ForeignSpan, attributes: Attributes) -> Kind | None:  # noqa: ARG001 - every convention is asked so
    """Return what kind of span it is; None when it is none of this convention."""
    said = attributes.text("traceloop.span.kind")
    if said is not None:
        return _KINDS.get(said, "other")
    return "model" if attributes.text("llm.request.type") in ("chat", "completion") else None


def model(span: ForeignSpan, attributes: Attributes) -> ModelReading:  # noqa: ARG001
    """Return the model call; names that it shares with the GenAI conventions are read there."""
    answers = tuple(map(_message, attributes.items("gen_ai.completion")))
    reasons = [text_of(each.get("finish_reason")) for each in attributes.items("gen_ai.completion")]
    tools = tuple(filter(None, (spec_of(_definition(each)) for each in attributes.items("llm.request.functions"))))
    given = {
        name: attributes.value(f"llm.{name}")
        for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty")
    }
    return ModelReading(
        parameters=parameters_of({name: value for name, value in given.items() if value is not NOTHING})[0],
        messages=tuple(map(_message, attributes.items("gen_ai.prompt"))) or None,
        answer=answers[0] if answers else None,
        finish_reason=next(filter(None, reasons), None),
        tools=tools or None,
    )


def tool(span: ForeignSpan, attributes: Attributes) -> ToolReading:
    """Return the tool call."""
    output = attributes.value("traceloop.entity.output")
    parsed = parsed_json(output) if isinstance(output, str) else NOTHING
    return ToolReading(
        name=attributes.text("traceloop.entity.name") or span.name.removesuffix(".tool") or None,
        arguments=_arguments(object_of(attributes.value("traceloop.entity.input"))),
        result=output if parsed is NOTHING else parsed,
    )


def agent(span: ForeignSpan, attributes: Attributes) -> AgentReading:  # noqa: ARG001
    """Return what the span says as an agent."""
    is_agent = attributes.text("traceloop.span.kind") == "agent"
    return AgentReading(name=attributes.text("traceloop.entity.name") if is_agent else None)


def _message(item: dict[str, Any]) -> ForeignMessage:
    role = role_of(item.get("role", "assistant"))
    content = item.get("content")
    parsed = parsed_json(content) if isinstance(content, str) and content.startswith("[{") else NOTHING
    read, lost = content_of(content if parsed is NOTHING else parsed)
    calls = (
        call_of(each.get("name"), each.get("arguments"), each.get("id"))
        for each in items_of(item.get("tool_calls"))
        if isinstance(each, dict)
    )
    return ForeignMessage(
        role,
        read,
        tuple(call for call in calls if call is not None),
        call_id=text_of(item.get("tool_call_id")) if role == "tool" else None,
        lost=lost,
    )


def _arguments(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments out of what they are wrapped in, where a call without any has an empty object."""
    wrapped = [given[name] for name in _WRAPPED if isinstance(given.get(name), dict)]
    if wrapped and not any(wrapped):
        return {}
    for name in _WRAPPED:
        given = given[name] if isinstance(given.get(name), dict) and given[name] else given
    return given or None


def _definition(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "parameters": object_of(item.get("parameters"))}
