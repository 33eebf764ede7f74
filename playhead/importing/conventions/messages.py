"""Messages in the shapes that providers and frameworks write as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.readings import ForeignCall, ForeignMessage
from playhead.importing.values import NOTHING, first_text, object_of, parsed_json, text_of
from playhead.trace.types import ImagePart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.trace.types import Content, Part, Role

ROLES: Final[dict[str, Role]] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "tool-response"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "tool-call"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""By the words of providers and frameworks; smolagents sends calls and results as words of the assistant and the user."""
_CALLS: Final = ("tool_call", "tool_use", "function_call")
_RESULTS: Final = ("tool_call_response", "tool_result", "function_call_output")
_THINKING: Final = ("reasoning", "thinking")


def role_of(word: Any) -> Role:  # noqa: ANN401 - any JSON value
    """Return the role that a word means; the user's when nobody knows it."""
    return ROLES.get(str(word).lower(), "user")


def arguments_of(value: Any) -> tuple[dict[str, Any] | None, str | None]:  # noqa: ANN401
    """Return arguments as an object, or else their text."""
    if isinstance(value, dict):
        return value, None
    parsed = parsed_json(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return parsed, None
    if value is None or value is NOTHING or value == "":
        return None, None
    return None, value if isinstance(value, str) else json.dumps(value)


def call_of(name: Any, arguments: Any, call_id: Any) -> ForeignCall | None:  # noqa: ANN401
    """Return a call, None when it has no name."""
    named = text_of(name)
    if named is None:
        return None
    read, raw = arguments_of(arguments)
    return ForeignCall(text_of(call_id), named, read, raw)


def messages_of(value: Any) -> tuple[ForeignMessage, ...] | None:  # noqa: ANN401
    """Return the messages of a list, or of an object with a list of messages; None when there is none."""
    if isinstance(value, dict):
        value = value.get("messages", value.get("input"))
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain has a list for each prompt of a batch
    if not isinstance(value, list) or not value:
        return None
    items = [each for each in value if isinstance(each, dict)]
    found = [list(_item(each)) for each in items]
    if not any(found):
        return None
    unknown = (ForeignMessage("user", lost=(str(each.get("type"))[:40],), known=False) for each in items)
    return tuple(message for each, other in zip(found, unknown, strict=True) for message in each or [other])


def _item(value: dict[str, Any]) -> Iterator[ForeignMessage]:
    """Yield a message, or a call, a result or a thought that stands beside messages, as in OpenAI's Responses."""
    kind = value.get("type")
    if "role" in value or "parts" in value or kind not in (*_CALLS, *_RESULTS, *_THINKING):
        return message_of(value)
    return message_of({"role": "tool" if kind in _RESULTS else "assistant", "parts": [value]})


def message_of(value: dict[str, Any]) -> Iterator[ForeignMessage]:
    """Yield a message; one that holds several results is as many messages."""
    value = _unwrapped(value)
    if isinstance(value.get("message"), dict):  # a choice
        value = {"finish_reason": value.get("finish_reason"), **value["message"]}
    if not any(name in value for name in ("role", "parts", "content", "tool_calls")):
        return
    role = role_of(value.get("role"))
    parts = _Parts()
    parts.add_all(value.get("parts"))
    parts.add_content(value.get("content"))
    parts.add_calls(value.get("tool_calls"))
    yield from parts.results
    call_id = first_text((value.get("tool_call_id"), value.get("id") if role == "tool" else None))
    message = ForeignMessage(
        role=role,
        content=parts.content,
        calls=tuple(parts.calls),
        call_id=call_id if role == "tool" else None,
        name=text_of(value.get("name")) if role == "tool" else None,
        thinking="\n".join(parts.thinking) or text_of(value.get("reasoning_content")),
        lost=tuple(parts.lost),
        known=bool(parts.content or parts.calls or isinstance(value.get("content"), (str, list))) and not parts.unsaid,
    )
    if message.content or message.calls or not parts.results:
        yield message


def answer_of(value: Any) -> ForeignMessage | None:  # noqa: ANN401
    """Return the first answer of a completion: a message, a list of its parts, choices, or generations of LangChain."""
    if isinstance(value, dict):
        value = _first_inner(value)
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0][:1]
    items = value if isinstance(value, list) else [value]
    found = (each for item in items if isinstance(item, dict) for each in _answers(item))
    return joined([each for each in found if each.role == "assistant"])


def _answers(item: dict[str, Any]) -> Iterator[ForeignMessage]:
    inner = _unwrapped(item)
    inner = _unwrapped(inner["message"]) if isinstance(inner.get("message"), dict) else inner
    return _item(inner) if inner.get("type") in (*_CALLS, *_THINKING) else message_of({"role": "assistant", **inner})


