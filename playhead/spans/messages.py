"""Messages as spans show them: as attributes, and as OpenAI's JSON. Each is put into words once, however often it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import (
    ImageAttributes,
    MessageAttributes,
    MessageContentAttributes,
    SpanAttributes,
    ToolAttributes,
    ToolCallAttributes,
)

from playhead.spans.texts import clean, json_of, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.trace.events import LlmResponded, MessageAdded
    from playhead.trace.types import Content, ToolCall, ToolSpec

INPUT: Final = SpanAttributes.LLM_INPUT_MESSAGES
OUTPUT: Final = SpanAttributes.LLM_OUTPUT_MESSAGES
_ROLE: Final = MessageAttributes.MESSAGE_ROLE
_CONTENT: Final = MessageAttributes.MESSAGE_CONTENT
_TYPE: Final = MessageContentAttributes.MESSAGE_CONTENT_TYPE
_TEXT: Final = MessageContentAttributes.MESSAGE_CONTENT_TEXT
_URL: Final = f"{MessageContentAttributes.MESSAGE_CONTENT_IMAGE}.{ImageAttributes.IMAGE_URL}"

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
    said = content_shown(content, image)
    wire: dict[str, Any] = {"role": added.role, "content": said}
    attributes = [(_ROLE, str(added.role)), *_content_attributes(said)]
    _add_calls(calls, wire, attributes)
    if added.tool_call_id is not None:
        wire["tool_call_id"] = clean(added.tool_call_id)
        attributes.append((MessageAttributes.MESSAGE_TOOL_CALL_ID, wire["tool_call_id"]))
    if name is not None:
        wire["name"] = clean(name)
        attributes.append((MessageAttributes.MESSAGE_NAME, wire["name"]))
    return _shown(wire, attributes)


def shown_answer(response: LlmResponded) -> Shown:
    """Return the assistant's message that an answer is, with the reasoning that it is not sent back with."""
    text = clean(response.text)
    wire: dict[str, Any] = {"role": "assistant", "content": text}
    attributes = [(_ROLE, "assistant")]
    if text or not response.tool_calls:
        attributes.append((_CONTENT, text))
    if response.thinking:
        wire["reasoning_content"] = clean(response.thinking)
        attributes += _part_attributes(0, "reasoning", _TEXT, wire["reasoning_content"])
    _add_calls(response.tool_calls, wire, attributes)
    return _shown(wire, attributes)


def _shown(wire: dict[str, Any], attributes: list[tuple[str, str]]) -> Shown:
    names, values = zip(*attributes, strict=True)
    return Shown(names, values, json_of(wire), wire)


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


def _content_attributes(content: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - as above
    if isinstance(content, str):
        return [(_CONTENT, content)] if content else []
    attributes: list[tuple[str, str]] = []
    for number, part in enumerate(content):
        if part["type"] == "text":
            attributes += _part_attributes(number, "text", _TEXT, part["text"])
        else:
            attributes += _part_attributes(number, "image", _URL, part["image_url"]["url"])
    return attributes


def _part_attributes(number: int, kind: str, name: str, value: str) -> list[tuple[str, str]]:
    prefix = f"{MessageAttributes.MESSAGE_CONTENTS}.{number}"
    return [(f"{prefix}.{_TYPE}", kind), (f"{prefix}.{name}", value)]


def _add_calls(calls: Sequence[ToolCall], wire: dict[str, Any], attributes: list[tuple[str, str]]) -> None:
    if not calls:
        return
    wire["tool_calls"] = []
    wire["content"] = wire["content"] or None  # as it is sent
    for number, call in enumerate(calls):
        function = {"name": clean(call.name), "arguments": arguments_of(call)}
        wire["tool_calls"].append({"id": clean(call.id), "type": "function", "function": function})
        prefix = f"{MessageAttributes.MESSAGE_TOOL_CALLS}.{number}"
        attributes += [
            (f"{prefix}.{ToolCallAttributes.TOOL_CALL_ID}", clean(call.id)),
            (f"{prefix}.{ToolCallAttributes.TOOL_CALL_FUNCTION_NAME}", function["name"]),
            (f"{prefix}.{ToolCallAttributes.TOOL_CALL_FUNCTION_ARGUMENTS_JSON}", function["arguments"]),
        ]


def arguments_of(call: ToolCall) -> str:
    """Return a call's arguments as JSON text, or what the model wrote in its place."""
    if call.arguments is None:
        return clean(call.raw_arguments or "")
    return shown(call.arguments)[0]
