"""OpenTelemetry's GenAI conventions: `gen_ai.operation.name`, `gen_ai.input.messages`, `gen_ai.tool.call.*`.

The older forms are read too: an event for each message (`gen_ai.user.message`, `gen_ai.choice`, up to version 1.36), and
`gen_ai.content.prompt`. See open-telemetry/semantic-conventions, `docs/gen-ai`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.conventions.finish import finish_reason_of
from playhead.importing.conventions.messages import answer_of, arguments_of, message_of, messages_of
from playhead.importing.conventions.openinference import parameters_of
from playhead.importing.conventions.results import unwrapped_result
from playhead.importing.conventions.tokens import usage_of
from playhead.importing.conventions.tools import spec_of
from playhead.importing.readings import AgentReading, Context, ForeignMessage, ModelReading, ToolReading
from playhead.importing.values import NOTHING, count_of, first_text, list_of, object_of, parsed_json, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def kind(span: ForeignSpan, attributes: Attributes) -> Kind | None:  # noqa: ARG001 - every convention is asked so
    """Return what kind of span it is; None when it is none of this convention."""
    operation = attributes.text("gen_ai.operation.name")
    if operation is not None:
        return _KINDS.get(operation, "other")
    if attributes.text("gen_ai.tool.name") is not None:
        return "tool"
    return "model" if attributes.text("gen_ai.request.model") is not None else None


def model(span: ForeignSpan, attributes: Attributes) -> ModelReading:
    """Return the model call."""
    details = _details(span)

    def said(name: str) -> Any:  # noqa: ANN401 - any JSON value
        value = attributes.json(name)
        return details.get(name, NOTHING) if value is NOTHING else value

    written = messages_of(said("gen_ai.input.messages"))
    events = tuple(_messages_of_events(span)) or None
    answer = answer_of(said("gen_ai.output.messages")) or _choice(span)
    reasons = list_of(attributes.value("gen_ai.response.finish_reasons"))
    definitions = said("gen_ai.tool.definitions")
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
        messages=_with_instructions(said("gen_ai.system_instructions"), written or events),
        answer=answer,
        finish_reason=first_text(reasons) or finish_reason_of(said("gen_ai.output.messages")),
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


def context(attributes: Attributes) -> Context:
    """Return what the span says of its run."""
    return Context(session=attributes.text("gen_ai.conversation.id"), user=attributes.text("enduser.id"))


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


def _details(span: ForeignSpan) -> dict[str, Any]:
    """Return the attributes of the event that holds the content, where the span does not."""
    names = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
    found: dict[str, Any] = {}
    for event in span.events:
        if event.name in names:
            found |= event.attributes
    return {name: parsed_json(value) if isinstance(value, str) else value for name, value in found.items()} | _contents(
        found
    )


def _contents(found: dict[str, Any]) -> dict[str, Any]:
    """Return `gen_ai.prompt` and `gen_ai.completion`, which were the names of the content up to version 1.27."""
    named = {
        "gen_ai.input.messages": found.get("gen_ai.prompt"),
        "gen_ai.output.messages": found.get("gen_ai.completion"),
    }
    return {name: parsed_json(value) for name, value in named.items() if isinstance(value, str)}


def _messages_of_events(span: ForeignSpan) -> Iterator[ForeignMessage]:
    """Yield the messages that stand in an event each, of the form up to version 1.36."""
    for event in span.events:
        if event.name in _EVENTS:
            body = _body(event.attributes)
            yield from message_of({"role": _EVENTS[event.name], "content": "", **body})


def _choice(span: ForeignSpan) -> ForeignMessage | None:
    choices = (_body(event.attributes) for event in span.events if event.name == "gen_ai.choice")
    first = next(choices, None)
    return None if first is None else answer_of({"role": "assistant", **first} if "message" not in first else first)


def _body(attributes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the body of an event: attributes of its own, or JSON in one of them, as instrumentations wrote it."""
    for name in ("body", "event_body", "gen_ai.event.content"):
        inner = object_of(attributes.get(name))
        if inner:
            return inner
    plain = {name: _read(value) for name, value in attributes.items() if not name.startswith(("gen_ai.", "event."))}
    message = plain.get("message")
    return {**plain, "message": {"content": message}} if isinstance(message, str) else plain


def _read(value: Any) -> Any:  # noqa: ANN401
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, (dict, list)) else text_of(value) or value
