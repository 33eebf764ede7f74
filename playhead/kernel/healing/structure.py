"""Names that say little, where the structure of the object says the rest: the bounds of a range, and an object of the same fields."""

from __future__ import annotations

from typing import Any, Final

from playhead.kernel.healing.schema import Schema, fits, properties, resolved
from playhead.kernel.healing.words import folded, words

BEGINNING: Final = 3
"""Letters that a name has to share with the parameter of which it has the structure."""
_PAIRS: Final = (
    ("from", "to"),
    ("start", "end"),
    ("first", "last"),
    ("begin", "end"),
    ("min", "max"),
    ("from", "until"),
    ("low", "high"),
    ("lower", "upper"),
)
"""Names of the two bounds of a range."""


def bounds_of(unknown: list[str], free: list[str], value: dict[str, Any]) -> dict[str, str]:
    """Return what the two bounds of a range mean, that an object has under another pair of names, and nothing besides."""
    pairs = {(one, other) for one, other in _PAIRS if {one, other} == {*free}}
    written = {(one, other) for one, other in _PAIRS if {one, other} == {*unknown}}
    is_range = len(pairs) == len(written) == 1 and len(value) == len(free) == 2  # noqa: PLR2004 - two bounds
    return dict(zip(*written, *pairs, strict=True)) if is_range else {}


def by_structure(value: dict[str, Any], left: list[str], needed: set[str], schema: Schema) -> dict[str, str]:
    """Return what the one name left means: the one parameter left that has to be there, of which it has all inner names as they are.

    Only a name of one word that begins like the parameter's: `dosis` of `dose`, never `billing_address` of `shipping_address`.
    """
    if len(left) != 1 or len(needed) != 1:
        return {}
    (name,), (meant,) = left, needed
    own, item = resolved(properties(schema)[meant], schema), value[name]
    inner = properties(own)
    is_same = isinstance(item, dict) and len(inner) > 1 and inner.keys() >= item.keys() and fits(own, item, schema)
    others = [
        each
        for each in properties(schema)
        if each not in {*value, meant} and inner == properties(resolved(properties(schema)[each], schema))
    ]
    is_near = len(words(name)) == len(words(meant)) == 1 and folded(name)[:BEGINNING] == folded(meant)[:BEGINNING]
    return {name: meant} if is_same and is_near and len(item) > 1 and not others else {}
