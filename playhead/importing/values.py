"""Reads JSON values of other programs: a value of the wrong type counts as absent, and never raises."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.importing.limits import MAX_DEPTH, MAX_INNER_VALUES
from playhead.trace.base import INTEGER_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEX: Final = re.compile("[0-9a-fA-F]+")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_LAST_NS: Final = 10**18 * 1000 - 1
"""The latest time that a trace can represent, in nanoseconds since the Unix epoch."""
_LONGEST_INDEX: Final = 20
"""Digits of an index in a flattened list."""


NOTHING: Final = object()
"""Marks an absent value where None is a valid value."""


def digest(value: object) -> str:
    """Return a digest of a JSON value, for comparing long prompts."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def text_of(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the value if it is a non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def first_text(*values: Any) -> str | None:  # noqa: ANN401
    """Return the first text that is not empty."""
    return next((value for value in values if isinstance(value, str) and value), None)


def object_of(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return an object, parsed if it is JSON in a text; else an empty one."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}


def list_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return a list, parsed if it is JSON in a text; else an empty one."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the objects of a list."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def at(value: Any, *path: str) -> Any:  # noqa: ANN401
    """Return the value at a path inside an object, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def field_of(value: dict[str, Any], name: str) -> Any:  # noqa: ANN401
    """Return a field, under its name in camelCase or snake_case; else None."""
    found = value.get(name)
    return value.get(_snake(name)) if found is None else found


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def parsed_json(text: str) -> Any:  # noqa: ANN401
    """Return the value of a JSON text; `NOTHING` if it is not JSON, nested too deep, or has too many values."""
    if len(text) > MAX_INNER_VALUES and sum(map(text.count, "{[,")) > MAX_INNER_VALUES:
        return NOTHING
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # TypeError: a text that UTF-8 cannot encode
        return NOTHING


def read_json(content: bytes) -> Any:  # noqa: ANN401
    """Return the value of a JSON document; raises `ValueError` if it is not JSON, or nested too deep."""
    return from_json(content.removeprefix(b"\xef\xbb\xbf"))


def integer_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a number, or digits in a text, as an integer within an event's limits; else None."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -INTEGER_LIMIT <= value < INTEGER_LIMIT else None


def number_of(value: Any) -> int | float | None:  # noqa: ANN401
    """Return a number within an event's limits; else None."""
    return value if isinstance(value, float) and math.isfinite(value) else integer_of(value)


def count_of(value: Any) -> int:  # noqa: ANN401
    """Return a number that is not negative; else 0."""
    return max(0, integer_of(value) or 0)


def nanoseconds_of(value: Any) -> int | None:  # noqa: ANN401
    """Return nanoseconds since the Unix epoch; None for 0, which means no time."""
    return min(count_of(value), _LAST_NS) or None


def id_of(value: Any, size: int) -> str | None:  # noqa: ANN401
    """Return an id of `size` bytes in hex: from hex or base64; None if it is not an id, or all zero."""
    if not isinstance(value, str):
        return None
    if len(value) == 2 * size and _HEX.fullmatch(value):
        return value.lower() if value.strip("0") else None
    try:
        decoded = base64.b64decode(value, validate=True)
    except ValueError:
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None


def parent_of(value: Any) -> str | None:  # noqa: ANN401
    """Return the id of a span's parent, or None; a malformed id stays unchanged and counts as a missing span."""
    return id_of(value, 8) or (value if isinstance(value, str) and value.strip("A=0") else None)


class Attributes:
    """Reads attributes, including lists of objects that were exported flat (`llm.input_messages.0.message.role`)."""

    def __init__(self, flat: Mapping[str, Any]) -> None:
        self.flat = flat

    def value(self, *names: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of the first of these names that is present, else `NOTHING`."""
        return next((self.flat[name] for name in names if self.flat.get(name) is not None), NOTHING)

    def text(self, *names: str) -> str | None:
        """Return the first of these values that is a non-empty text."""
        return first_text(*(self.flat.get(name) for name in names))

    def json(self, name: str) -> Any:  # noqa: ANN401
        """Return the value, parsed if it is JSON in a text; else `NOTHING`."""
        value = self.value(name)
        return parsed_json(value) if isinstance(value, str) else value

    def side(self, side: str) -> Any:  # noqa: ANN401
        """Return `input.value` or `output.value`, parsed if its MIME type is JSON and it is valid; else `NOTHING`."""
        value = self.value(f"{side}.value")
        if not isinstance(value, str) or self.text(f"{side}.mime_type") != "application/json":
            return value
        parsed = parsed_json(value)
        return value if parsed is NOTHING else parsed

    def items(self, name: str) -> list[dict[str, Any]]:
        """Return the objects of a list, in the order of their indexes, which may have gaps."""
        return objects_of(_with_lists(at(self._tree, *name.split("."))))

    @cached_property
    def _tree(self) -> dict[str, Any]:
        """Return dotted names as nested objects; an object replaces a plain value of the same name."""
        tree: dict[str, Any] = {}
        for name, value in self.flat.items():
            *parents, last = name.split(".", MAX_DEPTH)
            place = tree
            for part in parents:
                below = place.get(part)
                if not isinstance(below, dict):
                    below = place[part] = {}
                place = below
            if not isinstance(place.get(last), dict):
                place[last] = value
        return tree


def _with_lists(value: Any) -> Any:  # noqa: ANN401
    """Return a value in which each object whose names are indexes became a list."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() and len(name) <= _LONGEST_INDEX for name in value):
        return [_with_lists(value[name]) for name in sorted(value, key=int)]
    return {name: _with_lists(each) for name, each in value.items()}
