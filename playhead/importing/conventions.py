"""Reads the content of a span by two conventions. When a field has several names, the first one present is used.

`gen_ai`         OpenTelemetry's GenAI conventions: `gen_ai.operation.name`, `gen_ai.input.messages`, `gen_ai.tool.call.*`
                 (open-telemetry/semantic-conventions, `docs/gen-ai`). Content in events, as up to version 1.36, is not read.
`openinference`  `openinference.span.kind`, `llm.*`, `tool.*`, `input.value`, `output.value`
                 (Arize-ai/openinference, `spec/semantic_conventions.md`); a test compares the names with its package's.

GenAI comes first: where a span has both, OpenInference's attributes were usually made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.importing.messages import ForeignMessage, answer_of, arguments_of, message_of, messages_of
from playhead.importing.values import (
    NOTHING,
    Attributes,
    at,
    count_of,
    first_text,
    integer_of,
    list_of,
    object_of,
    objects_of,
    parsed_json,
    text_of,
)
from playhead.trace.events import ErrorInfo
from playhead.trace.header import TelemetryContext
from playhead.trace.parameters import known
from playhead.trace.types import LARGEST_COUNT, ToolSpec, Usage, dollars
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.importing.otlp import ForeignSpan
    from playhead.trace.values import JsonValue

Kind = Literal["model", "tool", "agent", "other"]
KIND: Final = "openinference.span.kind"
_GEN_AI: Final[dict[str, Kind]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "model"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
}
_OPENINFERENCE: Final[dict[str, Kind]] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_TOKENS: Final = {
    "input_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "cache_read_tokens": ("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
    "cache_write_tokens": ("gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write"),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
}
_REQUEST: Final = "gen_ai.request."
_NOT_PARAMETERS: Final = frozenset(
    ("model", "model_name", "messages", "tools", "functions", "stream", "stream_options", "base_url", "_type", "input")
)
"""Other entries among the parameters: recorded elsewhere, or about the transport of the answer."""
_OF_AN_ANSWER: Final = frozenset(("id", "object", "created_at", "instructions", "output"))
"""Fields of the Responses API's answer object, which some instrumentors record as the request's parameters."""
_IN_AN_ANSWER: Final = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_completion_tokens"}
"""The sampling parameters in that object, and their names in a request."""
_SCHEMA: Final = ("parameters", "input_schema", "inputSchema")
_KEYWORDS: Final = frozenset(("type", "properties", "$ref", "anyOf", "oneOf", "allOf"))
_SMOLAGENTS: Final = frozenset(("args", "kwargs", "sanitize_inputs_outputs"))
"""The form in which smolagents records a tool's input: the arguments of a Python call."""


@dataclass(frozen=True, slots=True)
class ModelReading:
    """A model call."""

    model: str | None = None
    answered_by: str | None = None
    """The model as the provider names it in its answer."""
    provider: str | None = None
    address: str | None = None
    parameters: dict[str, JsonValue] | None = None
    unrecorded: tuple[str, ...] = ()
    """Parameters that are not recorded by value, because they may be credentials."""
    messages: tuple[ForeignMessage, ...] | None = None
    answer: ForeignMessage | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    tools: tuple[ToolSpec, ...] | None = None
    """The tools offered; None when the span does not say."""
    cut: int = 0
    """Number of prompt messages that the span reports as not shown."""


@dataclass(frozen=True, slots=True)
class ToolReading:
    """A tool call."""

    name: str | None = None
    call_id: str | None = None
    arguments: dict[str, JsonValue] | None = None
    raw: str | None = None
    """The arguments, when they are not a JSON object."""
    result: JsonValue = NOTHING
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema of the arguments."""


@dataclass(frozen=True, slots=True)
class AgentReading:
    """An agent, or a program's outermost span."""

    name: str | None = None
    task: str | None = None
    output: JsonValue = NOTHING
    terminated_by: str | None = None
    """The reason code of the ending, from Playhead's own export."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a span."""

    kind: Kind
    model: ModelReading = ModelReading()
    tool: ToolReading = ToolReading()
    agent: AgentReading = AgentReading()
    error: ErrorInfo | None = None
    """The error, when the span's status is an error."""


def read(span: ForeignSpan) -> Reading:
    """Return the content of a span; never raises."""
    attributes = Attributes(span.attributes)
    kind = _kind(attributes)
    return Reading(
        kind=kind,
        model=_model(attributes) if kind == "model" else ModelReading(),
        tool=_tool(span, attributes) if kind == "tool" else ToolReading(),
        agent=_agent(span, attributes, kind) if kind in ("agent", "other") else AgentReading(),
        error=_error(span, attributes),
    )


