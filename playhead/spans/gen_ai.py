"""The attributes of OpenTelemetry's GenAI conventions, as a second set beside those of OpenInference.

Set by hand, and their names stand here: the conventions are in development, and OpenInference's own switch for them raises on
spans that nobody records. `gen_ai.usage.cost` is in no convention; it is what Langfuse reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.spans.calls import provider_of
from playhead.spans.messages import arguments_of
from playhead.spans.texts import clean, json_of, shown

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.messages import Shown
    from playhead.spans.owner import SpanOwner
    from playhead.spans.thread import Prompt
    from playhead.trace.events import LlmRequested, LlmResponded, ToolCallCompleted, ToolCallStarted
    from playhead.trace.types import AgentHeader, ToolSpec

Attributes = dict[str, "AttributeValue"]

_PROVIDERS: Final = {
    "aws": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistralai": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
}
"""What OpenInference calls a provider, and what the conventions do, where these differ."""
_NUMBERS: Final = {
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "temperature": "gen_ai.request.temperature",
    "top_k": "gen_ai.request.top_k",
    "top_p": "gen_ai.request.top_p",
}
"""Parameters that have an attribute of their own."""
_INTEGERS: Final = ("max_tokens", "seed")


def agent(header: AgentHeader, path: str, session: str) -> Attributes:
    """Return the attributes of an agent's span, without model and tokens, which backends add up over all spans."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _provider(header.model, header.address),
        "gen_ai.agent.id": clean(path),
        "gen_ai.agent.name": clean(header.name),
        "gen_ai.conversation.id": session,
    }


def request(requested: LlmRequested, owner: SpanOwner, prompt: Prompt, session: str, masking: Masking) -> Attributes:
    """Return what the span of a request begins with."""
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(requested.model, owner.address_of(requested.model)),
        "gen_ai.request.model": requested.model.partition("/")[2] or requested.model,
        "gen_ai.conversation.id": session,
    }
    if masking.parameters:
        attributes.update(_parameters(requested.parameters))
    if masking.inputs:
        attributes["gen_ai.input.messages"] = json_of([_message(each) for each in prompt.messages])
    offered = owner.thread.offered(requested.tools).tools
    if masking.tools and offered:
        attributes["gen_ai.tool.definitions"] = json_of([_definition(tool) for tool in offered])
    return attributes


def response(responded: LlmResponded, masking: Masking) -> Attributes:
    """Return what the span of a request ends with that was answered."""
    usage, reason = responded.usage.of_answer(), clean(responded.finish_reason or "")
    counts = {
        "gen_ai.usage.input_tokens": usage.known(usage.input_tokens),
        "gen_ai.usage.output_tokens": usage.known(usage.output_tokens),
    }
    attributes: Attributes = {name: count for name, count in counts.items() if count is not None}
    details = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    attributes.update({name: count for name, count in details.items() if count})
    if responded.cost_usd is not None:
        attributes["gen_ai.usage.cost"] = responded.cost_usd
    if reason:
        attributes["gen_ai.response.finish_reasons"] = [reason]
    if responded.model is not None:
        attributes["gen_ai.response.model"] = clean(responded.model)
    if masking.outputs:
        message = {"role": "assistant", "parts": _answer_parts(responded), "finish_reason": reason}
        attributes["gen_ai.output.messages"] = json_of([message])
    return attributes


def error(kind: str) -> Attributes:
    """Return what the span of an operation ends with that failed."""
    return {"error.type": clean(kind)}


def call(started: ToolCallStarted, tool: ToolSpec | None, session: str, masking: Masking) -> Attributes:
    """Return what the span of a tool call begins with."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": masking.tool_name(started.tool, tool),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": clean(started.call_id),
        "gen_ai.conversation.id": session,
    }
    if tool is not None and masking.tools:
        attributes["gen_ai.tool.description"] = clean(tool.description)
    if masking.both:
        attributes["gen_ai.tool.call.arguments"] = shown(started.args)[0]
    return attributes


def result(completed: ToolCallCompleted, tool: ToolSpec | None, masking: Masking) -> Attributes:
    """Return what the span of a tool call ends with."""
    if not completed.ok:
        return error(completed.error.type if completed.error else completed.ended or "error")
    return {"gen_ai.tool.call.result": shown(completed.result)[0]} if masking.results(tool, ok=True) else {}


def _provider(model: str, address: str | None) -> str:
    provider = provider_of(model, address)
    return _PROVIDERS.get(provider, provider) or "unknown"


def _parameters(parameters: dict[str, Any]) -> Attributes:
    attributes: Attributes = {}
    for name, attribute in _NUMBERS.items():
        value = parameters.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            attributes[attribute] = value if attribute.rpartition(".")[2] in _INTEGERS else float(value)
    stop = parameters.get("stop")
    stops = [stop] if isinstance(stop, str) else stop
    if isinstance(stops, list) and stops and all(isinstance(each, str) for each in stops):
        attributes["gen_ai.request.stop_sequences"] = [clean(each) for each in stops]
    return attributes


def _message(message: Shown) -> dict[str, Any]:
    said = message.message
    if said["role"] == "tool" and "tool_call_id" in said:
        answer = {"type": "tool_call_response", "id": said["tool_call_id"], "response": said["content"]}
        return {"role": "tool", "parts": [answer]}
    calls = [_call_part(each["id"], **each["function"]) for each in said.get("tool_calls", ())]
    return {"role": said["role"], "parts": [*_parts(said["content"]), *calls]}


def _parts(content: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - text, or OpenAI's list of parts
    if isinstance(content, str):
        return [{"type": "text", "content": content}] if content else []
    return [
        {"type": "text", "content": part["text"]}
        if part["type"] == "text"
        else {"type": "uri", "modality": "image", "uri": part["image_url"]["url"]}
        for part in content or ()
    ]


def _call_part(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    try:
        parsed = from_json(arguments)
    except ValueError:  # what the model wrote is no JSON
        parsed = arguments
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": parsed}


def _answer_parts(responded: LlmResponded) -> list[dict[str, Any]]:
    thinking = [{"type": "reasoning", "content": clean(responded.thinking)}] if responded.thinking else []
    calls = [_call_part(clean(call.id), clean(call.name), arguments_of(call)) for call in responded.tool_calls]
    return [*thinking, *_parts(clean(responded.text)), *calls]


def _definition(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
