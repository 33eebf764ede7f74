"""Reads bodies of HTTP messages, whose JSON may have any shape: what is missing, or of another type, is empty, and never raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.values import JsonValue

Json = dict[str, Any]
Place = tuple[str, ...]
"""Where a value stands: the names of the objects around it, then its own."""
_LINE_END: Final = re.compile(r"\r\n|\r|\n")  # not `splitlines`: a text may contain U+2028


def parsed(data: bytes | str) -> JsonValue:
    """Return the JSON value; None when it is not JSON, or nested deeper than 200 levels."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        return None


def at(value: JsonValue, *place: str) -> JsonValue:
    """Return the value at a place; None when there is none."""
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def first(value: JsonValue, *names: str) -> JsonValue:
    """Return the first of these fields that is neither missing nor empty; None when there is none."""
    return next((found for name in names if (found := at(value, name))), None)


def text(value: JsonValue) -> str:
    """Return a text that can be recorded."""
    return "" if not isinstance(value, str) else value if value.isascii() else scrub(value)


def count(value: JsonValue) -> int:
    """Return a number of tokens."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def objects(value: JsonValue) -> list[Json]:
    """Return the objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def object_of(value: JsonValue) -> Json:
    """Return the object."""
    return value if isinstance(value, dict) else {}


def placed(body: Json, place: Place, value: JsonValue) -> Json:
    """Return a copy of the body with this value at a place; None removes what is there."""
    name, *below = place
    if below:
        value = placed(object_of(body.get(name)), tuple(below), value) or None
    return {key: item for key, item in body.items() if key != name} if value is None else {**body, name: value}


def is_stream(content_type: str) -> bool:
    """Return whether a body is sent in parts."""
    return "event-stream" in content_type or "ndjson" in content_type


def events(data: bytes, content_type: str) -> list[Json] | None:
    """Return the objects of a streamed body in order; None when the body is not streamed.

    An event that is cut off, or is not a JSON object, is left out.
    """
    if "event-stream" in content_type:
        return objects([*map(parsed, _server_sent(data.decode("utf-8", "replace")))])
    if "ndjson" in content_type:
        return objects([*map(parsed, data.split(b"\n"))])
    return None


def _server_sent(body: str) -> Iterator[str]:
    """Yield the data of each server-sent event (WHATWG HTML, 9.2.6), and of a last one without a blank line after it."""
    data: list[str] = []
    for line in (*_LINE_END.split(body), ""):
        if line:
            data += [line.removeprefix("data:").removeprefix(" ")] if line.startswith("data:") else ()
        elif data:
            yield "\n".join(data)
            data = []
