"""Parameters that stand one object too deep: in an object beside which their place is."""

from __future__ import annotations

from typing import Any, Final

from playhead.kernel.healing.schema import Schema, fits, is_closed, properties, resolved
from playhead.kernel.healing.words import words

MAX_FIELDS: Final = 100
"""Fields of an object that is looked at."""


def lifted(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a parameter in its place that stands in an object which knows no such field, and fits without it.

    Only a name of several words, letter by letter, whose value fits: a `note` in an object may be a note of that. Not where it
    stands in two objects, or where the object has a free field with such a name.
    """
    known = properties(schema)
    places = [
        (outer, name)
        for outer, item in value.items()
        if isinstance(item, dict) and len(item) <= MAX_FIELDS and outer in known
        for name in _strange(resolved(known[outer], schema), item)
        if name in known and name not in value and fits(known[name], item[name], schema)
    ]
    if len(places) != 1:
        return value
    ((outer, name),) = places
    inner = {key: item for key, item in value[outer].items() if key != name}
    return {**value, outer: inner, name: value[outer][name]} if fits(known[outer], inner, schema) else value


def _strange(schema: Schema, item: dict[str, Any]) -> list[str]:
    """Return the names of several words that a closed object does not know, and has no field for that they may mean."""
    from playhead.kernel.healing.parameters import likeness  # noqa: PLC0415 - only for an object with a strange field

    own = properties(schema)
    if not own or not is_closed(schema) or item.keys() <= own.keys():
        return []
    free = [each for each in own if each not in item]
    return [
        name
        for name in item
        if name not in own
        and len(words(name)) > 1
        and not any(likeness(name, each) or {*words(name)} & {*words(each)} for each in free)
    ]
