"""Messages, tools and calls from the JSON of wire formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.importing.bodies import Json, Place, at, text
from playhead.kernel.repair.lenient_json import read_call
from playhead.trace.base import made
from playhead.trace.types import LARGEST_COUNT, ImagePart, Message, Part, TextPart, ToolCall, ToolSpec, Usage
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.trace.types import Content
    from playhead.trace.values import JsonValue


def message(role: str, content: Content, **fields: Any) -> Message:  # noqa: ANN401 - of Message
    """Return a message without an id."""
    return made(Message, id=0, role=role, content=content, **fields)


def content_of(parts: JsonValue, *, texts: tuple[str, ...], image: str = "", url: Place = ()) -> Content:
    """Return text, or a list of typed parts, as the content of a message; a part of another type as its JSON.

    Args:
        parts: the text, or the list.
        texts: the types of parts whose `text` is text.
        image: the type of an image.
        url: where the address of an image stands.
    """
    if not isinstance(parts, list):
        return text(parts)
    read: list[Part] = [
        made(ImagePart, url=text(at(each, *url)))
        if image and at(each, "type") == image and text(at(each, *url))
        else made(TextPart, text=text(at(each, "text")) if at(each, "type") in texts else text(as_text(each)))
        for each in parts
    ]
    return simplest(read)


def simplest(parts: list[Part]) -> Content:
    """Return parts as content: a single text as that text."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return tuple(parts) or ""


def with_first(messages: list[Json], prompt: str) -> list[Json]:
    """Return the messages with this prompt in the place of a system message at their start."""
    if begins_with_system(messages):
        return [{**messages[0], "content": prompt}, *messages[1:]]
    return [{"role": "system", "content": prompt}, *messages]


def begins_with_system(messages: list[Json]) -> bool:
    """Return whether the first message is a system prompt."""
    return bool(messages) and messages[0].get("role") in ("system", "developer")


def tool(spec: Json, schema: str) -> ToolSpec:
    """Return a tool; one that the provider runs itself has its type as its name."""
    parameters = spec.get(schema)
    return made(
        ToolSpec,
        name=text(spec.get("name")) or text(spec.get("type")),
        description=text(spec.get("description")),
        **({"parameters": parameters} if isinstance(parameters, dict) else {}),
    )


def call(call_id: JsonValue, name: JsonValue, arguments: JsonValue) -> ToolCall:
    """Return a call that the model asked for."""
    return read_call(text(call_id), text(name), arguments)


def usage_of(counts: JsonValue, **places: Place) -> Usage:
    """Return an answer's tokens. `places` says where each number of `Usage` stands; a missing one is 0."""
    values = [at(counts, *place) or 0 for place in places.values()]
    given = dict(zip(places, values, strict=True))
    is_usual = set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= LARGEST_COUNT
    return made(Usage, **given) if is_usual else Usage.model_validate(given)
