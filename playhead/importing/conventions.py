"""What a span says, by three conventions; the names of a field are read in their order, and the first that is there counts.

`gen_ai`         OpenTelemetry's GenAI conventions: `gen_ai.operation.name`, `gen_ai.input.messages`, `gen_ai.tool.call.*`
                 (open-telemetry/semantic-conventions, `docs/gen-ai`). Content that stands in events alone, as up to version
                 1.36, is not read.
`openllmetry`    `traceloop.*`, `gen_ai.prompt.0.content`, `gen_ai.completion.0.tool_calls.0.name`
                 (traceloop/openllmetry, `opentelemetry-instrumentation-openai`).
`openinference`  `openinference.span.kind`, `llm.*`, `tool.*`, `input.value`, `output.value`
                 (Arize-ai/openinference, `spec/semantic_conventions.md`); a test compares the names with its package's.

GenAI comes first: where a span has both, OpenInference's attributes were usually made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

from playhead.importing.messages import (
    ForeignMessage,
    answer_of,
    arguments_of,
    finish_reason_of,
    message_of,
    messages_of,
)
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
from playhead.trace.parameters import known
from playhead.trace.types import LARGEST_COUNT, TelemetryContext, ToolSpec, Usage, dollars
from playhead.trace.values import from_json, scrub, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.importing.spans import ForeignSpan
    from playhead.trace.values import JsonValue

Kind = Literal["model", "tool", "agent", "other"]
KIND: Final = "openinference.span.kind"
_GEN_AI: Final[dict[str, Kind]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "model"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
}
_OPENLLMETRY: Final[dict[str, Kind]] = {"tool": "tool", "agent": "agent"}
_OPENINFERENCE: Final[dict[str, Kind]] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_SESSION: Final = ("gen_ai.conversation.id", "traceloop.association.properties.session_id", "session.id")
_USER: Final = ("enduser.id", "traceloop.association.properties.user_id", "user.id")
_TOKENS: Final = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "llm.token_count.prompt_details.cache_input",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
}
_REQUEST: Final = "gen_ai.request."
_FLAT_PARAMETERS: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
"""What OpenLLMetry writes as `llm.temperature` and the like."""
_NO_PARAMETERS: Final = frozenset(
    """
    model model_name messages tools functions stream stream_options base_url _type input choice.count encoding_formats
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
"""What else stands among the parameters: said elsewhere in a recording, or about how the answer travels."""
_OF_AN_ANSWER: Final = frozenset(("id", "object", "created_at", "instructions", "output"))
"""Fields of the Responses API's answer object, which some instrumentors write down as the request's parameters."""
_IN_AN_ANSWER: Final = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_completion_tokens"}
"""What of that object says how the model sampled, and what a request calls it."""
_SCHEMA: Final = ("parameters", "input_schema", "inputSchema", "json_schema")


_COST: Final = "llm.cost.total"
_KEYWORDS: Final = frozenset(("type", "properties", "$ref", "anyOf", "oneOf", "allOf"))
_WRAPPED: Final = ("inputs", "input", "kwargs")
"""What OpenLLMetry has the arguments of a tool in."""


@dataclass(frozen=True, slots=True)
class ModelReading:
    """A model call."""

    model: str | None = None
    answered_by: str | None = None
    """The model, as the provider calls it in its answer."""
    provider: str | None = None
    address: str | None = None
    parameters: dict[str, JsonValue] | None = None
    unrecorded: tuple[str, ...] = ()
    """Parameters that a recording does not hold, since they may be credentials."""
    messages: tuple[ForeignMessage, ...] | None = None
    answer: ForeignMessage | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    no_numbers: tuple[str, ...] = ()
    """Attributes of tokens and costs that hold what can be no number."""
    tools: tuple[ToolSpec, ...] | None = None
    cut: int | None = None
    """Messages of the prompt that the span says it does not show."""


@dataclass(frozen=True, slots=True)
class ToolReading:
    """A tool call."""

    name: str | None = None
    call_id: str | None = None
    arguments: dict[str, JsonValue] | None = None
    raw: str | None = None
    """What was given, when it is no JSON object."""
    result: JsonValue = NOTHING
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """JSON Schema of the arguments."""


