"""A `Request` as OpenAI-shaped arguments, and an OpenAI-shaped response as a `Completion`. Pure functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ModelRequestError, ModelUnavailableError
from playhead.kernel.checks import NOT_PARAMETERS
from playhead.kernel.models.adapter import spent
from playhead.kernel.repair.lenient_json import read_call
from playhead.trace.types import Completion, ImagePart, Message, Request, ToolCall, ToolSpec, Usage
from playhead.trace.values import scrub, untagged

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.trace.values import JsonValue

MALFORMED: Final = "malformed_arguments"
"""The key under which arguments that are not a JSON object are sent back to the model that wrote them."""


def to_openai(request: Request) -> dict[str, Any]:
    """Return the keyword arguments of a chat completion with exactly the content of the request.

    Everything is copied, because litellm modifies its arguments.

    Raises:
        ModelRequestError: the caller may not set a parameter.
    """
    reserved = sorted(NOT_PARAMETERS & request.parameters.keys())
    if reserved:
        raise ModelRequestError(f"{', '.join(reserved)}: a request cannot set this; make a model with other arguments")
    tools = {"tools": [tool_to_openai(tool) for tool in request.tools]} if request.tools else {}
    messages = [message_to_openai(message) for message in request.messages]
    return {"model": request.model, "messages": messages, **tools, **sendable(request.parameters)}


def message_to_openai(message: Message) -> dict[str, Any]:
    """Return a message in OpenAI's form."""
    return wire_message(
        message, _content(message), lambda call: json.dumps(sendable_arguments(call), ensure_ascii=False)
    )


def wire_message(
    message: Message, content: JsonValue, arguments: Callable[[ToolCall], JsonValue]
) -> dict[str, JsonValue]:
    """Return a message with its content, and the arguments of its calls, in a provider's form."""
    wire: dict[str, JsonValue] = {"role": message.role, "content": content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def tool_to_openai(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in OpenAI's form, with its JSON Schema unchanged."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": copied(function)}


def sendable_arguments(call: ToolCall) -> dict[str, JsonValue]:
    """Return a call's arguments as an object, even if the model wrote something else.

    Only OpenAI accepts text that is not JSON here. After one such call, litellm fails every later request to Anthropic,
    Gemini and Ollama, and llama.cpp's server answers 500. So the text is sent back inside an object.
    """
    if call.arguments is None:
        return {MALFORMED: scrub(call.raw_arguments or "")}
    sent = sendable(call.arguments)
    return sent if isinstance(sent, dict) else copied(call.arguments)  # a tag that the kernel did not write


def sendable(value: JsonValue) -> JsonValue:
    """Return a deep copy of a recorded value as sent to a model: large integers and the like without tags."""
    return copied(untagged(value))


def copied(value: JsonValue) -> JsonValue:
    """Return a deep copy without lone surrogates, which cannot be encoded."""
    return json.loads(scrub(json.dumps(value, ensure_ascii=False)))


def _content(message: Message) -> JsonValue:
    if not isinstance(message.content, str):
        return [
            {"type": "image_url", "image_url": {"url": part.url}}
            if isinstance(part, ImagePart)
            else {"type": "text", "text": scrub(part.text)}
            for part in message.content
        ]
    # Beside tool calls no content is None: for "" litellm tells Anthropic "[System: Empty message content …]".
    return scrub(message.content) or (None if message.tool_calls else "")


def from_openai(response: Any, cost_usd: float | None) -> Completion:  # noqa: ANN401 - litellm's ModelResponse
    """Return the first choice of a chat completion.

    Raises:
        ModelUnavailableError: the response holds no choice.
    """
    choices = getattr(response, "choices", None)
    if not choices:
        error = ModelUnavailableError("the provider answered, but with no message in it")
        raise spent(error, usage_of(response), cost_usd) if getattr(response, "usage", None) else error
    message = choices[0].message
    return Completion(
        text=message.content or "",
        thinking=getattr(message, "reasoning_content", None) or None,
        tool_calls=tuple(
            read_call(call.id, call.function.name, call.function.arguments)
            for call in getattr(message, "tool_calls", None) or ()
        ),
        finish_reason=choices[0].finish_reason,
        usage=usage_of(response),
        cost_usd=cost_usd,
        model=getattr(response, "model", None),
    )


def text_of_chunk(chunk: Any) -> str:  # noqa: ANN401 - litellm's ModelResponseStream
    """Return the text in a part of a streamed answer."""
    choices = getattr(chunk, "choices", None)
    return (getattr(choices[0].delta, "content", None) or "") if choices else ""


def usage_of(response: Any) -> Usage:  # noqa: ANN401 - litellm's, or a part of a stream
    """Return an answer's tokens as reported by the provider."""
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens_details", None)
    answer = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cache_read_tokens=_count(prompt, "cached_tokens") or _count(usage, "cache_read_input_tokens"),
        cache_write_tokens=_count(prompt, "cache_creation_tokens") or _count(usage, "cache_creation_input_tokens"),
        reasoning_tokens=_count(answer, "reasoning_tokens"),
    )


def _count(holder: object, name: str) -> int:
    return int(getattr(holder, name, None) or 0)
