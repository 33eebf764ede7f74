"""Messages as spans show them: as attributes, and as OpenAI's JSON. Each is put into words once, however often it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import get_llm_input_message_attributes
from openinference.semconv.trace import MessageAttributes, SpanAttributes, ToolAttributes

from playhead.spans.texts import clean, json_of, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.trace.events import LlmResponded, MessageAdded
    from playhead.trace.types import Content, ToolCall, ToolSpec

INPUT: Final = SpanAttributes.LLM_INPUT_MESSAGES
OUTPUT: Final = SpanAttributes.LLM_OUTPUT_MESSAGES
_FIRST: Final = f"{INPUT}.0."

Image = Callable[[str], str]
"""Returns what stands for an image."""


@dataclass(slots=True, eq=False)
class Shown:
    """A message, ready for any number of spans."""

    names: tuple[str, ...]
    """Names of its attributes, as they stand behind its number in the list of messages."""
    values: tuple[str, ...]
    """Their values."""
    json: str
    """OpenAI's form."""
    message: dict[str, Any]
    """The same as data."""
    images_left_out: int = 0
    """Images that it has and that are too large to be shown."""

    @property
    def text(self) -> str | list[Any]:
        """What it says."""
        return self.message.get("content") or ""


def shown_message(
    added: MessageAdded, name: str | None, content: Content, calls: Sequence[ToolCall], image: Image
) -> Shown:
    """Return a message of a prompt, with the name, the content and the calls that it is shown with."""
    wire: dict[str, Any] = {"role": added.role, "content": content_shown(content, image), **_calls_shown(calls)}
    parts = () if isinstance(wire["content"], str) else [_part(each) for each in wire["content"]]
    if calls:
        wire["content"] = wire["content"] or None  # as it is sent
    if added.tool_call_id is not None:
        wire["tool_call_id"] = clean(added.tool_call_id)
    if name is not None:
        wire["name"] = clean(name)
    return _shown(wire, wire["content"] or None, parts)


def shown_answer(response: LlmResponded) -> Shown:
    """Return the assistant's message that an answer is, with the reasoning that it is not sent back with."""
    text, thinking = clean(response.text), clean(response.thinking or "")
    wire: dict[str, Any] = {"role": "assistant", "content": (text or None) if response.tool_calls else text}
    if thinking:
        wire["reasoning_content"] = thinking
    wire |= _calls_shown(response.tool_calls)
    return _shown(wire, wire["content"], [{"type": "reasoning", "text": thinking}] if thinking else ())


def _shown(wire: dict[str, Any], text: Any, parts: Sequence[dict[str, Any]]) -> Shown:  # noqa: ANN401 - text, or parts
    """Return a message in both forms; OpenInference puts text and parts under two names."""
    message: Any = {**wire, "content": text if isinstance(text, str) else None, "contents": parts}
    made = get_llm_input_message_attributes([message])
    attributes = {name.removeprefix(_FIRST): str(value) for name, value in made.items()}
    if "name" in wire:
        attributes[MessageAttributes.MESSAGE_NAME] = wire["name"]
    return Shown(tuple(attributes), tuple(attributes.values()), json_of(wire), wire)


def shown_tool(tool: ToolSpec) -> str:
    """Return a tool as OpenAI's JSON."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json_of({"type": "function", "function": function})


def message_attributes(prefix: str, messages: Sequence[Shown]) -> dict[str, Any]:
    """Return the attributes of a list of messages; the prefix is `INPUT` or `OUTPUT`."""
    attributes: dict[str, Any] = {}
    for number, message in enumerate(messages):
        keys = attribute_names(prefix, number, message.names)
        attributes.update(zip(keys, message.values, strict=True))
    return attributes


@lru_cache(maxsize=4096)
def attribute_names(prefix: str, number: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attributes' names; most messages of a run have the same."""
    return tuple(f"{prefix}.{number}.{name}" for name in names)


def tool_attributes(tools: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of the tools that a request offers."""
    return {
        f"{SpanAttributes.LLM_TOOLS}.{number}.{ToolAttributes.TOOL_JSON_SCHEMA}": tool
        for number, tool in enumerate(tools)
    }


def content_shown(content: Content, image: Image) -> Any:  # noqa: ANN401 - text, or OpenAI's list of parts
    """Return text, or the parts of a message in OpenAI's form."""
    if isinstance(content, str):
        return clean(content)
    return [
        {"type": "text", "text": clean(part.text)}
        if part.type == "text"
        else {"type": "image_url", "image_url": {"url": clean(image(part.url))}}
        for part in content
    ]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a message in OpenInference's form."""
    return part if part["type"] == "text" else {"type": "image", "image": part["image_url"]}


def _calls_shown(calls: Sequence[ToolCall]) -> dict[str, Any]:
    said = [
        {
            "id": clean(call.id),
            "type": "function",
            "function": {"name": clean(call.name), "arguments": arguments_of(call)},
        }
        for call in calls
    ]
    return {"tool_calls": said} if said else {}


def arguments_of(call: ToolCall) -> str:
    """Return a call's arguments as JSON text, or what the model wrote in its place."""
    if call.arguments is None:
        return clean(call.raw_arguments or "")
    return shown(call.arguments)[0]
