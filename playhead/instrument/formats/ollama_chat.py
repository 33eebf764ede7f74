"""Ollama's chat.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from playhead.importing.bodies import Json, Place, at, object_of, objects, text
from playhead.instrument.formats.openai_chat import ROLES, OpenAIChat
from playhead.instrument.formats.pieces import call, message, simplest, usage_of
from playhead.trace.base import made
from playhead.trace.types import Completion, ImagePart, Part, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.types import Message, ToolCall
    from playhead.trace.values import JsonValue


class OllamaChat(OpenAIChat):
    """`POST …/api/chat`; tools are written as in OpenAI's format."""

    name = "ollama"
    provider = "ollama"
    path = re.compile(r"/api/chat$")
    own = frozenset({"model", "messages", "tools", "stream"})
    caps: ClassVar[tuple[Place, ...]] = (("options", "num_predict"),)
    options = ("options",)

    def messages(self, body: Json) -> Iterator[Message]:
        """Return the messages."""
        for each in objects(body.get("messages")):
            parts: list[Part] = [made(TextPart, text=text(each.get("content")))]
            images: list[JsonValue] = given if isinstance(given := each.get("images"), list) else []
            parts += [made(ImagePart, url=f"data:image/*;base64,{text(image)}") for image in images]
            yield message(
                ROLES.get(text(each.get("role")), "user"),
                simplest(parts),
                tool_calls=_calls(each),
                tool_call_id=text(each.get("tool_call_id")) or None,
                name=text(each.get("tool_name")) or None,
            )

    def completion(self, answer: Json) -> Completion | None:
        """Return the message."""
        said = answer.get("message")
        if not isinstance(said, dict):
            return None
        return Completion(
            text=text(said.get("content")),
            thinking=text(said.get("thinking")) or None,
            tool_calls=_calls(said),
            finish_reason=text(answer.get("done_reason")) or None,
            usage=usage_of(answer, input_tokens=("prompt_eval_count",), output_tokens=("eval_count",)),
            model=text(answer.get("model")) or None,
        )

    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the message of all parts together."""
        said = [object_of(part.get("message")) for part in parts]
        texts = {name: "".join(text(each.get(name)) for each in said) for name in ("content", "thinking")}
        calls = [each for one in said for each in objects(one.get("tool_calls"))]
        last = parts[-1] if parts else {}
        answer = {**last, "message": {**texts, "tool_calls": calls}} if any(said) else {}
        return answer, last.get("done") is True


def _calls(said: Json) -> tuple[ToolCall, ...]:
    return tuple(
        call(each.get("id"), at(each, "function", "name"), at(each, "function", "arguments"))
        for each in objects(said.get("tool_calls"))
    )
