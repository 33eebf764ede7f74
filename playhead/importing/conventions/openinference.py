"""OpenInference: `openinference.span.kind`, `llm.*`, `tool.*`, `input.value`, `output.value`.

The names are those of `openinference.semconv`, which need not be installed; a test compares them.
See Arize-ai/openinference, `spec/semantic_conventions.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from playhead.importing.attributes import at, items_of
from playhead.importing.conventions.messages import answer_of, call_of, content_of, joined, messages_of, role_of
from playhead.importing.conventions.shapes import finish_reason_of, schema_of, spec_of, unwrapped_result, usage_of
from playhead.importing.readings import AgentReading, ForeignMessage, ModelReading, OwnAgent, ToolReading
from playhead.importing.values import NOTHING, count_of, first_text, list_of, object_of, parsed_json, text_of
from playhead.trace.parameters import known
from playhead.trace.types import ToolSpec
from playhead.trace.usage import dollars
from playhead.trace.values import from_json

if TYPE_CHECKING:
    from playhead.importing.attributes import Attributes
    from playhead.importing.readings import Kind
    from playhead.importing.spans import ForeignSpan

NAME: Final = "openinference"
KIND: Final = "openinference.span.kind"
_KINDS: Final[dict[str, Kind]] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_TOKENS: Final = {
    "input_tokens": ("llm.token_count.prompt",),
    "output_tokens": ("llm.token_count.completion",),
    "cache_read_tokens": ("llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_input"),
    "cache_write_tokens": ("llm.token_count.prompt_details.cache_write",),
    "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
}
_TOTAL: Final = "llm.token_count.total"
_COST: Final = "llm.cost.total"
_NO_PARAMETERS: Final = frozenset(
    ("model", "model_name", "messages", "tools", "functions", "stream", "stream_options", "base_url", "_type", "input")
)
"""What else stands among the parameters: said elsewhere in a recording, or about how the answer travels."""
_OF_AN_ANSWER: Final = frozenset(("id", "object", "created_at", "instructions", "output"))
"""Fields of the Responses API's answer object, which some instrumentors write down as the request's parameters."""
_IN_AN_ANSWER: Final = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_completion_tokens"}
"""What of that object says how the model sampled, and what a request calls it."""


def kind(span: ForeignSpan, attributes: Attributes) -> Kind | None:  # noqa: ARG001 - every convention is asked so
    """Return what kind of span it is; None when it is none of this convention."""
    said = attributes.text(KIND)
    return None if said is None else _KINDS.get(said.upper(), "other")


def model(span: ForeignSpan, attributes: Attributes) -> ModelReading:  # noqa: ARG001
    """Return the model call."""
    asked, answered = _value(attributes, "input"), _value(attributes, "output")
    tools = tuple(filter(None, map(_tool, attributes.items("llm.tools"))))
    given = object_of(attributes.json("llm.invocation_parameters"))
    parameters, unrecorded = parameters_of(given)
    answer = _answer(attributes, answered)
    usage, unread = usage_of(attributes, _TOKENS, _TOTAL)
    cost_usd = dollars(attributes.value(_COST))
    return ModelReading(
        model=attributes.text("llm.request.model_name", "llm.model_name"),
        answered_by=attributes.text("llm.response.model_name"),
        provider=attributes.text("llm.provider", "llm.system"),
        address=first_text((given.get("base_url"), given.get("api_base"))),
        parameters=parameters,
        unrecorded=unrecorded,
        messages=tuple(map(_message, attributes.items("llm.input_messages"))) or messages_of(asked),
        answer=answer,
        finish_reason=attributes.text("llm.finish_reason") or finish_reason_of(answered),
        usage=usage,
        unread=(*unread, *([_COST] if cost_usd is None and attributes.value(_COST) is not NOTHING else [])),
        cost_usd=cost_usd,
        tools=tools or _tools_of_input(asked, given),
        cut=_cut(attributes),
    )


def tool(span: ForeignSpan, attributes: Attributes) -> ToolReading:
    """Return the tool call; a schema in `tool.parameters` is one, arguments there are arguments."""
    schema = schema_of(attributes.json("tool.parameters"))
    given = _value(attributes, "input")
    arguments = _arguments(given)
    if arguments is None and schema is None:
        arguments = object_of(attributes.json("tool.parameters")) or None
    result, call_id = unwrapped_result(_value(attributes, "output"))
    if _is_own(attributes):
        arguments, result = from_json(arguments), from_json(result)
    return ToolReading(
        name=attributes.text("tool.name") or span.name.removeprefix("tool:") or None,
        call_id=attributes.text("tool.id", "tool_call.id") or call_id,
        arguments=arguments,
        raw=given if isinstance(given, str) and arguments is None else None,
        result=result,
        description=attributes.text("tool.description"),
        parameters=schema,
    )


def agent(span: ForeignSpan, attributes: Attributes) -> AgentReading:
    """Return what the span says as an agent, or as the outermost span of a program."""
    given = _value(attributes, "input")
    own = _own_agent(attributes)
    return AgentReading(
        name=attributes.text("agent.name") or (_agent_name(span.name) if attributes.text(KIND) == "AGENT" else None),
        task=given if own is not None and isinstance(given, str) else _task(given),
        output=_value(attributes, "output"),
        own=own,
    )


def parameters_of(given: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the request parameters that a recording holds by value, and the names of those that it does not."""
    given = {name: value for name, value in given.items() if name not in _NO_PARAMETERS and value is not None}
    if not _OF_AN_ANSWER.isdisjoint(given):
        return {name: given[each] for each, name in _IN_AN_ANSWER.items() if each in given} or None, ()
    found = known(given)
    return found or None, tuple(name for name in given if name not in found)


