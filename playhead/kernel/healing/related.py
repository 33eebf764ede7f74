"""Names that mean a parameter by what is known besides: the side of a pair, a count, a measure, the branches of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.numbers import MEASURES as UNITS
from playhead.kernel.healing.schema import options
from playhead.kernel.healing.words import same_word, singular, words

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

PART, WORDS = 2, 4
"""As in `parameters.py`, which says how sure a name is."""
_FROM: Final = frozenset(("source", "src", "input", "in", "from", "origin"))
_TO: Final = frozenset(("target", "tgt", "output", "out", "to", "destination", "dest", "dst"))
_PLACES: Final = frozenset(("path", "file", "filename", "filepath", "url", "uri", "folder", "dir", "directory"))
_COUNTING: Final = frozenset(("count", "number", "num", "no", "total", "amount"))
_ORDINALS: Final = frozenset(("number", "no", "nr", "index", "id"))
_CHANGES: Final = frozenset(("change", "difference", "diff"))
_COUNTING_OR_QUANTITY: Final = frozenset(("quantity", "qty", "count", "number", "amount"))
_MEASURES: Final = frozenset(
    ("size", "length", "limit", "count", "duration", "timeout", "interval", "amount", "quantity", "weight", "age", "budget", "width",
     "height", "distance", "period", "delay")
)  # fmt: skip
_REPLACED: Final = frozenset(("old", "search", "find", "before", "original", "previous", "replace_this", "match"))
_REPLACEMENT: Final = frozenset(("new", "replace", "replacement", "with", "after", "updated"))
_SNIPPETS: Final = (
    frozenset(("text", "string", "str", "content", "snippet", "code", "value", "lines", "word", "for", "replace"))
    - _REPLACEMENT
)
"""Words of what is replaced that say nothing of which part it is."""
_HUNDREDTHS: Final = frozenset(("cent", "cents", "pence", "penny", "pennies", "minor", "subunits"))
_WITH: Final = frozenset(("source", "src", "from", "compare", "feature"))
"""Words for the branch with the changes of a pull request."""
_INTO: Final = frozenset(("target", "into", "to", "destination", "dest"))
"""Words for the branch that they go into."""
_BRANCHES: Final = {"head": (_WITH, _INTO), "base": (_INTO, _WITH)}


def related(
    written: str, name: str, known: Mapping[str, Any], given: Collection[str], tool: tuple[str, str]
) -> int:  # fmt: skip
    """Return how sure it is that a written name means a parameter; 0 when it does not.

    Args:
        written: the name.
        name: the parameter.
        known: the schemas of all parameters.
        given: the names of all arguments of the call.
        tool: the tool's name and description.
    """
    own, other = words(written), words(name)
    if not own or not other:
        return 0
    schema = known[name] if isinstance(known[name], dict) else {}
    is_same = (
        _is_branch(own, name, tool)
        or _is_same_side(own, other, known, given, {*words(tool[0])})
        or _is_replaced(own, other, known, given)
        or _is_doer(own, other)
        or _is_doer(other, own)
    )
    if is_same:
        return WORDS
    forms = (_is_limited, _is_change, _is_counted, _is_measured, _is_address)
    return PART if any(form(own, other, schema) for form in forms) else 0


def says_other_side(written: str, name: str, tool: tuple[str, str]) -> bool:
    """Return whether a name says the other side than the parameter does: a `target_path` is no `input_path`."""
    own, side = words(written), _side(words(name))
    if name in _BRANCHES and _merges(tool) and not (_WITH | _INTO).isdisjoint(own):
        return not _is_branch(own, name, tool)
    return side is not None and _side(own) not in (None, side) and written != name


def measures_other(written: str, name: str, schema: object) -> bool:
    """Return whether a name says another unit than the parameter's description, or the place of a thing where things are counted."""
    own, other = words(written), words(name)
    said = schema if isinstance(schema, dict) else {}
    if not own or not other or not any(option.get("type") in ("integer", "number") for option in options(said, said)):
        return False
    is_place = len(own) > 1 and own[-1] in _ORDINALS and singular(other[-1]) != other[-1] and own[-1] not in other
    own = own[1:] if own[0] == "min" and other[0] in ("min", "minimum") else own  # which are no minutes
    units = [group for group in UNITS if not group.isdisjoint(own) and group.isdisjoint(other)]
    told = {*other, *words(str(said.get("description", "")))}
    meant = [group for group in UNITS if not group.isdisjoint(told)]
    return is_place or bool(units and meant and not any(group in meant for group in units))


def _is_branch(own: tuple[str, ...], name: str, tool: tuple[str, str]) -> bool:
    """Return whether words mean a branch of a pull request, `head` or `base`.

    Of a comparison the sides are the other way round, so elsewhere nothing is known of them.
    """
    return (
        name in _BRANCHES
        and _merges(tool)
        and not _BRANCHES[name][0].isdisjoint(own)
        and _BRANCHES[name][1].isdisjoint(own)
    )


def _merges(tool: tuple[str, str]) -> bool:
    said = {*words(tool[0]), *words(tool[1][:200])}
    return bool({"pull", "merge"} & said) and bool({"request", "pr", "mr"} & said)


