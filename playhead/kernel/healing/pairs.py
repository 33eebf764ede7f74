"""Lists of pairs, such as `env` and `headers`, written as an object or as texts: `{"CI": "1"}` and `["CI=1"]`."""

from __future__ import annotations

import re
from typing import Any, Final

from playhead.kernel.healing.schema import Schema, properties, required, type_of

MOST: Final = 1_000
"""Pairs that are read."""
_NAMES: Final = frozenset(("name", "key", "variable", "var", "header"))
_VALUES: Final = frozenset(("value", "val"))
_PAIR: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]{0,100})=(?P<value>(?![=<>~]).*)", re.DOTALL)
_OTHER: Final = frozenset(
    (
        "operator",
        "op",
        "column",
        "field",
        "filename",
        "file",
        "path",
        "data",
        "content",
        "new_value",
        "old_value",
        "comparison",
    )
)
"""Fields of objects that are no pairs under their names."""


def as_pairs(items: Schema, value: object) -> list[dict[str, Any]] | None:
    """Return the pairs that an object, or a list of texts, stands for; None where the items are no pairs, or a text is none."""
    fields = _fields(items)
    if fields is None:
        return None
    name, held = fields
    found = _of_object(items, value) if isinstance(value, dict) else _of_texts(value)
    return None if found is None else [{name: one, held: other} for one, other in found]


def _fields(items: Schema) -> tuple[str, str] | None:
    """Return the fields of a pair, the name's first; None where an item has others."""
    known = properties(items)
    names, values = ([each for each in known if each.lower() in those] for those in (_NAMES, _VALUES))
    is_pair = type_of(items) == "object" and len(known) == len(required(items)) == 2  # noqa: PLR2004 - a name and a value
    return (names[0], values[0]) if is_pair and len(names) == len(values) == 1 else None


def _of_object(items: Schema, value: dict[str, Any]) -> list[tuple[str, Any]] | None:
    """Return the fields of an object that is not itself a pair, or written as one under other names."""
    is_pair = not value.keys().isdisjoint({*properties(items), *_NAMES, *_OTHER}) or not _VALUES.isdisjoint(value)
    is_held = any(isinstance(item, (dict, list)) for item in value.values())
    return None if is_pair or is_held or not 0 < len(value) <= MOST else [*value.items()]


def _of_texts(value: object) -> list[tuple[str, str]] | None:
    """Return the parts of texts with a sign between name and value."""
    if not isinstance(value, list) or not 0 < len(value) <= MOST:
        return None
    found = [_PAIR.fullmatch(each) if isinstance(each, str) else None for each in value]
    pairs = [(each["name"], each["value"]) for each in found if each]
    return pairs if len(pairs) == len(value) == len(dict(pairs)) else None


def pairs_in(value: list[Any]) -> dict[str, Any] | None:
    """Return the object that is written as a list of `{"name": …, "value": …}`, else None."""
    found: dict[str, Any] = {}
    for each in value:
        names = [
            key for key in ("name", "key", "parameter") if isinstance(each, dict) and isinstance(each.get(key), str)
        ]
        if len(names) != 1 or {*each} != {names[0], "value"} or each[names[0]] in found:
            return None
        found[each[names[0]]] = each["value"]
    return found or None