@dataclass(frozen=True, slots=True)
class OwnAgent:
    """What a span of Playhead's own export says of its agent: all that a replay needs to run it in the same way."""

    header: dict[str, Any]
    """The agent's header without its name, model and examples, which the spans hold in other places."""
    tools: tuple[ToolSpec, ...]
    requests: int
    """Spans of model calls that the agent has."""
    calls: int
    """Spans of tool calls that it has."""
    decided: tuple[str, ...]
    """The kinds of events besides that steered it, such as `approval-decided`."""


@dataclass(frozen=True, slots=True)
class AgentReading:
    """An agent, or a program's outermost span."""

    name: str | None = None
    task: str | None = None
    output: JsonValue = NOTHING
    own: OwnAgent | None = None
    """What Playhead's own export says of it besides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that a span says."""

    kind: Kind
    convention: str | None = None
    model: ModelReading = ModelReading()
    tool: ToolReading = ToolReading()
    agent: AgentReading = AgentReading()
    error: ErrorInfo | None = None
    """What went wrong, when its status says so."""


def read(span: ForeignSpan) -> Reading:
    """Return what a span says; never raises, whatever it holds."""
    attributes = Attributes(span.attributes)
    kinds = dict(_kinds(attributes))
    kind: Kind = next((each for each in kinds.values() if each != "other"), "other")
    return Reading(
        kind=kind,
        convention=next((name for name, each in kinds.items() if each == kind), None),
        model=_model(attributes) if kind == "model" else ModelReading(),
        tool=_tool(span, attributes) if kind == "tool" else ToolReading(),
        agent=_agent(span, attributes, kind) if kinds and kind in ("agent", "other") else AgentReading(),
        error=_error(span, attributes),
    )


def context_of(spans: Iterable[ForeignSpan]) -> TelemetryContext | None:
    """Return what spans say of the session, the user and the like; of each the first that says it."""
    said = [Attributes(span.attributes) for span in spans]
    tags = ([tag for tag in list_of(each.value("tag.tags")) if isinstance(tag, str)] for each in said)
    metadata = (object_of(each.json("metadata")) for each in said)
    own = ({name: value for name, value in each.items() if name != "playhead"} for each in metadata)
    found = TelemetryContext(
        session_id=first_text(each.text(*_SESSION) for each in said),
        user_id=first_text(each.text(*_USER) for each in said),
        tags=tuple(map(scrub, next(filter(None, tags), []))),
        metadata=to_json(next(filter(None, own), {})),
    )
    return None if found == TelemetryContext() else found


def stated_ending(span: ForeignSpan) -> str | None:
    """Return the reason code that a span of Playhead's own export states; other programs' spans have none."""
    attributes = Attributes(span.attributes)
    return attributes.text("agent.terminated_by") if "playhead" in object_of(attributes.json("metadata")) else None


def _kinds(attributes: Attributes) -> Iterator[tuple[str, Kind]]:
    """Yield the conventions that a span follows, with the kind that it is by each."""
    operation, flat = attributes.text("gen_ai.operation.name"), attributes.text("traceloop.span.kind")
    if operation is not None:
        yield "gen_ai", _GEN_AI.get(operation, "other")
    elif attributes.text("gen_ai.tool.name") is not None:
        yield "gen_ai", "tool"
    elif attributes.text("gen_ai.request.model") is not None:
        yield "gen_ai", "model"
    if flat is not None:
        yield "openllmetry", _OPENLLMETRY.get(flat, "other")
    elif attributes.text("llm.request.type") in ("chat", "completion"):
        yield "openllmetry", "model"
    if (said := attributes.text(KIND)) is not None:
        yield "openinference", _OPENINFERENCE.get(said.upper(), "other")


def _error(span: ForeignSpan, attributes: Attributes) -> ErrorInfo | None:
    """Return what went wrong: the last exception event, else what the status says; None when it is no error."""
    if span.status != "error":
        return None
    exception = next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})
    name = text_of(exception.get("exception.type")) or attributes.text("error.type") or "Error"
    message = text_of(exception.get("exception.message")) or span.message or attributes.text("error.message") or name
    return ErrorInfo(type=name, message=message)


