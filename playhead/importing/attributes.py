"""The attributes of a span, by dotted name, however they were nested when they were exported."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.limits import MAX_DEPTH
from playhead.importing.values import NOTHING, at, objects_of, parsed_json, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_PLACE: Final = 20
"""Digits of a place in a list."""


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
