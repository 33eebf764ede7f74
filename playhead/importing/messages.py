"""Messages in the shapes that providers, frameworks and conventions write."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.values import NOTHING, at, first_text, object_of, objects_of, parsed_json, text_of
from playhead.trace.types import ImagePart, TextPart, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.trace.types import Content, Part, Role
    from playhead.trace.values import JsonValue

_ROLES: Final[dict[str, Role]] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "tool-response"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "tool-call"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Roles by the words of providers and frameworks; smolagents sends calls and results as text of the assistant and the user."""
_CALLS: Final = ("tool_call", "tool_use", "function_call")
_RESULTS: Final = ("tool_call_response", "tool_result", "function_call_output")
_THINKING: Final = ("reasoning", "thinking")
_BESIDE: Final = (*_CALLS, *_RESULTS, *_THINKING)
"""Items beside messages in OpenAI's Responses."""
_FIELDS: Final = ("parts", "contents", "content")
"""Names of a message's content: in GenAI, in OpenInference, and elsewhere."""
_REASONS: Final = ("finish_reason", "stop_reason", "finishReason")
_WITHIN: Final = ("generation_info", "response_metadata", "incomplete_details", "message", "kwargs", "data")
_LISTS: Final = ("choices", "generations", "candidates")
"""Names under which an answer's finish reason is found."""
_MAX_DEPTH: Final = 6


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call that a model asked for."""

    id: str | None
    name: str
    arguments: dict[str, JsonValue] | None
    """None when they are not a JSON object."""
    raw: str | None = None
    """The text of the arguments, when they are not a JSON object."""


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """A message of a prompt, or an answer."""

    role: Role
    content: Content = ""
    calls: tuple[ForeignCall, ...] = ()
    call_id: str | None = None
    """In a result, the call that it answers."""
    name: str | None = None
    """In a result, the tool's name."""
    thinking: str | None = None
    lost: tuple[str, ...] = ()
    """Kinds of parts that a recording cannot hold, such as `audio`."""
    known: bool = True
    """Whether the span holds its content, and not only that there is a message."""


def tool_calls(calls: Sequence[ForeignCall], number: int) -> tuple[ToolCall, ...]:
    """Return the calls of a message as events hold them; a call without an id gets one of the message's number."""
    return tuple(
        ToolCall(
            id=call.id or f"call_{number}_{place}", name=call.name, arguments=call.arguments, raw_arguments=call.raw
        )
        for place, call in enumerate(calls)
    )


def arguments_of(value: Any) -> tuple[dict[str, Any] | None, str | None]:  # noqa: ANN401 - any JSON value
    """Return arguments as an object, or else their text."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return parsed, None
    if value is None or value is NOTHING or value == "":
        return None, None
    return None, value if isinstance(value, str) else json.dumps(value)


def messages_of(value: Any) -> tuple[ForeignMessage, ...] | None:  # noqa: ANN401
    """Return the messages of a list, or of an object with a list of messages; None if there are none."""
    if isinstance(value, dict):
        value = value.get("messages", value.get("input"))
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain has a list for each prompt of a batch
    items = objects_of(value) if isinstance(value, list) else []
    found = [message_of(each) for each in items]
    if not any(found):
        return None
    unknown = [ForeignMessage("user", lost=(str(each.get("type"))[:40],), known=False) for each in items]
    return tuple(message for each, other in zip(found, unknown, strict=True) for message in each or [other])


def message_of(value: dict[str, Any]) -> list[ForeignMessage]:
    """Return a message; several if it holds several results; none if it is not a message."""
    value = _bare(value)
    if value.get("type") in _BESIDE and not {"role", "parts"} & value.keys():
        value = {"role": "tool" if value["type"] in _RESULTS else "assistant", "parts": [value]}
    if not {"role", *_FIELDS, "tool_calls"} & value.keys():
        return []
    role = _ROLES.get(str(value.get("role")).lower(), "user")
    parts = _Parts()
    for name in _FIELDS:
        if not parts.content:
            parts.add(value.get(name))
    parts.add_calls(value.get("tool_calls"))
    call_id = first_text(value.get("tool_call_id"), value.get("id") if role == "tool" else None)
    has_content = isinstance(value.get("content"), (str, list)) or bool(parts.content or parts.calls)
    message = ForeignMessage(
        role=role,
        content=parts.content,
        calls=tuple(parts.calls),
        call_id=call_id if role == "tool" else None,
        name=text_of(value.get("name")) if role == "tool" else None,
        thinking="\n".join(parts.thinking) or text_of(value.get("reasoning_content")),
        lost=tuple(parts.lost),
        known=has_content and not parts.hidden and value.get("role") is not None,
    )
    return [*parts.results, *([message] if message.content or message.calls or not parts.results else [])]


def answer_of(value: Any) -> ForeignMessage | None:  # noqa: ANN401
    """Return the first answer of a completion: a message, a list of its parts, choices, or generations of LangChain."""
    if isinstance(value, dict):
        # the items of an output make one answer; each of the others is an answer of its own
        firsts = (
            value[name][:1] for name in ("choices", "generations", "messages") if isinstance(value.get(name), list)
        )
        value = next(firsts, value["output"] if isinstance(value.get("output"), list) else [value])
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0][:1]
    items = objects_of(value) if isinstance(value, list) else []
    return _joined([each for item in items for each in message_of(_answering(item)) if each.role == "assistant"])


def finish_reason_of(answered: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return why a model stopped, of an answer of OpenAI, Anthropic, Gemini or LangChain; of several, the first one's."""
    pending = [answered]
    for depth in range(_MAX_DEPTH):
        objects = [each for each in map(_first, pending) if isinstance(each, dict)]
        names = (*_REASONS, "reason") if depth else _REASONS
        found = first_text(*(each.get(name) for each in objects for name in names))
        if found is not None:
            return found
        pending = [each[name] for each in objects for name in (*_WITHIN, *_LISTS) if name in each]
    return None