def context_of(spans: Iterable[ForeignSpan]) -> TelemetryContext | None:
    """Return the session, user, tags and metadata of a trace, each from the first span that has it."""
    stated = [Attributes(span.attributes) for span in spans]
    tags = ([tag for tag in list_of(each.value("tag.tags")) if isinstance(tag, str)] for each in stated)
    metadata = (object_of(each.json("metadata")) for each in stated)
    own = ({name: value for name, value in each.items() if name != "playhead"} for each in metadata)
    found = TelemetryContext(
        session_id=first_text(*(each.text("gen_ai.conversation.id", "session.id") for each in stated)),
        user_id=first_text(*(each.text("enduser.id", "user.id") for each in stated)),
        tags=tuple(next(filter(None, tags), [])),
        metadata=to_json(next(filter(None, own), {})),
    )
    return None if found == TelemetryContext() else found


def _kind(attributes: Attributes) -> Kind:
    operation, kind_name = attributes.text("gen_ai.operation.name"), attributes.text(KIND)
    kind = _GEN_AI.get(operation or "", "other")
    if kind_name == "RETRIEVER" and attributes.text("tool.name"):  # Playhead's: a tool that finds documents
        return "tool"
    return kind if kind != "other" else _OPENINFERENCE.get((kind_name or "").upper(), "other")


def _playhead(attributes: Attributes) -> dict[str, Any]:
    """Return what Playhead's own export adds."""
    return object_of(object_of(attributes.json("metadata")).get("playhead"))


def _error(span: ForeignSpan, attributes: Attributes) -> ErrorInfo | None:
    """Return the exception, else the status description; None when the status is not an error."""
    if span.status != "error":
        return None
    name = text_of(span.exception.get("exception.type")) or attributes.text("error.type") or "Error"
    message = (
        text_of(span.exception.get("exception.message")) or span.message or attributes.text("error.message") or name
    )
    return ErrorInfo(type=name, message=message)


# --- model calls ------------------------------------------------------------------------------------------------------


