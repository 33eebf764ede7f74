"""Converts messages and values for spans: to text that every backend accepts, to attributes, and to OpenAI's JSON.

Each message is converted once, even when many requests send it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import get_llm_input_message_attributes
from openinference.semconv.trace import (
    MessageAttributes,
    OpenInferenceMimeTypeValues,
    SpanAttributes,
    ToolAttributes,
)
from pydantic_core import to_json

from playhead.trace.values import TYPE_TAG, repair_json, scrub, untagged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.trace.events import LlmResponded, MessageAdded
    from playhead.trace.types import Content, ToolCall, ToolSpec
    from playhead.trace.values import JsonValue

TEXT = OpenInferenceMimeTypeValues.TEXT.value
JSON = OpenInferenceMimeTypeValues.JSON.value

_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""An escaped NUL: `\\u0000` after an even number of backslashes. (After an odd number, the backslash itself is escaped.)"""


def clean(text: str) -> str:
    """Return text that backends can store: NUL and lone surrogates become U+FFFD.

    (PostgreSQL stores no NUL. Phoenix, which uses it, accepts a span with a NUL and drops it silently.)
    """
    text = text if text.isascii() else scrub(text)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text


def cleaned(text: str | None) -> str | None:
    """Return text that backends can store, or None for None."""
    return None if text is None else clean(text)


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def json_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return compact JSON; never raises."""
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except (ValueError, RecursionError):  # lone surrogates, or nested too deep: tagged, as in the trace
        return to_json(repair_json(value)).decode()


def json_taken_apart(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return compact JSON without NUL, even escaped, for attributes that backends parse before storing."""
    text = json_of(value)
    return _NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


def shown(value: JsonValue) -> tuple[str, str]:
    """Return a recorded value as text with its MIME type: strings unchanged, other values as JSON without the trace's tags."""
    if isinstance(value, str):
        return clean(value), TEXT
    text = json_of(value)
    if TYPE_TAG not in text:
        return text, JSON
    plain = untagged(value)
    return (clean(plain), TEXT) if isinstance(plain, str) else (json_of(plain), JSON)


# --- messages ----------

INPUT: Final = SpanAttributes.LLM_INPUT_MESSAGES
OUTPUT: Final = SpanAttributes.LLM_OUTPUT_MESSAGES
_FIRST: Final = f"{INPUT}.0."

Image = Callable[[str], str]
"""Returns the URL of an image, or its replacement."""


@dataclass(slots=True, eq=False)
class Shown:
    """A message, ready for any number of spans."""

    names: tuple[str, ...]
    """Names of its attributes, without the prefix that contains its number in the list of messages."""
    values: tuple[str, ...]
    """Their values."""
    json: str
    """The message as OpenAI's JSON."""
    message: dict[str, Any]
    """The message as data."""


def shown_message(
    added: MessageAdded, name: str | None, content: Content, calls: Sequence[ToolCall], image: Image
) -> Shown:
    """Return a message of a prompt with the given name, content and calls, which may be masked."""
    wire: dict[str, Any] = {"role": added.role, "content": content_shown(content, image), **_calls_shown(calls)}
    parts = [
        each if each["type"] == "text" else {"type": "image", "image": each["image_url"]}  # OpenInference's form
        for each in (() if isinstance(wire["content"], str) else wire["content"])
    ]
    if calls:
        wire["content"] = wire["content"] or None  # as it is sent
    if added.tool_call_id is not None:
        wire["tool_call_id"] = clean(added.tool_call_id)
    if name is not None:
        wire["name"] = clean(name)
    return _shown(wire, wire["content"] or None, parts)


def shown_answer(response: LlmResponded) -> Shown:
    """Return an answer as an assistant message, with its reasoning, which later prompts leave out."""
    text, thinking = clean(response.text), clean(response.thinking or "")
    wire: dict[str, Any] = {"role": "assistant", "content": (text or None) if response.tool_calls else text}
    if thinking:
        wire["reasoning_content"] = thinking
    wire |= _calls_shown(response.tool_calls)
    return _shown(wire, wire["content"], [{"type": "reasoning", "text": thinking}] if thinking else ())


def _shown(wire: dict[str, Any], text: Any, parts: Sequence[dict[str, Any]]) -> Shown:  # noqa: ANN401 - text, or parts
    """Return a message in both forms; OpenInference has separate names for text and for parts."""
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
    """Return the attributes' full names; cached, because most messages of a run have the same names."""
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


def _calls_shown(calls: Sequence[ToolCall]) -> dict[str, Any]:
    """Return calls in OpenAI's form; arguments that are not JSON are shown as the model wrote them."""
    said = []
    for call in calls:
        arguments = clean(call.raw_arguments or "") if call.arguments is None else shown(call.arguments)[0]
        function = {"name": clean(call.name), "arguments": arguments}
        said.append({"id": clean(call.id), "type": "function", "function": function})
    return {"tool_calls": said} if said else {}