def _first(value: Any) -> Any:  # noqa: ANN401
    """Return the first of a list, and of a list of lists, as LangChain has for a batch."""
    for _ in range(2):
        value = value[0] if isinstance(value, list) and value else value
    return value


def _bare(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message in the common shape: out of a choice, of OpenInference's names, or of LangChain's."""
    inner = next((value[name] for name in ("message", "data", "kwargs") if isinstance(value.get(name), dict)), None)
    if inner is None:
        return value
    if "message" not in value:  # LangChain: the type beside its data, or its class
        return {**inner, "role": inner.get("role", inner.get("type") or value.get("type"))}
    return _bare(inner)


def _answering(item: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, which need not say that it is the assistant's."""
    inner = _bare(item)
    return inner if inner.get("type") in _BESIDE or inner.get("role") else {**inner, "role": "assistant"}


def _joined(messages: Sequence[ForeignMessage]) -> ForeignMessage | None:
    """Return the messages of one answer as one: all its calls, and the first text; other texts are lost."""
    if len(messages) < 2:  # noqa: PLR2004 - nothing to join
        return messages[0] if messages else None
    texts = [each for each in messages if each.content]
    return replace(
        (texts or messages)[0],
        calls=tuple(call for each in messages for call in each.calls),
        thinking=next((each.thinking for each in messages if each.thinking), None),
        lost=tuple(kind for each in messages for kind in each.lost) + ("another answer",) * (len(texts) - 1),
        known=all(each.known for each in messages),
    )


class _Parts:
    """The parts of a message."""

    def __init__(self) -> None:
        self._content: list[Part] = []
        self.calls: list[ForeignCall] = []
        self.results: list[ForeignMessage] = []
        self.thinking: list[str] = []
        self.lost: list[str] = []
        self.hidden = 0
        """Texts of which the span holds only the kind."""

    @property
    def content(self) -> Content:
        """The text alone if it is the only part, else the parts."""
        if len(self._content) == 1 and isinstance(self._content[0], TextPart):
            return self._content[0].text
        return tuple(self._content) or ""

    def add(self, value: Any) -> None:  # noqa: ANN401
        """Add a text, a part or several."""
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str):
                self._content += [TextPart(text=part)] if part else []
            elif isinstance(part, dict):
                inner = object_of(part.get("message_content")) or part
                self._add(inner, str(inner.get("type", "text")))

    def add_calls(self, calls: Any) -> None:  # noqa: ANN401
        """Add calls, as OpenAI, Anthropic or OpenInference write them."""
        for each in objects_of(calls):
            call = object_of(each.get("tool_call")) or each
            function = object_of(call.get("function")) or call
            name = text_of(function.get("name"))
            given = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
            if name is not None:
                call_id = first_text(call.get("call_id"), call.get("id"))
                self.calls.append(ForeignCall(call_id, name, *arguments_of(given)))

    def _add(self, part: dict[str, Any], kind: str) -> None:
        said = first_text(part.get("content"), part.get("text"))
        if kind in _CALLS:
            self.add_calls([part])
        elif kind in _RESULTS:
            self._add_result(part)
        elif kind in _THINKING:
            self.thinking += [first_text(said, part.get("thinking")) or ""]
        elif (image := _image(part, kind)) is not None:
            self._content.append(ImagePart(url=image))
        elif kind in ("text", "input_text", "output_text"):
            self.add(said)
            self.hidden += not any(isinstance(part.get(name), str) for name in ("content", "text"))
        else:
            self.lost.append(kind[:40])

    def _add_result(self, part: dict[str, Any]) -> None:
        names = [key for key in ("response", "result", "output", "content") if key in part]
        value = part[names[0]] if names else ""
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        call_id = first_text(*(part.get(name) for name in ("call_id", "tool_use_id", "tool_call_id", "id")))
        name = text_of(part.get("name"))
        self.results.append(ForeignMessage("tool", said, call_id=call_id, name=name, known=bool(names)))


def _image(part: dict[str, Any], kind: str) -> str | None:
    if kind in ("image_url", "input_image", "image"):
        image = part.get("image_url", part.get("image"))
        return first_text(image, at(image, "url"), at(image, "image", "url"), part.get("url"))
    if str(part.get("modality")) != "image" and not str(part.get("mime_type")).startswith("image/"):
        return None
    if kind == "blob" and text_of(part.get("content")):
        return f"data:{part.get('mime_type') or 'image/png'};base64,{part['content']}"
    return text_of(part.get("uri")) if kind == "uri" else None
