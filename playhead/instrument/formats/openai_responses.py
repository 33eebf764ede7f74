"""OpenAI's Responses.

https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from playhead.importing.bodies import Json, Place, at, object_of, objects, text
from playhead.importing.wire import Format
from playhead.instrument.formats.openai_chat import ROLES
from playhead.instrument.formats.pieces import begins_with_system, call, content_of, message, tool, usage_of, with_first
from playhead.trace.types import Completion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.types import Content, Message, ToolCall, ToolSpec
    from playhead.trace.values import JsonValue

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of items that are calls, and where their arguments stand."""


class OpenAIResponses(Format):
    """`POST …/responses`."""

    name = "openai-responses"
    provider = "openai"
    path = re.compile(r"/responses$")
    own = frozenset({"model", "input", "instructions", "tools", "stream", "stream_options"})
    thread = "input"
    caps: ClassVar[tuple[Place, ...]] = (("max_output_tokens",),)

    def messages(self, body: Json) -> list[Message]:
        """Return the instructions and the input; a call joins the assistant's message before it."""
        prompt, given = text(body.get("instructions")), body.get("input")
        found = [message("system", prompt)] if prompt else []
        if isinstance(given, str):
            return [*found, message("user", text(given))]
        for item in objects(given):
            asked = _calls([item])
            if asked and found and found[-1].role == "assistant":
                found[-1] = found[-1].model_copy(update={"tool_calls": found[-1].tool_calls + asked})
            elif item.get("type") != "reasoning":
                found.append(_message(item, asked))
        return found

    def tools(self, body: Json) -> Iterator[ToolSpec]:
        """Return the tools."""
        return (tool(each, "parameters") for each in objects(body.get("tools")))

    def with_prompt(self, body: Json, prompt: str) -> Json:
        """Return the request with other instructions, or another system message at the start of its input."""
        given = objects(body.get("input"))
        if body.get("instructions") or not begins_with_system(given):
            return {**body, "instructions": prompt}
        return {**body, "input": with_first(given, prompt)}

    def completion(self, answer: Json) -> Completion | None:
        """Return the output."""
        items = objects(answer.get("output"))
        if not isinstance(answer.get("output"), list):
            return None
        why = text(at(answer, "incomplete_details", "reason")) or text(answer.get("status"))
        return Completion(
            text="".join(_text_of(each.get("content")) for each in items if each.get("type") == "message"),
            thinking="\n".join(filter(None, map(_thinking, items))) or None,
            tool_calls=_calls(items),
            finish_reason=why or None,
            usage=usage_of(
                answer.get("usage"),
                input_tokens=("input_tokens",),
                output_tokens=("output_tokens",),
                cache_read_tokens=("input_tokens_details", "cached_tokens"),
                cache_write_tokens=("input_tokens_details", "cache_write_tokens"),
                reasoning_tokens=("output_tokens_details", "reasoning_tokens"),
            ),
            model=text(answer.get("model")) or None,
        )

    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the response in the last event; of a broken stream, the items that were finished."""
        for part in reversed(parts):
            if text(part.get("type")) in {"response.completed", "response.incomplete", "response.failed"}:
                return object_of(part.get("response")), True
        done = [part.get("item") for part in parts if part.get("type") == "response.output_item.done"]
        begun = object_of(at(parts[0], "response")) if parts else {}
        return {**begun, "output": done} if begun else {}, False


def _message(item: Json, asked: tuple[ToolCall, ...]) -> Message:
    kind = text(item.get("type"))
    if asked:
        return message("assistant", "", tool_calls=asked)
    if kind.endswith("_output"):
        return message("tool", _content(item.get("output")), tool_call_id=text(item.get("call_id")) or None)
    if "role" in item:
        return message(ROLES.get(text(item["role"]), "user"), _content(item.get("content")))
    return message("assistant", content_of([item], texts=()))


def _content(parts: JsonValue) -> Content:
    return content_of(parts, texts=("input_text", "output_text"), image="input_image", url=("image_url",))


def _text_of(content: JsonValue) -> str:
    return "".join(text(each.get("text")) or text(each.get("refusal")) for each in objects(content))


def _thinking(item: Json) -> str:
    if item.get("type") != "reasoning":
        return ""
    return _text_of(item.get("content")) or _text_of(item.get("summary"))


def _calls(items: list[Json]) -> tuple[ToolCall, ...]:
    return tuple(
        call(each.get("call_id"), each.get("name"), each.get(_CALLS[kind]))
        for each in items
        if (kind := text(each.get("type"))) in _CALLS
    )
