"""Anthropic's messages.

https://docs.anthropic.com/en/api/messages and …/messages-streaming
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from playhead.importing.bodies import Json, Place, at, count, object_of, objects, parsed, text
from playhead.importing.wire import Format
from playhead.instrument.formats.pieces import call, content_of, message, simplest, tool, usage_of
from playhead.trace.base import made
from playhead.trace.types import Completion, ImagePart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.types import Content, Message, ToolCall, ToolSpec, Usage
    from playhead.trace.values import JsonValue

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Types of deltas, and where their text stands."""
_APART = {"tool_use", "tool_result", "thinking", "redacted_thinking"}
"""Types of blocks that are not content of their message."""


class AnthropicMessages(Format):
    """`POST …/v1/messages`, and `…:rawPredict` of Vertex AI, whose model stands in the path."""

    name = "anthropic"
    provider = "anthropic"
    path = re.compile(r"/v1/messages$|/publishers/anthropic/models/(?P<model>[^/:]+):(rawPredict|streamRawPredict)$")
    own = frozenset({"model", "messages", "system", "tools", "stream"})
    caps: ClassVar[tuple[Place, ...]] = (("max_tokens",),)

    def messages(self, body: Json) -> Iterator[Message]:
        """Return the messages; results of tools are messages of their own."""
        if prompt := _content(body.get("system")):
            yield message("system", prompt)
        for each in objects(body.get("messages")):
            given, role = each.get("content"), "assistant" if each.get("role") == "assistant" else "user"
            for block in objects(given):
                if block.get("type") == "tool_result":
                    answered = text(block.get("tool_use_id")) or None
                    yield message("tool", _content(block.get("content")), tool_call_id=answered)
            kept = (
                [part for part in given if text(at(part, "type")) not in _APART] if isinstance(given, list) else given
            )
            asked = _calls(objects(given))
            if kept or asked or not given:
                yield message(role, _content(kept), tool_calls=asked)

    def tools(self, body: Json) -> Iterator[ToolSpec]:
        """Return the tools."""
        return (tool(each, "input_schema") for each in objects(body.get("tools")))

    def with_prompt(self, body: Json, prompt: str) -> Json:
        """Return the request with another system prompt."""
        return {**body, "system": prompt}

    def completion(self, answer: Json) -> Completion | None:
        """Return the message."""
        blocks = objects(answer.get("content"))
        if not isinstance(answer.get("content"), list):
            return None
        return Completion(
            text="".join(text(each.get("text")) for each in blocks if each.get("type") == "text"),
            thinking="".join(text(each.get("thinking")) for each in blocks) or None,
            tool_calls=_calls(blocks),
            finish_reason=text(answer.get("stop_reason")) or None,
            usage=_usage(object_of(answer.get("usage"))),
            model=text(answer.get("model")) or None,
        )

    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the message of all events together."""
        answer: Json = {}
        blocks: dict[str, Json] = {}
        written: dict[str, list[str]] = {}
        for part in parts:
            index, delta = str(part.get("index")), object_of(part.get("delta"))
            match part.get("type"):
                case "message_start":
                    answer = {**object_of(part.get("message")), "content": []}
                case "content_block_start":
                    blocks[index] = object_of(part.get("content_block"))
                case "content_block_delta" if name := _DELTAS.get(text(delta.get("type"))):
                    written.setdefault(index, []).append(text(delta.get(name)))
                case "message_delta":
                    later = {name: item for name, item in object_of(part.get("usage")).items() if item is not None}
                    usage = {**object_of(answer.get("usage")), **later}
                    answer = {**answer, **delta, "usage": usage}
        content = [_filled(block, "".join(written.get(index, ()))) for index, block in blocks.items()]
        whole = any(part.get("type") == "message_stop" for part in parts)
        return {**answer, "content": content} if answer else {}, whole


def _filled(block: Json, written: str) -> Json:
    """Return a block with the text that its deltas wrote."""
    kind = text(block.get("type"))
    if kind in {"text", "thinking"}:
        return {**block, kind: text(block.get(kind)) + written}
    return {**block, "input": parsed(written) if isinstance(parsed(written), dict) else written} if written else block


def _usage(usage: Json) -> Usage:
    """Return the tokens; Anthropic does not count those of its cache as input."""
    found = usage_of(
        usage,
        input_tokens=("input_tokens",),
        output_tokens=("output_tokens",),
        cache_read_tokens=("cache_read_input_tokens",),
        cache_write_tokens=("cache_creation_input_tokens",),
        reasoning_tokens=("output_tokens_details", "thinking_tokens"),
    )
    cached = sum(count(usage.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    return found.model_copy(update={"input_tokens": found.input_tokens + max(0, cached)})  # perhaps impossible


def _content(parts: JsonValue) -> Content:
    """Return the content; an image by content as a `data:` URL."""
    if not isinstance(parts, list):
        return text(parts)
    return simplest([_part(each) for each in parts])


def _part(part: JsonValue) -> TextPart | ImagePart:
    source = object_of(at(part, "source")) if at(part, "type") == "image" else {}
    if url := text(source.get("url")):
        return made(ImagePart, url=url)
    if data := text(source.get("data")):
        return made(ImagePart, url=f"data:{text(source.get('media_type'))};base64,{data}")
    content = content_of([part], texts=("text",))
    return made(TextPart, text=content if isinstance(content, str) else "")


def _calls(blocks: list[Json]) -> tuple[ToolCall, ...]:
    uses = (each for each in blocks if each.get("type") == "tool_use")
    return tuple(call(each.get("id"), each.get("name"), each.get("input")) for each in uses)