def joined(messages: Sequence[ForeignMessage]) -> ForeignMessage | None:
    """Return the messages of one answer as one: all its calls, and the first text; other texts are lost."""
    if len(messages) < 2:  # noqa: PLR2004 - nothing to join
        return messages[0] if messages else None
    texts = [each for each in messages if each.content]
    first = texts[0] if texts else messages[0]
    lost = tuple(kind for each in messages for kind in each.lost) + ("another answer",) * (len(texts) - 1)
    thinking = next((each.thinking for each in messages if each.thinking), None)
    calls = tuple(call for each in messages for call in each.calls)
    return replace(first, calls=calls, thinking=thinking, lost=lost, known=all(each.known for each in messages))


def _first_inner(value: dict[str, Any]) -> Any:  # noqa: ANN401
    for name in ("choices", "generations", "messages", "output"):
        if isinstance(value.get(name), list):
            # an output is what one answer is made of; each of the others is an answer of its own
            return value[name] if name == "output" else value[name][:1]
    return value


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message of LangChain in the common shape: it says its type beside its data, or its class."""
    inner = value.get("data") if isinstance(value.get("data"), dict) else value.get("kwargs")
    if not isinstance(inner, dict):
        return value
    known = inner.get("type") or value.get("type")
    return {**inner, "role": inner.get("role", known)}


def content_of(value: Any) -> tuple[Content, tuple[str, ...]]:  # noqa: ANN401
    """Return the content of a message, and the kinds of the parts that have no place in a recording."""
    parts = _Parts()
    parts.add_content(value)
    return parts.content, tuple(parts.lost)


class _Parts:
    """What a message is made of."""

    def __init__(self) -> None:
        self._content: list[Part] = []
        self.calls: list[ForeignCall] = []
        self.results: list[ForeignMessage] = []
        self.thinking: list[str] = []
        self.lost: list[str] = []
        self.unsaid = 0
        """Parts of which only the kind is told."""

    @property
    def content(self) -> Content:
        """The text alone when there is one only, else the parts."""
        if len(self._content) == 1 and isinstance(self._content[0], TextPart):
            return self._content[0].text
        return tuple(self._content) or ""

    def add_content(self, value: Any) -> None:  # noqa: ANN401
        if isinstance(value, str):
            self._content += [TextPart(text=value)] if value else []
        elif isinstance(value, (list, dict)):
            self.add_all(value if isinstance(value, list) else [value])

    def add_all(self, parts: Any) -> None:  # noqa: ANN401
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, str):
                self.add_content(part)
            elif isinstance(part, dict):
                self._add(part, str(part.get("type", "text")))

    def add_calls(self, calls: Any) -> None:  # noqa: ANN401
        for each in _objects(calls):
            function = object_of(each.get("function")) or each
            arguments = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
            call = call_of(function.get("name"), arguments, first_text((each.get("call_id"), each.get("id"))))
            self.calls += [] if call is None else [call]

    def _add(self, part: dict[str, Any], kind: str) -> None:
        said = first_text((part.get("content"), part.get("text")))
        if kind in _CALLS:
            self.add_calls([part])
        elif kind in _RESULTS:
            self._add_result(part)
        elif kind in _THINKING:
            self.thinking += [first_text((said, part.get("thinking"))) or ""]
        elif (image := _image(part, kind)) is not None:
            self._content.append(ImagePart(url=image))
        elif kind in ("text", "input_text", "output_text"):
            self.add_content(said)
            self.unsaid += not any(isinstance(part.get(name), str) for name in ("content", "text"))
        else:
            self.lost.append(kind[:40])

    def _add_result(self, part: dict[str, Any]) -> None:
        names = [key for key in ("response", "result", "output", "content") if key in part]
        value = part[names[0]] if names else ""
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        call_id = first_text(part.get(name) for name in ("call_id", "tool_use_id", "tool_call_id", "id"))
        name = text_of(part.get("name"))
        self.results.append(ForeignMessage("tool", said, call_id=call_id, name=name, known=bool(names)))


def _image(part: dict[str, Any], kind: str) -> str | None:
    if kind in ("image_url", "input_image", "image"):
        image = part.get("image_url", part.get("image"))
        return text_of(image.get("url") if isinstance(image, dict) else image) or text_of(part.get("url"))
    if str(part.get("modality")) != "image" and not str(part.get("mime_type")).startswith("image/"):
        return None
    if kind == "blob" and text_of(part.get("content")):
        return f"data:{part.get('mime_type') or 'image/png'};base64,{part['content']}"
    return text_of(part.get("uri")) if kind == "uri" else None


def _objects(value: Any) -> Iterable[dict[str, Any]]:  # noqa: ANN401
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()
