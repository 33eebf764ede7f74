"""OpenTelemetry's GenAI conventions: `gen_ai.operation.name`, `gen_ai.input.messages`, `gen_ai.tool.call.*`.

Content that stands in events alone, as up to version 1.36, is not read: it was not captured then. See
open-telemetry/semantic-conventions, `docs/gen-ai`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.conventions.messages import answer_of, arguments_of, message_of, messages_of
from playhead.importing.conventions.openinference import parameters_of
from playhead.importing.conventions.shapes import finish_reason_of, spec_of, unwrapped_result, usage_of
from playhead.importing.readings import AgentReading, ForeignMessage, ModelReading, ToolReading
from playhead.importing.values import NOTHING, count_of, first_text, list_of

if TYPE_CHECKING:
    from playhead.importing.attributes import Attributes
    from playhead.importing.readings import Kind
    from playhead.importing.spans import ForeignSpan

NAME: Final = "gen_ai"
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "model"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
}
_TOKENS: Final = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "cache_read_tokens": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    "cache_write_tokens": ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
    "reasoning_tokens": ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
}
_TOTAL: Final = "gen_ai.usage.total_tokens"
_PARAMETERS: Final = "gen_ai.request."
_NO_PARAMETERS: Final = ("model", "choice.count", "encoding_formats")


def kind(span: ForeignSpan, attributes: Attributes) -> Kind | None:  # noqa: ARG001 - every convention is asked so
    """Return what kind of span it is; None when it is none of this convention."""
    operation = attributes.text("gen_ai.operation.name")
    if operation is not None:
        return _KINDS.get(operation, "other")
    if attributes.text("gen_ai.tool.name") is not None:
        return "tool"
    return "model" if attributes.text("gen_ai.request.model") is not None else None


def model(span: ForeignSpan, attributes: Attributes) -> ModelReading:  # noqa: ARG001 - every convention is asked so
    """Return the model call."""
    written = messages_of(attributes.json("gen_ai.input.messages"))
    answered = attributes.json("gen_ai.output.messages")
    reasons = list_of(attributes.value("gen_ai.response.finish_reasons"))
    definitions = attributes.json("gen_ai.tool.definitions")
    tools = tuple(filter(None, map(spec_of, list_of(definitions))))
    usage, unread = usage_of(attributes, _TOKENS, _TOTAL)
    parameters, unrecorded = _parameters(attributes)
    return ModelReading(
        model=attributes.text("gen_ai.request.model"),
        answered_by=attributes.text("gen_ai.response.model"),
        provider=attributes.text("gen_ai.provider.name", "gen_ai.system"),
        address=_address(attributes),
        parameters=parameters,
        unrecorded=unrecorded,
        messages=_with_instructions(attributes.json("gen_ai.system_instructions"), written),
        answer=answer_of(answered),
        finish_reason=first_text(reasons) or finish_reason_of(answered),
        usage=usage,
        unread=unread,
        tools=tools if tools or definitions == [] else None,
    )


def tool(span: ForeignSpan, attributes: Attributes) -> ToolReading:
    """Return the tool call."""
    arguments, raw = arguments_of(
        _plain(attributes.json("gen_ai.tool.call.arguments"), attributes, "gen_ai.tool.call.arguments")
    )
    result, call_id = unwrapped_result(
        _plain(attributes.json("gen_ai.tool.call.result"), attributes, "gen_ai.tool.call.result")
    )
    return ToolReading(
        name=attributes.text("gen_ai.tool.name") or span.name.removeprefix("execute_tool ") or None,
        call_id=attributes.text("gen_ai.tool.call.id") or call_id,
        arguments=arguments,
        raw=raw,
        result=result,
        description=attributes.text("gen_ai.tool.description"),
    )


def agent(span: ForeignSpan, attributes: Attributes) -> AgentReading:  # noqa: ARG001 - every convention is asked so
    """Return what the span says as an agent."""
    is_agent = attributes.text("gen_ai.operation.name") in ("invoke_agent", "invoke_workflow")
    asked = messages_of(attributes.json("gen_ai.input.messages")) if is_agent else None
    answer = answer_of(list_of(attributes.json("gen_ai.output.messages"))[-1:]) if is_agent else None
    task = next(
        (each.content for each in reversed(asked or ()) if each.role == "user" and isinstance(each.content, str)), None
    )
    return AgentReading(
        name=attributes.text("gen_ai.agent.name") if is_agent else None,
        task=task,
        output=answer.content if answer is not None and isinstance(answer.content, str) and answer.content else NOTHING,
    )


def _plain(parsed: Any, attributes: Attributes, name: str) -> Any:  # noqa: ANN401
    """Return the value that was read, or the text when it is no JSON; a text that is a bare JSON text or number stays one."""
    value = attributes.value(name)
    return value if isinstance(value, str) and not isinstance(parsed, (dict, list)) else parsed


def _address(attributes: Attributes) -> str | None:
    host, port = attributes.text("server.address"), count_of(attributes.value("server.port"))
    if host is None or not port or port == 443:  # noqa: PLR2004 - https
        return None
    return f"http://{host}:{port}"


def _parameters(attributes: Attributes) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    given = {name[len(_PARAMETERS) :]: value for name, value in attributes.flat.items() if name.startswith(_PARAMETERS)}
    kept = {
        ("stop" if name == "stop_sequences" else name): value
        for name, value in given.items()
        if name not in _NO_PARAMETERS
    }
    return parameters_of(kept)


def _with_instructions(
    instructions: Any,  # noqa: ANN401
    messages: tuple[ForeignMessage, ...] | None,
) -> tuple[ForeignMessage, ...] | None:
    parts = list_of(instructions) or ([instructions] if isinstance(instructions, str) and instructions else [])
    if not parts:
        return messages
    said = tuple(each for each in message_of({"role": "system", "parts": parts}))
    return (*said, *(messages or ()))