def _model(attributes: Attributes) -> ModelReading:
    given = object_of(attributes.json("llm.invocation_parameters"))
    parameters, unrecorded = _parameters(attributes, given)
    return ModelReading(
        model=attributes.text("gen_ai.request.model", "llm.request.model_name", "llm.model_name"),
        answered_by=attributes.text("gen_ai.response.model", "llm.response.model_name"),
        provider=attributes.text("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
        address=first_text(given.get("base_url"), given.get("api_base")),
        parameters=parameters,
        unrecorded=unrecorded,
        messages=_prompt(attributes),
        answer=answer_of(attributes.json("gen_ai.output.messages"))
        or answer_of(attributes.items("llm.output_messages")),
        finish_reason=_finish_reason(attributes),
        usage=_usage(attributes),
        cost_usd=dollars(attributes.value("llm.cost.total")),
        tools=_tools(attributes, given),
        cut=count_of(_playhead(attributes).get("messages_cut")),
    )


def _prompt(attributes: Attributes) -> tuple[ForeignMessage, ...] | None:
    messages = messages_of(attributes.json("gen_ai.input.messages")) or messages_of(
        attributes.items("llm.input_messages")
    )
    given = attributes.json("gen_ai.system_instructions")
    instructions = message_of({"role": "system", "parts": given}) if given and isinstance(given, (str, list)) else []
    return (*instructions, *(messages or ())) or None


def _finish_reason(attributes: Attributes) -> str | None:
    """Return the finish reason, from the conventions' attributes or from the provider's recorded answer."""
    raw = attributes.side("output")
    first = next(iter(objects_of(at(raw, "choices"))), raw)
    return first_text(
        *list_of(attributes.value("gen_ai.response.finish_reasons")),
        attributes.text("llm.finish_reason"),
        at(first, "finish_reason"),
        at(raw, "stop_reason"),
    )


def _parameters(attributes: Attributes, given: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the request parameters that are recorded by value, and the names of the others."""
    flat = attributes.flat
    requested = {name[len(_REQUEST) :]: value for name, value in flat.items() if name.startswith(_REQUEST)}
    if "stop_sequences" in requested:
        requested["stop"] = requested.pop("stop_sequences")
    for each in (requested, given):
        parameters = {name: value for name, value in each.items() if name not in _NOT_PARAMETERS and value is not None}
        if not _OF_AN_ANSWER.isdisjoint(parameters):
            return {name: parameters[inner] for inner, name in _IN_AN_ANSWER.items() if inner in parameters} or None, ()
        if parameters:
            found = known(parameters)
            return found or None, tuple(name for name in parameters if name not in found)
    return None, ()


def _usage(attributes: Attributes) -> Usage | None:
    """Return the tokens; None when the span has none. A missing or malformed number makes them partly unknown."""
    given = {name: attributes.value(*names) for name, names in _TOKENS.items()}
    counts = {name: count for name, value in given.items() if (count := _tokens_of(value)) is not None}
    if not counts:
        return None
    unread = any(value is not NOTHING and name not in counts for name, value in given.items())
    is_partial = unread or not {"input_tokens", "output_tokens"} <= counts.keys()
    return Usage.model_validate({**counts, "unknown": 1 if is_partial else None})


def _tokens_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a number of tokens, also from digits in a text; None when it is negative, broken or too large."""
    count = None if isinstance(value, float) and not value.is_integer() else integer_of(value)
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None


def _tools(attributes: Attributes, given: dict[str, Any]) -> tuple[ToolSpec, ...] | None:
    """Return the tools that a request offers; empty when it offers none, None when the span does not say."""
    definitions = attributes.json("gen_ai.tool.definitions")
    for listed in (definitions, attributes.items("llm.tools"), given.get("tools")):
        found = tuple(filter(None, map(_spec, objects_of(listed))))
        if found:
            return found
    return () if definitions == [] else None


def _spec(value: dict[str, Any]) -> ToolSpec | None:
    """Return a tool from OpenAI's or Anthropic's definition."""
    outer = object_of(value.get("tool")) or value
    whole = object_of(outer.get("json_schema")) or outer
    inner = object_of(whole.get("function")) or whole
    name = first_text(inner.get("name"), outer.get("name"))
    if name is None:
        return None
    schema = next((object_of(inner[key]) for key in _SCHEMA if isinstance(inner.get(key), (dict, str))), None)
    schema = inner if schema is None and _is_schema(inner) else schema
    fields: dict[str, Any] = {} if schema is None else {"parameters": schema}
    description = first_text(inner.get("description"), outer.get("description")) or ""
    return ToolSpec(name=name, description=description, **fields)


def _is_schema(value: Any) -> bool:  # noqa: ANN401
    """Return whether an object is a JSON Schema of arguments, not the arguments themselves."""
    if not isinstance(value, dict) or _KEYWORDS.isdisjoint(value):
        return False
    return value.get("type", "object") == "object" and isinstance(value.get("properties", {}), dict)


# --- tool calls -------------------------------------------------------------------------------------------------------


def _tool(span: ForeignSpan, attributes: Attributes) -> ToolReading:
    schema = object_of(attributes.json("tool.parameters"))
    arguments, raw = _arguments(attributes)
    result, call_id = _result(attributes)
    return ToolReading(
        name=attributes.text("gen_ai.tool.name", "tool.name") or span.name or None,
        call_id=attributes.text("gen_ai.tool.call.id", "tool.id", "tool_call.id") or call_id,
        arguments=arguments,
        raw=raw,
        result=result,
        description=attributes.text("gen_ai.tool.description", "tool.description"),
        parameters=schema if _is_schema(schema) else None,
    )


def _arguments(attributes: Attributes) -> tuple[dict[str, Any] | None, str | None]:
    given = attributes.value("gen_ai.tool.call.arguments")
    if given is not NOTHING:
        return arguments_of(given)
    arguments, raw = arguments_of(attributes.side("input"))
    kwargs = at(arguments, "kwargs")
    if arguments is not None and isinstance(kwargs, dict) and arguments.keys() <= _SMOLAGENTS:
        return (None if arguments.get("args") else kwargs), None
    return arguments, raw


def _result(attributes: Attributes) -> tuple[Any, str | None]:
    """Return a tool's result, and the call's id when LangChain's message contains it.

    LangChain records the message that the result becomes: `{"type": "tool", "data": {"content": …, "tool_call_id": …}}`.
    """
    value = attributes.value("gen_ai.tool.call.result")
    if value is NOTHING:
        value = attributes.side("output")
    elif isinstance(parsed := parsed_json(value) if isinstance(value, str) else value, (dict, list)):
        value = parsed  # a text that is a bare JSON text or number stays one
    message = at(value, "data") if isinstance(value, dict) and value.get("type") == "tool" else at(value, "kwargs")
    if isinstance(message, dict) and "content" in message and "tool_call_id" in message:
        return message["content"], text_of(message["tool_call_id"])
    return value, None


# --- agents -----------------------------------------------------------------------------------------------------------


def _agent(span: ForeignSpan, attributes: Attributes, kind: Kind) -> AgentReading:
    """Return the content of an agent's span, or of a program's outermost span."""
    given = attributes.side("input")
    if kind == "other":
        return AgentReading(attributes.text("agent.name"), _task(given), attributes.side("output"))
    own_name = span.name.removesuffix(".run") if attributes.text(KIND) == "AGENT" else None  # smolagents: clerk.run
    answer = answer_of(list_of(attributes.json("gen_ai.output.messages"))[-1:])
    text = text_of(answer.content) if answer is not None else None
    return AgentReading(
        name=attributes.text("gen_ai.agent.name", "agent.name") or own_name,
        task=_last_user(messages_of(attributes.json("gen_ai.input.messages"))) or _task(given),
        output=attributes.side("output") if text is None else text,
        terminated_by=attributes.text("agent.terminated_by") if _playhead(attributes) else None,
    )


def _task(given: Any) -> str | None:  # noqa: ANN401
    return text_of(object_of(given).get("task")) or text_of(given)


def _last_user(messages: tuple[ForeignMessage, ...] | None) -> str | None:
    contents = (each.content for each in reversed(messages or ()) if each.role == "user")
    return next((each for each in contents if isinstance(each, str)), None)
