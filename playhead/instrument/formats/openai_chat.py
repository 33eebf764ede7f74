"""OpenAI's chat completions, which most hosted and local servers speak too.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from playhead.importing.bodies import Json, Place, at, first, object_of, objects, text
from playhead.importing.wire import Format
from playhead.instrument.formats.pieces import call, content_of, message, tool, usage_of, with_first
from playhead.trace.base import made
from playhead.trace.types import Completion, Message
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.importing.wire import WireRequest
    from playhead.trace.types import ToolCall, ToolSpec

ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool", "function": "tool"}
_OPENAI = re.compile(r"https://[^/]*(openai\.com|azure\.com)/")


class OpenAIChat(Format):
    """`POST …/chat/completions`."""

    name = "openai-chat"
    provider = "openai"
    path = re.compile(r"/chat/completions$")
    own = frozenset({"model", "messages", "tools", "stream", "stream_options"})
    caps: ClassVar[tuple[Place, ...]] = (("max_tokens",), ("max_completion_tokens",))

    def messages(self, body: Json) -> Iterator[Message]:
        """Return the messages."""
        for each in objects(body.get("messages")):
            role, said = ROLES.get(text(each.get("role")), "user"), each.get("content")
            if len(each) == 2 and isinstance(said, str):  # noqa: PLR2004 - role and content, as most have
                yield made(Message, id=0, role=role, content=scrub(said))
                continue
            content = content_of(said, texts=("text", "input_text"), image="image_url", url=("image_url", "url"))
            yield message(role, content, tool_calls=_calls(each), tool_call_id=text(each.get("tool_call_id")) or None)

    def tools(self, body: Json) -> Iterator[ToolSpec]:
        """Return the tools."""
        for each in objects(body.get("tools")):
            yield tool(object_of(at(each, text(each.get("type")))) or each, "parameters")

    def with_prompt(self, body: Json, prompt: str) -> Json:
        """Return the request with this prompt in the place of a system message at its start."""
        return {**body, "messages": with_first(objects(body.get("messages")), prompt)}

    def cap_place(self, wire: WireRequest) -> Place:
        """Return where the output cap stands; OpenAI's newer models refuse `max_tokens`, other servers know only that."""
        place = super().cap_place(wire)
        is_unset = at(wire.body, *place) is None
        return ("max_completion_tokens",) if is_unset and _OPENAI.match(wire.url) else place

    def completion(self, answer: Json) -> Completion | None:
        """Return the first choice."""
        choice = next(iter(objects(answer.get("choices"))), None)
        if choice is None:
            return None
        said = object_of(choice.get("message"))
        return Completion(
            text=text(said.get("content") or said.get("refusal")),
            thinking=text(said.get("reasoning_content") or said.get("reasoning")) or None,
            tool_calls=_calls(said) if said.get("tool_calls") else (),
            finish_reason=text(choice.get("finish_reason")) or None,
            usage=usage_of(
                answer.get("usage"),
                input_tokens=("prompt_tokens",),
                output_tokens=("completion_tokens",),
                cache_read_tokens=("prompt_tokens_details", "cached_tokens"),
                cache_write_tokens=("prompt_tokens_details", "cache_write_tokens"),
                reasoning_tokens=("completion_tokens_details", "reasoning_tokens"),
            ),
            model=text(answer.get("model")) or None,
        )

    def joined(self, parts: list[Json]) -> tuple[Json, bool]:
        """Return the first choice of all chunks together."""
        chunks = [each for part in parts for each in objects(part.get("choices")) if not each.get("index")]
        deltas = [object_of(each.get("delta")) for each in chunks]
        finish = next((reason for each in reversed(chunks) if (reason := each.get("finish_reason"))), None)
        said = {
            name: "".join(text(delta.get(name)) for delta in deltas)
            for name in ("content", "refusal", "reasoning_content", "reasoning")
        }
        calls = _joined_calls(fragment for delta in deltas for fragment in objects(delta.get("tool_calls")))
        answer = {
            "choices": [{"message": {**said, "tool_calls": calls}, "finish_reason": finish}] if chunks else [],
            "usage": next((usage for part in reversed(parts) if (usage := part.get("usage"))), None),
            "model": next((model for part in parts if (model := part.get("model"))), None),
        }
        return answer, finish is not None


def _calls(said: Json) -> tuple[ToolCall, ...]:
    return tuple(
        call(each.get("id"), _of_call([each], "name"), _of_call([each], "arguments", "input"))
        for each in objects(said.get("tool_calls"))
    )


def _joined_calls(fragments: Iterable[Json]) -> list[Json]:
    """Return the calls of a stream; the fragments of a call have its index, or else its id."""
    groups: dict[str, list[Json]] = {}
    for each in fragments:
        groups.setdefault(str(each.get("index", each.get("id"))), []).append(each)
    return [
        {
            "id": next((found for each in group if (found := each.get("id"))), None),
            "function": {"name": _of_call(group[:1], "name"), "arguments": _of_call(group, "arguments", "input")},
        }
        for group in groups.values()
    ]


def _of_call(fragments: list[Json], *names: str) -> str:
    """Return a text of a call: a `function`, or a `custom` tool, whose input is any text."""
    return "".join(text(first(first(each, "function", "custom"), *names)) for each in fragments)