def _agent_name(name: str) -> str | None:
    return name.removeprefix("agent:").removesuffix(".run") or None


def _value(attributes: Attributes, side: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return input or output: JSON when its type says so and it is, else the text; `NOTHING` when there is none."""
    value, mime = attributes.value(f"{side}.value"), attributes.text(f"{side}.mime_type")
    if not isinstance(value, str) or mime != "application/json":
        return value
    parsed = parsed_json(value)
    return value if parsed is NOTHING else parsed


def _arguments(given: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Return the arguments of a call; those of smolagents stand inside what Python's call was given."""
    found = object_of(given)
    if found and set(found) <= {"args", "kwargs", "sanitize_inputs_outputs"} and isinstance(found.get("kwargs"), dict):
        return found["kwargs"] if not found.get("args") else None
    return found or ({} if given in ({}, "{}") else None)


def _is_own(attributes: Attributes) -> bool:
    """Tell whether Playhead exported the span: then a `$type` in a value is a tag of its own."""
    metadata = attributes.json("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("playhead"), dict)


def _own_agent(attributes: Attributes) -> OwnAgent | None:
    """Return what Playhead's own export says of an agent, when nothing of it was hidden."""
    said = at(attributes.json("metadata"), "playhead")
    header, counts = at(said, "header"), at(said, "counts")
    if not isinstance(header, dict) or not isinstance(counts, dict):
        return None
    try:
        tools = tuple(map(ToolSpec.model_validate, list_of(said.get("tools"))))
    except ValidationError:  # nobody's spans are trusted
        return None
    decided = tuple(each for each in list_of(said.get("decided")) if isinstance(each, str))
    return OwnAgent(header, tools, count_of(counts.get("requests")) or 0, count_of(counts.get("calls")) or 0, decided)


def _task(given: Any) -> str | None:  # noqa: ANN401
    if isinstance(given, dict):
        asked = first_text((given.get("task"), given.get("input"), given.get("query"), given.get("question")))
        return asked or _last_user(messages_of(given))
    if isinstance(given, str) and given.startswith("{") and (read := object_of(given)):
        return _task(read) or given
    return given if isinstance(given, str) else None


def _last_user(messages: tuple[ForeignMessage, ...] | None) -> str | None:
    said = [each.content for each in messages or () if each.role == "user" and isinstance(each.content, str)]
    return said[-1] if said else None


def _message(item: dict[str, Any]) -> ForeignMessage:
    message = item.get("message")
    message = message if isinstance(message, dict) else {}
    role = role_of(message.get("role"))
    content, lost = content_of(at(message, "content"))
    if "contents" in message:
        parts, lost = content_of([_part(each) for each in items_of(message["contents"]) if isinstance(each, dict)])
        content = parts or content  # the text may stand beside parts that are its reasoning
    calls = (call for each in items_of(message.get("tool_calls")) if (call := _call(each)) is not None)
    old = call_of(message.get("function_call_name"), message.get("function_call_arguments_json"), None)
    return ForeignMessage(
        role=role,
        content=content,
        calls=(*calls, *([] if old is None else [old])),
        call_id=text_of(message.get("tool_call_id")) if role == "tool" else None,
        name=text_of(message.get("name")) if role == "tool" else None,
        thinking=_thinking(message),
        lost=lost,
        known="role" in message and bool({"content", "contents", "tool_calls", "function_call_name"} & set(message)),
    )


def _part(item: dict[str, Any]) -> dict[str, Any]:
    part = item.get("message_content")
    part = part if isinstance(part, dict) else {}
    return {"type": part.get("type", "text"), "text": part.get("text"), "url": at(part, "image", "image", "url")}


def _thinking(message: dict[str, Any]) -> str | None:
    parts = [_part(each) for each in items_of(message.get("contents")) if isinstance(each, dict)]
    return first_text(each["text"] for each in parts if each["type"] in ("reasoning", "thinking"))


def _call(item: Any) -> Any:  # noqa: ANN401
    return call_of(
        at(item, "tool_call", "function", "name"),
        at(item, "tool_call", "function", "arguments"),
        at(item, "tool_call", "id"),
    )


def _answer(attributes: Attributes, answered: Any) -> ForeignMessage | None:  # noqa: ANN401
    """Return the answer: the message that was written, else what `output.value` says, as a message or as text."""
    messages = tuple(map(_message, attributes.items("llm.output_messages")))
    if messages:
        return joined(messages)
    found = answer_of(answered)
    if found is not None:
        return found
    return ForeignMessage("assistant", answered) if isinstance(answered, str) else None


def _tool(item: dict[str, Any]) -> Any:  # noqa: ANN401
    inner = item.get("tool")
    inner = inner if isinstance(inner, dict) else {}
    schema = inner.get("json_schema", inner)
    return spec_of(schema, text_of(inner.get("name")), text_of(inner.get("description")))


def _tools_of_input(asked: Any, parameters: dict[str, Any]) -> Any:  # noqa: ANN401
    listed = list_of(asked.get("tools")) if isinstance(asked, dict) else []
    return tuple(filter(None, map(spec_of, listed or list_of(parameters.get("tools"))))) or None


def _cut(attributes: Attributes) -> int | None:
    """Return how many messages Playhead's own export left out of a long prompt, as its metadata says."""
    metadata = attributes.json("metadata")
    return count_of(at(metadata, "playhead", "messages_cut")) or None if isinstance(metadata, dict) else None