def _model(attributes: Attributes) -> ModelReading:
    asked, answered = attributes.side("input"), attributes.side("output")
    given = object_of(attributes.json("llm.invocation_parameters"))
    parameters, unrecorded = _parameters(attributes, given)
    return ModelReading(
        model=attributes.text("gen_ai.request.model", "llm.request.model_name", "llm.model_name"),
        answered_by=attributes.text("gen_ai.response.model", "llm.response.model_name"),
        provider=attributes.text("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
        address=_address(attributes, given),
        parameters=parameters,
        unrecorded=unrecorded,
        messages=_prompt(attributes, asked),
        answer=_answer(attributes, answered),
        finish_reason=_finish_reason(attributes, answered),
        usage=_usage(attributes),
        cost_usd=dollars(attributes.value(_COST)),
        no_numbers=tuple(_no_numbers(attributes)),
        tools=_tools(attributes, asked, given),
        cut=count_of(at(_own(attributes), "messages_cut")) or None,
    )


def _prompt(attributes: Attributes, asked: Any) -> tuple[ForeignMessage, ...] | None:  # noqa: ANN401 - any JSON value
    flat = [_with_parts(each) for each in attributes.items("gen_ai.prompt")]
    places = attributes.json("gen_ai.input.messages"), flat, attributes.items("llm.input_messages"), asked
    messages = next(filter(None, map(messages_of, places)), None)
    said = attributes.json("gen_ai.system_instructions")
    instructions = message_of({"role": "system", "parts": said}) if said and isinstance(said, (str, list)) else []
    return (*instructions, *(messages or ())) if instructions else messages


def _answer(attributes: Attributes, answered: Any) -> ForeignMessage | None:  # noqa: ANN401
    flat = [_with_parts(each) for each in attributes.items("gen_ai.completion")[:1]]
    places = attributes.json("gen_ai.output.messages"), flat, attributes.items("llm.output_messages"), answered
    found = next(filter(None, map(answer_of, places)), None)
    return ForeignMessage("assistant", answered) if found is None and isinstance(answered, str) else found


def _with_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of OpenLLMetry, which may have its parts as JSON in its text."""
    content = message.get("content")
    parts = list_of(content) if isinstance(content, str) and content.startswith("[{") else []
    return {**message, "content": parts or content} if "content" in message else message


def _finish_reason(attributes: Attributes, answered: Any) -> str | None:  # noqa: ANN401
    said = first_text(list_of(attributes.value("gen_ai.response.finish_reasons"))) or finish_reason_of(
        attributes.json("gen_ai.output.messages")
    )
    flat = first_text(each.get("finish_reason") for each in attributes.items("gen_ai.completion"))
    return said or flat or attributes.text("llm.finish_reason") or finish_reason_of(answered)


def _address(attributes: Attributes, given: dict[str, Any]) -> str | None:
    host, port = attributes.text("server.address"), count_of(attributes.value("server.port"))
    if host is not None and port and port != 443:  # noqa: PLR2004 - https
        return f"http://{host}:{port}"
    return first_text((given.get("base_url"), given.get("api_base")))


def _parameters(attributes: Attributes, given: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the request parameters that a recording holds by value, and the names of those that it does not."""
    flat = attributes.flat
    requested = {name[len(_REQUEST) :]: value for name, value in flat.items() if name.startswith(_REQUEST)}
    if "stop_sequences" in requested:
        requested["stop"] = requested.pop("stop_sequences")
    listed = {name: flat.get(f"llm.{name}") for name in _FLAT_PARAMETERS}
    for each in (requested, listed, given):
        said = {name: value for name, value in each.items() if name not in _NO_PARAMETERS and value is not None}
        if not _OF_AN_ANSWER.isdisjoint(said):
            return {name: said[inner] for inner, name in _IN_AN_ANSWER.items() if inner in said} or None, ()
        if said:
            found = known(said)
            return found or None, tuple(name for name in said if name not in found)
    return None, ()


def _usage(attributes: Attributes) -> Usage | None:
    """Return the tokens, None when nothing can be read of them; numbers that are none make a usage that is partly unknown."""
    given = {name: attributes.value(*names) for name, names in _TOKENS.items()}
    counts = {name: count for name, value in given.items() if (count := _tokens_of(value)) is not None}
    if not counts:
        return None
    unread = any(value is not NOTHING and name not in counts for name, value in given.items())
    is_partly = unread or not {"input_tokens", "output_tokens"} <= counts.keys()
    return Usage.model_validate({**counts, "unknown": 1 if is_partly else None})


def _no_numbers(attributes: Attributes) -> Iterator[str]:
    """Yield the attributes of tokens and costs that hold what can be no number."""
    read = {**{name: _tokens_of for names in _TOKENS.values() for name in names}, _COST: dollars}
    for name, number in read.items():
        value = attributes.value(name)
        if value is not NOTHING and number(value) is None:
            yield name


def _tokens_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a number of tokens, also of digits in a text; None when it can be none: negative, broken, too large."""
    count = None if isinstance(value, float) and not value.is_integer() else integer_of(value)
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None


def _tools(attributes: Attributes, asked: Any, given: dict[str, Any]) -> tuple[ToolSpec, ...] | None:  # noqa: ANN401
    """Return the tools that a request offers, none of them where it says so, and None where it does not say."""
    definitions = attributes.json("gen_ai.tool.definitions")
    listed = (
        attributes.items("llm.request.functions"),
        attributes.items("llm.tools"),
        at(asked, "tools"),
        given.get("tools"),
    )
    for each in (definitions, *listed):
        found = tuple(filter(None, map(_spec, objects_of(each))))
        if found:
            return found
    return () if definitions == [] else None


def _spec(value: dict[str, Any]) -> ToolSpec | None:
    """Return a tool: of OpenAI's or Anthropic's definition, or of a bare schema whose name stands beside it."""
    outer = object_of(value.get("tool")) or value
    whole = object_of(outer.get("json_schema")) or outer
    inner = object_of(whole.get("function")) or whole
    name = first_text((inner.get("name"), outer.get("name")))
    if name is None:
        return None
    schema = next((object_of(inner[key]) for key in _SCHEMA if isinstance(inner.get(key), (dict, str))), None)
    schema = inner if schema is None and _is_schema(inner) else schema
    fields: dict[str, Any] = {} if schema is None else {"parameters": schema}
    description = first_text((inner.get("description"), outer.get("description"))) or ""
    return ToolSpec(name=name, description=description, **fields)


def _is_schema(value: Any) -> bool:  # noqa: ANN401
    """Tell whether an object is a JSON Schema of arguments, and not the arguments themselves."""
    if not isinstance(value, dict) or _KEYWORDS.isdisjoint(value):
        return False
    return value.get("type", "object") == "object" and isinstance(value.get("properties", {}), dict)


def _tool(span: ForeignSpan, attributes: Attributes) -> ToolReading:
    schema = object_of(attributes.json("tool.parameters"))
    arguments, raw = _arguments(attributes)
    result, call_id = _result(attributes)
    if _own(attributes) is not None:  # then a `$type` in a value is a tag of our own
        arguments, result = from_json(arguments), from_json(result)
    said = attributes.text("gen_ai.tool.name", "traceloop.entity.name", "tool.name")
    return ToolReading(
        name=said or span.name.removeprefix("execute_tool ").removeprefix("tool:").removesuffix(".tool") or None,
        call_id=attributes.text("gen_ai.tool.call.id", "tool.id", "tool_call.id") or call_id,
        arguments=arguments,
        raw=raw,
        result=result,
        description=attributes.text("gen_ai.tool.description", "tool.description"),
        parameters=schema if _is_schema(schema) else None,
    )


def _arguments(attributes: Attributes) -> tuple[dict[str, Any] | None, str | None]:
    said, flat = attributes.json("gen_ai.tool.call.arguments"), attributes.value("traceloop.entity.input")
    if said is not NOTHING or attributes.value("gen_ai.tool.call.arguments") is not NOTHING:
        return arguments_of(attributes.value("gen_ai.tool.call.arguments") if said is NOTHING else said)
    if flat is not NOTHING:
        given = object_of(flat)
        inner = [given[name] for name in _WRAPPED if isinstance(given.get(name), dict)]
        return (next(filter(None, inner), {}) if inner else given or None), None
    arguments, raw = arguments_of(attributes.side("input"))
    inside = at(arguments, "kwargs")
    if isinstance(inside, dict) and set(arguments or ()) <= {"args", "kwargs", "sanitize_inputs_outputs"}:
        return (None if (arguments or {}).get("args") else inside), None  # what smolagents gives to Python's call
    return arguments, raw


def _result(attributes: Attributes) -> tuple[Any, str | None]:
    """Return what a tool returned, and the id of the call that it answers, where the wrapping says it.

    LangChain writes the message that its result becomes: `{"type": "tool", "data": {"content": …, "tool_call_id": …}}`.
    """
    value = attributes.value("gen_ai.tool.call.result", "traceloop.entity.output")
    parsed = parsed_json(value) if isinstance(value, str) else value
    if value is NOTHING:
        value = attributes.side("output")
    elif parsed is not NOTHING and (isinstance(parsed, (dict, list)) or "traceloop.entity.output" in attributes.flat):
        value = parsed  # by GenAI a text that is a bare JSON text or number stays one
    is_message = isinstance(value, dict) and value.get("type") == "tool"
    inner = (
        at(value, "data") if is_message else at(value, "kwargs") if isinstance(value, dict) and "lc" in value else None
    )
    inner = value if inner is None and is_message and "tool_call_id" in value else inner
    if not isinstance(inner, dict) or "content" not in inner:
        return value, None
    return inner["content"], text_of(inner.get("tool_call_id"))


def _agent(span: ForeignSpan, attributes: Attributes, kind: Kind) -> AgentReading:
    """Return what the span says as an agent, or as the outermost span of a program."""
    given, own = attributes.side("input"), _own_agent(attributes)
    named = ("gen_ai.agent.name", "traceloop.entity.name") if kind == "agent" else ()
    own_name = span.name.removeprefix("agent:").removesuffix(".run") if attributes.text(KIND) == "AGENT" else ""
    answer = answer_of(list_of(attributes.json("gen_ai.output.messages"))[-1:]) if kind == "agent" else None
    said = answer.content if answer is not None and isinstance(answer.content, str) else ""
    asked = _last_user(messages_of(attributes.json("gen_ai.input.messages"))) if kind == "agent" else None
    return AgentReading(
        name=attributes.text(*named, "agent.name") or own_name or None,
        task=asked or (given if own is not None and isinstance(given, str) else _task(given)),
        output=said or attributes.side("output"),
        own=own,
    )


def _task(given: Any) -> str | None:  # noqa: ANN401
    if isinstance(given, dict):
        asked = first_text((given.get("task"), given.get("input"), given.get("query"), given.get("question")))
        return asked or _last_user(messages_of(given))
    if isinstance(given, str) and given.startswith("{") and (read_so := object_of(given)):
        return _task(read_so) or given
    return given if isinstance(given, str) else None


def _last_user(messages: tuple[ForeignMessage, ...] | None) -> str | None:
    said = (each.content for each in reversed(messages or ()) if each.role == "user")
    return next((each for each in said if isinstance(each, str)), None)


def _own(attributes: Attributes) -> dict[str, Any] | None:
    """Return what Playhead's own export says besides, None for spans of other programs."""
    said = object_of(attributes.json("metadata")).get("playhead")
    return said if isinstance(said, dict) else None


def _own_agent(attributes: Attributes) -> OwnAgent | None:
    """Return what Playhead's own export says of an agent, when nothing of it was hidden."""
    said = _own(attributes) or {}
    header, counts = said.get("header"), said.get("counts")
    if not isinstance(header, dict) or not isinstance(counts, dict):
        return None
    try:
        tools = tuple(map(ToolSpec.model_validate, list_of(said.get("tools"))))
    except ValidationError:  # nobody's spans are trusted
        return None
    decided = tuple(each for each in list_of(said.get("decided")) if isinstance(each, str))
    return OwnAgent(header, tools, count_of(counts.get("requests")), count_of(counts.get("calls")), decided)
