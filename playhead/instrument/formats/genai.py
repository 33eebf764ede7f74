"""Google's generateContent, of Gemini and Vertex AI.

https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from playhead.importing.bodies import Json, Place, at, object_of, objects, text
from playhead.importing.wire import Format
from playhead.instrument.formats.pieces import call, content_of, message, simplest, tool, usage_of
from playhead.trace.base import made
from playhead.trace.types import Completion, ImagePart, Part, TextPart
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.types import Message, ToolCall, ToolSpec


_NAMES = {"maxOutputTokens": "max_output_tokens"}


class GenerateContent(Format):
    """`POST …/models/MODEL:generateContent` and `:streamGenerateContent`; the model stands in the path."""

    name = "genai"
    provider = "gemini"
    path = re.compile(r"/models/(?P<model>[^/:]+):(generateContent|streamGenerateContent)$")
    own = frozenset({"contents", "systemInstruction", "tools"})
    thread = "contents"
    caps: ClassVar[tuple[Place, ...]] = (("generationConfig", "maxOutputTokens"),)
    options = ("generationConfig",)

    def parameters(self, body: Json) -> Json:
        """Return the parameters; the output cap under a name that budgets know."""
        return {_NAMES.get(name, name): value for name, value in super().parameters(body).items()}

    def messages(self, body: Json) -> Iterator[Message]:
        """Return the contents; results of functions are messages of their own."""
        prompt = object_of(body.get("systemInstruction"))
        contents = [{**prompt, "role": "system"}] if prompt else []
        for each in (*contents, *objects(body.get("contents"))):
            parts = objects(each.get("parts"))
            for answer in (object_of(part.get("functionResponse")) for part in parts):
                if answer:
                    shown, answered = text(as_text(answer.get("response"))), text(answer.get("id")) or None
                    yield message("tool", shown, tool_call_id=answered, name=text(answer.get("name")) or None)
            role = {"model": "assistant", "system": "system"}.get(text(each.get("role")), "user")
            kept, asked = [_part(part) for part in parts if not _is_apart(part)], _calls(parts)
            if kept or asked:
                yield message(role, simplest(kept), tool_calls=asked)

    def tools(self, body: Json) -> Iterator[ToolSpec]:
        """Return the functions; a tool that Google runs, such as `googleSearch`, is not one."""
        for each in objects(body.get("tools")):
            for function in objects(each.get("functionDeclarations")):
                yield tool(function, "parametersJsonSchema" if "parametersJsonSchema" in function else "parameters")

    def with_prompt(self, body: Json, prompt: str) -> Json:
        """Return the request with another text in its system instruction."""
        return {**body, "systemInstruction": {**object_of(body.get("systemInstruction")), "parts": [{"text": prompt}]}}

    def completion(self, answer: Json) -> Completion | None:
        """Return the first candidate."""
        candidate = next(iter(objects(answer.get("candidates"))), None)
        if candidate is None:
            return None
        parts = objects(at(candidate, "content", "parts"))
        usage = usage_of(
            answer.get("usageMetadata"),
            input_tokens=("promptTokenCount",),
            output_tokens=("candidatesTokenCount",),
            cache_read_tokens=("cachedContentTokenCount",),
            reasoning_tokens=("thoughtsTokenCount",),
        )
        return Completion(
            text="".join(text(part.get("text")) for part in parts if not part.get("thought")),
            thinking="".join(text(part.get("text")) for part in parts if part.get("thought")) or None,
            tool_calls=_calls(parts),
            finish_reason=text(candidate.get("finishReason")) or None,
            usage=usage.model_copy(update={"output_tokens": usage.output_tokens + usage.reasoning_tokens}),
            model=text(answer.get("modelVersion")) or None,
        )

    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the first candidate of all parts together."""
        candidates = [each for part in parts for each in objects(part.get("candidates")) if not each.get("index")]
        said = [piece for each in candidates for piece in objects(at(each, "content", "parts"))]
        finish = next((reason for each in reversed(candidates) if (reason := each.get("finishReason"))), None)
        last = parts[-1] if parts else {}
        joined = [{"content": {"parts": said}, "finishReason": finish}] if candidates else []
        return {**last, "candidates": joined}, finish is not None


def _is_apart(part: Json) -> bool:
    return bool(part.get("thought")) or any(name in part for name in ("functionCall", "functionResponse"))


def _part(part: Json) -> Part:
    if data := text(at(part, "inlineData", "data")):
        return made(ImagePart, url=f"data:{text(at(part, 'inlineData', 'mimeType'))};base64,{data}")
    content = text(part["text"]) if "text" in part else content_of([part], texts=())
    return made(TextPart, text=content)


def _calls(parts: list[Json]) -> tuple[ToolCall, ...]:
    asked = (object_of(part.get("functionCall")) for part in parts)
    return tuple(call(each.get("id"), each.get("name"), each.get("args")) for each in asked if each)
