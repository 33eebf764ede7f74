"""The attributes of a span, by dotted name, however they were nested when they were exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.limits import MAX_DEPTH
from playhead.importing.values import NOTHING, parsed_json, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN: Final = ""
"""Under this name stands the value of an attribute that others are nested below."""


class Attributes:
    """Reads attributes; `llm.input_messages.0.message.role` is found whether it was exported flat, nested or in between."""

    def __init__(self, flat: Mapping[str, Any]) -> None:
        self.flat = flat
        self._tree: dict[str, Any] | None = None

    def value(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value, `NOTHING` when there is none."""
        return self.flat.get(name, NOTHING)

    def text(self, *names: str) -> str | None:
        """Return the first of these that is a text and not empty."""
        return next((text for name in names if (text := text_of(self.flat.get(name))) is not None), None)

    def json(self, name: str) -> Any:  # noqa: ANN401
        """Return the value, read when it is JSON in a text, put together when it was flattened; else `NOTHING`."""
        value = self.flat.get(name, NOTHING)
        if isinstance(value, str):
            return parsed_json(value)
        return with_lists(self.nested(name)) if value is NOTHING else value

    def nested(self, name: str) -> Any:  # noqa: ANN401
        """Return what stands at or below a name as an object, `NOTHING` when there is nothing."""
        found: Any = self._nested()
        for part in name.split("."):
            found = found.get(part, NOTHING) if isinstance(found, dict) else NOTHING
            if found is NOTHING:
                return NOTHING
        return found.get(OWN, found) if isinstance(found, dict) else found

    def items(self, name: str) -> list[dict[str, Any]]:
        """Return the objects of a list, in the order of their numbers, which may have gaps."""
        return [each for each in items_of(self.nested(name)) if isinstance(each, dict)]

    def _nested(self) -> dict[str, Any]:
        if self._tree is None:
            self._tree = tree_of(self.flat)
        return self._tree


def tree_of(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted names as nested objects."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".", MAX_DEPTH)
        place = tree
        for part in parents:
            below = place.get(part)
            if not isinstance(below, dict):
                below = place[part] = {} if below is None else {OWN: below}
            place = below
        if isinstance(place.get(last), dict):
            place[last][OWN] = value
        else:
            place[last] = value
    return tree


def with_lists(value: Any) -> Any:  # noqa: ANN401
    """Return a value with lists in place of the objects that they were flattened to; only as deep as names have parts."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [with_lists(each) for each in items_of(value)]
    return {name: with_lists(each) for name, each in value.items()}


def items_of(value: Any) -> list[Any]:  # noqa: ANN401
    """Return the items of a list, or of an object whose names are numbers; objects among them with nested names."""
    if isinstance(value, dict):
        numbered = sorted(
            (int(name), each) for name, each in value.items() if name.isdecimal() and len(name) < MAX_DEPTH
        )
        return [each for _, each in numbered]
    if not isinstance(value, list):
        return []
    return [tree_of(each) if isinstance(each, dict) else each for each in value]


def at(value: Any, *path: str) -> Any:  # noqa: ANN401
    """Return what stands at a path inside an object, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value.get(OWN, value) if isinstance(value, dict) else value
