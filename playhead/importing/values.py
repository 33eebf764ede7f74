"""Foreign values and the attributes of a span, taken for what they should be or for nothing: never an error, whatever they are."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from playhead.importing.limits import MAX_DEPTH, MAX_INNER_VALUES
from playhead.trace.types import INTEGER_LIMIT
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEX: Final = re.compile("[0-9a-fA-F]+")
_DIGITS: Final = re.compile(r"-?\d{1,19}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = 10**18 * 1000 - 1
"""The latest time, in nanoseconds since the Unix epoch: what a line of a trace can hold."""
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""A number of since 1970 that is below the first counts seconds, below the second milliseconds, below the third microseconds;
each with its nanoseconds."""


_LONGEST_PLACE: Final = 20
"""Digits of a place in a list."""


class _Nothing:
    """Stands for a value that is not there, where None may be one."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


def digest(value: object) -> str:
    """Return a digest of a JSON value: long prompts come again with every model call, and are compared by it."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def text_of(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the text as a file can hold it, or None when it is none or empty."""
    return scrub(value) if isinstance(value, str) and value else None


def first_text(values: Iterable[Any]) -> str | None:
    """Return the first text that is not empty."""
    return next((text for value in values if (text := text_of(value)) is not None), None)


def object_of(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the object, or an empty one; one that was written as JSON is read."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}


def list_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the list, or an empty one; one that was written as JSON is read."""
    parsed = parsed_json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, list) else []


def objects_of(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return the objects of a list."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def at(value: Any, *path: str) -> Any:  # noqa: ANN401
    """Return what stands at a path inside an object, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def field_of(value: dict[str, Any], *names: str) -> Any:  # noqa: ANN401
    """Return the first of these fields that is there, under its name in camelCase or in snake_case; else None."""
    both = (each for name in names for each in (name, _snake(name)))
    return next((value[name] for name in both if value.get(name) is not None), None)


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def parsed_json(text: str) -> Any:  # noqa: ANN401
    """Return what a JSON text says, `NOTHING` when it is none; deep nesting and too many values count as none."""
    if len(text) > MAX_INNER_VALUES and sum(map(text.count, "{[,")) > MAX_INNER_VALUES:
        return NOTHING
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # a TypeError for lone surrogates
        return _mended(text)


def read_json(content: bytes) -> tuple[Any, bool]:
    """Return what a JSON document says, and whether halves of characters in it were replaced.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    bare = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return from_json(bare), False
    except ValueError:
        document = _mended(bare.decode("utf-8", "replace"))
        if document is NOTHING:
            raise
        return document, True


def _mended(text: str) -> Any:  # noqa: ANN401
    """Return what JSON with halves of characters says, `NOTHING` when it is none: Python's own parser takes lone surrogates."""
    try:
        return from_json(scrub(json.dumps(json.loads(text), ensure_ascii=False)), allow_inf_nan=False)
    except (TypeError, ValueError, RecursionError):
        return NOTHING


def integer_of(value: Any) -> int | None:  # noqa: ANN401
    """Return the number as an integer that an event can hold, or None."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -INTEGER_LIMIT <= value < INTEGER_LIMIT else None


def number_of(value: Any) -> int | float | None:  # noqa: ANN401
    """Return the number, None for what is none, infinite or too large for an event."""
    return value if isinstance(value, float) and math.isfinite(value) else integer_of(value)


def count_of(value: Any) -> int:  # noqa: ANN401
    """Return the number, 0 when it is none or negative."""
    return max(0, integer_of(value) or 0)


def nanoseconds_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a time in nanoseconds since the epoch: of a number, whose unit its size tells, or of an ISO 8601 text."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
            since = moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH
        except (ValueError, OverflowError):
            return None
        return min(max(0, since // timedelta(microseconds=1) * 1000), _LAST_NS)
    number = number_of(value)
    if number is None or number < 0:
        return None
    return min(int(number * next((factor for below, factor in _UNITS if number < below), 1)), _LAST_NS)


def exact_nanoseconds_of(value: Any) -> int | None:  # noqa: ANN401
    """Return a time that is given in nanoseconds, as OTLP does; None for 0, which stands for none."""
    return min(count_of(value), _LAST_NS) or None


def id_of(value: Any, size: int) -> str | None:  # noqa: ANN401
    """Return an id of `size` bytes in hex: given so, with 0x before it, or in base64; None when it is none or all zero."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("0x")
    if len(bare) == 2 * size and _HEX.fullmatch(bare):
        return bare.lower() if bare.strip("0") else None
    try:
        decoded = base64.b64decode(value, validate=True)
    except ValueError:
        return None
    return decoded.hex() if len(decoded) == size and any(decoded) else None


def parent_of(value: Any) -> str | None:  # noqa: ANN401
    """Return the id of a span's parent, None when it has none; one that is no id stays, for it names a span that is not there."""
    is_none = not isinstance(value, str) or not value.removeprefix("0x").strip("0") or not value.strip("A=")
    return None if is_none else id_of(value, 8) or scrub(value)


def flattened(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return nested objects as dotted names; lists stay, and what is too deep stays as it is."""
    flat: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [(name, value, 1) for name, value in attributes.items()]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, dict) and value and depth < MAX_DEPTH:
            waiting += [(f"{name}.{key}", each, depth + 1) for key, each in value.items()]
        elif value is not None:
            flat[name] = value
    return flat


class Attributes:
    """Reads attributes; `llm.input_messages.0.message.role` is found whether it was exported flat, nested or in between."""

    def __init__(self, flat: Mapping[str, Any]) -> None:
        self.flat = flat

    def value(self, *names: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of the first of these that is there, else `NOTHING`."""
        return next((self.flat[name] for name in names if self.flat.get(name) is not None), NOTHING)

    def text(self, *names: str) -> str | None:
        """Return the first of these that is a text and not empty."""
        return next((text for name in names if (text := text_of(self.flat.get(name))) is not None), None)

    def json(self, name: str) -> Any:  # noqa: ANN401
        """Return the value, read when it is JSON in a text, put together when it was flattened; else `NOTHING`."""
        value = self.value(name)
        if isinstance(value, str):
            return parsed_json(value)
        return self._nested(name) if value is NOTHING else value

    def side(self, side: str) -> Any:  # noqa: ANN401
        """Return `input.value` or `output.value`: JSON when its type says so and it is, else the text, else `NOTHING`."""
        value = self.value(f"{side}.value")
        if not isinstance(value, str) or self.text(f"{side}.mime_type") != "application/json":
            return value
        parsed = parsed_json(value)
        return value if parsed is NOTHING else parsed

    def items(self, name: str) -> list[dict[str, Any]]:
        """Return the objects of a list, in the order of their numbers, which may have gaps."""
        return objects_of(self._nested(name))

    def _nested(self, name: str) -> Any:  # noqa: ANN401
        found = at(self._tree, *name.split("."))
        return NOTHING if found is None else _with_lists(found)

    @cached_property
    def _tree(self) -> dict[str, Any]:
        return _tree_of(self.flat)


def _tree_of(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted names as nested objects; a value that others are nested below gives way to them."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
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
    """Return a value with lists in place of the objects that they were flattened to; objects in lists may have dotted names."""
    if isinstance(value, list):
        return [_with_lists(_tree_of(each)) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_with_lists(value[name]) for name in sorted(value, key=int) if len(name) <= _LONGEST_PLACE]
    return {name: _with_lists(each) for name, each in value.items()}
