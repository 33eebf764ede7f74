"""Parameters that the text of another one has swallowed, because the tag between them was wrong or lost its bracket."""

from __future__ import annotations

import re
from typing import Any, Final

from playhead.kernel.healing.schema import Schema, properties, required

MAX_TEXT: Final = 50_000
"""Characters of a text in which a parameter is looked for."""
_NEXT: Final = re.compile(
    r"\s{0,9}</(?P<end>[\w.-]{1,60})>\s{0,9}<(?:parameter|param|arg)(?:\s{1,3}name)?\s?=\s?[\"']?(?P<name>[\w.-]{1,60})[\"']?>"
)
_LAST: Final = re.compile(r"\s{0,9}(?:</[\w.-]{1,60}>\s{0,9}){0,4}\Z")
_ENDS: Final = frozenset(("parameter", "param", "arg"))


def without_swallowed(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the ones that stand, behind a closing tag, at the end of the text of another one.

    Only where a parameter that has to be there is missing, and the tags give it: else such tags may be part of the text.
    """
    known, missing = properties(schema), {name for name in required(schema) if name not in value}
    holders = [
        name
        for name, item in value.items()
        if isinstance(item, str) and len(item) <= MAX_TEXT and "</" in item and name in known and _NEXT.search(item)
    ]
    if not missing or len(holders) != 1:
        return value
    name = holders[0]
    found = _parts(name, value[name])
    if found is None or not missing <= found.keys() or not found.keys() <= known.keys():
        return value
    return value if (found.keys() - {name}) & value.keys() else {**value, **found}


def _parts(name: str, text: str) -> dict[str, str] | None:
    """Return what a text holds, by parameter; None where a value would hold a tag, or one name stands twice."""
    found: dict[str, str] = {}
    place = 0
    for tag in _NEXT.finditer(text):
        if name in found or tag["end"] not in {*_ENDS, name}:
            return None
        found[name] = text[place : tag.start()]
        name, place = tag["name"], tag.end()
    last = _LAST.search(text, place)
    if name in found:
        return None
    found[name] = text[place : last.start() if last else len(text)].removeprefix("\n")
    return None if any("<" in item or ">" in item for item in found.values()) else found