def _is_same_side(
    own: tuple[str, ...], other: tuple[str, ...], known: Collection[str], given: Collection[str], said: set[str]
) -> bool:
    """Return whether two names say the same side of a pair, such as `source_path` and `input_path`.

    A `target` alone may be what is worked on, so the other side has to be given, too.
    """
    side = _side(own)
    if (
        side is None
        or side != _side(other)
        or len(side.intersection(own)) > 1
        or [each for each in known if _side(words(each)) == side] != [_named(other, known)]
    ):
        return False
    if (
        side is _TO
        and not {"target", "tgt", "to"}.isdisjoint({*own, *other})
        and not any(_side(words(each)) is _FROM for each in given)
    ):
        return False
    rest, others = [[word for word in name if word not in side] for name in (own, other)]
    if not rest or not others:
        return _PLACES.issuperset(rest or others)
    if len(rest) == 1 and _PLACES.issuperset(others) and rest[0] in said:
        return True  # `input_video` of a tool that converts videos
    return len(rest) == len(others) and all(map(same_word, rest, others))


def is_other_money(written: str, name: str) -> bool:
    """Return whether one of two names says that money is counted in hundredths, and the other does not: 5 is not 5 cents."""
    one, other = (not _HUNDREDTHS.isdisjoint(words(each)) for each in (written, name))
    return one != other


def _is_replaced(
    own: tuple[str, ...], other: tuple[str, ...], known: Collection[str], given: Collection[str]
) -> bool:  # fmt: skip
    """Return whether one name says what is replaced, or by what, as the other does, of a text: `search` of `oldText`, beside a `newText`."""
    sides = [_part(name) for name in (own, other)]
    if sides[0] is None or sides[0] != sides[1]:
        return False
    two = [sorted(part for part in map(_part, map(words, names)) if part is not None) for names in (known, given)]
    return two == [["new", "old"], ["new", "old"]]


def _part(name: tuple[str, ...]) -> str | None:
    """Return which part of a replacement a name says; None where it says something else besides."""
    rest = [word for word in name if word not in _SNIPPETS]
    said = [part for part, those in (("old", _REPLACED), ("new", _REPLACEMENT)) if rest and those.issuperset(rest)]
    return said[0] if said else None


def _side(name: tuple[str, ...]) -> frozenset[str] | None:
    """Return the side of a pair that a name says; None when it says none, or both."""
    sides = [side for side in (_FROM, _TO) if not side.isdisjoint(name)]
    return sides[0] if len(sides) == 1 else None


def _named(name: tuple[str, ...], known: Collection[str]) -> str | None:
    return next((each for each in known if words(each) == name), None)


def _is_limited(own: tuple[str, ...], other: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether a name says to what something is limited: `limit_to` of `limit`."""
    return own == (*other, "to") and other[-1] in _MEASURES and schema.get("type") in ("integer", "number")


def _is_address(own: tuple[str, ...], other: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether a name calls the URI of a thing its path: `resource_path` of `resource_uri`, where any text may be one."""
    is_any = schema.get("type") == "string" and not {"format", "pattern"} & schema.keys()
    return is_any and len(own) > 1 and own[:-1] == other[:-1] and (own[-1], other[-1]) == ("path", "uri")


def _is_doer(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one name says by whom something was done, and the other who did it: `inspected_by` and `inspector`."""
    if len(own) != 2 or len(other) != 1 or own[1] != "by" or not own[0].endswith("ed"):  # noqa: PLR2004 - done, by
        return False
    verb = own[0][:-2]
    return len(verb) >= 3 and other[0] in (verb, f"{verb}er", f"{verb}or")  # noqa: PLR2004 - a short verb


def _is_counted(own: tuple[str, ...], other: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether a name says the number of what a whole number counts: `replica_count` of `replicas`."""
    if schema.get("type") != "integer" or singular(other[-1]) == other[-1]:
        return False
    rest = [word for word in own if word not in _COUNTING and word != "of"]
    if own[-1] in _ORDINALS:
        return False
    return len(rest) < len(own) and [*map(singular, rest)] == [*map(singular, other)]


def _is_measured(own: tuple[str, ...], other: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether a name says what a measure is counted in, as its description does: `chunk_tokens` of `chunk_size`, in tokens."""
    if schema.get("type") not in ("integer", "number"):
        return False
    stem = [word for word in other if word not in _MEASURES]
    rest = [word for word in own if word not in stem]
    said = {*map(singular, words(str(schema.get("description", ""))))}
    is_of = bool(stem) and len(stem) < len(other) and list(own[: len(stem)]) == stem
    return is_of and len(rest) == 1 and singular(rest[0]) in said and rest[0] not in _MEASURES


def _is_change(own: tuple[str, ...], other: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Return whether a name says by how much a number changes, where that is the `delta`: `quantity_change`."""
    is_number = schema.get("type") in ("integer", "number")
    return is_number and other == ("delta",) and own[-1] in _CHANGES and _COUNTING_OR_QUANTITY.issuperset(own[:-1])
