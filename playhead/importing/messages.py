"""Messages of prompts and answers, as OpenInference and OpenTelemetry GenAI write them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.values import NOTHING, at, first_text, object_of, objects_of, parsed_json, text_of
from playhead.trace.types import ImagePart, TextPart, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.trace.types import Content, Part, Role
    from playhead.trace.values import JsonValue

_ROLES: Final[dict[str, Role]] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("assistant", "model", "tool-call"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Roles by the names that providers and frameworks use; any other name means the user. smolagents sends calls and results as
text of the assistant and the user."""


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
    """Kinds of parts that a recording cannot represent, such as `audio`."""
    known: bool = True
    """Whether the span contains the message's content, not only the fact that there is a message."""


def tool_calls(calls: Sequence[ForeignCall], number: int) -> tuple[ToolCall, ...]:
    """Return the calls of a message as events record them; a call without an id gets one made of the message's number."""
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


def messages_of(items: Any) -> tuple[ForeignMessage, ...] | None:  # noqa: ANN401
    """Return the messages of a list; None if there are none."""
    return tuple(message for item in objects_of(items) for message in message_of(item)) or None


def message_of(item: dict[str, Any]) -> list[ForeignMessage]:
    """Return a message; several if it holds several results."""
    value = object_of(item.get("message")) or item
    role = _ROLES.get(str(value.get("role")).lower(), "user")
    parts = _Parts()
    for name in ("parts", "contents", "content"):
        given = [] if parts.content else value.get(name)
        for part in given if isinstance(given, list) else [given]:
            parts.add(part)
    for call in objects_of(value.get("tool_calls")):
        parts.add_call(object_of(call.get("tool_call")) or call)
    has_content = isinstance(value.get("content"), str) or bool(parts.content or parts.calls)
    message = ForeignMessage(
        role=role,
        content=parts.as_content,
        calls=tuple(parts.calls),
        call_id=text_of(value.get("tool_call_id")) if role == "tool" else None,
        name=text_of(value.get("name")) if role == "tool" else None,
        thinking="\n".join(parts.thinking) or None,
        lost=tuple(parts.lost),
        known=has_content and not parts.hidden and value.get("role") is not None,
    )
    return [*parts.results, *([message] if message.content or message.calls or not parts.results else [])]


def answer_of(items: Any) -> ForeignMessage | None:  # noqa: ANN401
    """Return the first answer of a completion; programs do not use the others."""
    answers = (each for item in objects_of(items)[:1] for each in message_of({"role": "assistant", **item}))
    return next((each for each in answers if each.role == "assistant"), None)


@dataclass
class _Parts:
    """The parts of a message."""

    content: list[Part] = field(default_factory=list)
    calls: list[ForeignCall] = field(default_factory=list)
    results: list[ForeignMessage] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    hidden: int = 0
    """Number of texts for which the span contains only the kind."""

    @property
    def as_content(self) -> Content:
        """The text alone if it is the only part, else the parts."""
        if len(self.content) == 1 and isinstance(self.content[0], TextPart):
            return self.content[0].text
        return tuple(self.content) or ""

    def add(self, given: Any) -> None:  # noqa: ANN401
        """Add a text or a part."""
        part = {"type": "text", "text": given} if isinstance(given, str) else object_of(given)
        part = object_of(part.get("message_content")) or part
        kind, text = str(part.get("type", "text")), first_text(part.get("content"), part.get("text"))
        if kind == "tool_call":
            self.add_call(part)
        elif kind == "tool_call_response":
            value = part.get("response", part.get("result", ""))
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            call_id, name = text_of(part.get("id")), text_of(part.get("name"))
            known = bool({"response", "result"} & part.keys())
            self.results.append(ForeignMessage("tool", text, call_id=call_id, name=name, known=known))
        elif kind in ("reasoning", "thinking"):
            self.thinking += [text or ""]
        elif url := text_of(at(part, "image", "image", "url")):
            self.content.append(ImagePart(url=url))
        elif kind != "text":
            self.lost.append(kind[:40])
        elif text:
            self.content.append(TextPart(text=text))
        elif part:
            self.hidden += not any(isinstance(part.get(name), str) for name in ("content", "text"))

    def add_call(self, call: dict[str, Any]) -> None:
        """Add a call."""
        function = object_of(call.get("function")) or call
        if (name := text_of(function.get("name"))) is not None:
            self.calls.append(ForeignCall(text_of(call.get("id")), name, *arguments_of(function.get("arguments"))))
