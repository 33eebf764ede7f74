"""A name that means nothing by its words: the one value left over, and the one parameter that its value can only be meant for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.schema import Schema, fits, options, properties, required, resolved, type_of
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, MODIFIERS, OTHERS
from playhead.kernel.healing.words import same_word, words

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_NAME: Final = 60
"""Characters of a name that may mean a parameter."""
_COMMON: Final = frozenset(
    [
        "low",
        "medium",
        "high",
        "normal",
        "none",
        "all",
        "any",
        "other",
        "default",
        "auto",
        "automatic",
        "yes",
        "no",
        "true",
        "false",
        "on",
        "off",
        "public",
        "private",
        "asc",
        "desc",
        "ascending",
        "descending",
        "left",
        "right",
        "small",
        "large",
        "full",
        "half",
        "open",
        "closed",
        "new",
        "old",
        "first",
        "last",
        "start",
        "end",
        "up",
        "down",
        "standard",
        "basic",
        "name",
        "id",
        "date",
        "size",
        "type",
        "pending",
        "done",
        "active",
        "inactive",
        "enabled",
        "disabled",
        "unknown",
        "daily",
        "weekly",
        "monthly",
        "yearly",
        "short",
        "long",
        "never",
        "always",
    ]
)
"""Choices that many parameters have: they say nothing of which one is meant."""
_ENDS: Final = frozenset(
    [
        "no",
        "not",
        "non",
        "without",
        "avoid",
        "exclude",
        "excluded",
        "except",
        "unless",
        "if",
        "else",
        "only",
        "until",
        "off",
        "but",
        "than",
        "other",
        "dry",
        "blocked",
        "blocklist",
        "denied",
        "deny",
        "forbidden",
        "banned",
        "unwanted",
        "disliked",
        "rejected",
        "allergies",
        "hidden",
        "remove",
        "removed",
        "missing",
        "former",
        "future",
    ]
)
"""Words of a name that make the opposite, or a condition, of what stands beside them."""
_SORTS: Final = frozenset(("type", "kind", "mode", "class", "category", "method", "style", "level", "resolution"))
_FILES: Final = frozenset(("file", "path", "filename", "filepath", "document"))
_INNER: Final = frozenset(
    [
        "name",
        "full_name",
        "first_name",
        "last_name",
        "email",
        "phone",
        "telephone",
        "mobile",
        "street",
        "city",
        "town",
        "zip",
        "postcode",
        "postal_code",
        "country",
        "house_number",
        "latitude",
        "longitude",
        "lat",
        "lon",
        "lng",
        "x",
        "y",
        "z",
        "min",
        "max",
        "from",
        "to",
        "start",
        "end",
        "value",
        "amount",
        "unit",
        "currency",
        "id",
        "width",
        "height",
        "length",
        "depth",
        "width_cm",
        "height_cm",
        "length_cm",
        "date",
        "time",
        "type",
        "kind",
        "quantity",
        "count",
        "title",
        "text",
        "key",
        "label",
        "note",
        "number",
        "price",
        "floor",
        "company",
        "relation",
        "role",
    ]
)
"""Inner names of many objects: they say nothing of which one is meant."""
_PLAIN: Final = frozenset(
    [
        "file",
        "output",
        "result",
        "export",
        "document",
        "data",
        "response",
        "list",
        "lists",
        "type",
        "kind",
        "mode",
        "set",
        "array",
        "values",
        "value",
        "names",
        "items",
        "option",
        "options",
        "choice",
        "choices",
        "selected",
        "selection",
    ]
)
"""Words of a name that say only what form a value has."""


def by_elimination(
    name: str, item: Any, free: Collection[str], schema: Schema, tool: str  # noqa: ANN401 - any JSON value
) -> str | None:  # fmt: skip
    """Return the one free parameter that a value can be meant for, whatever its name; None when the name or the value may say another.

    The value has to say so itself: one of the parameter's own choices, letter by letter, or an object with its inner names.

    Args:
        name: the name that no parameter has.
        item: its value.
        free: the parameters that have no value yet, nor another name.
        schema: the tool's schema.
        tool: the tool's name.
    """
    own = words(name)
    if not own or len(name) > MAX_NAME or not _ENDS.isdisjoint(own) or any(map(str.isdigit, own)):
        return None
    known = properties(schema)
    if (file := _its_file(own, item, free, schema, tool) or _its_path(own, item, free, schema)) is not None:
        return file
    meant = [each for each in known if _says_itself(item, known[each], schema)]
    if len(meant) != 1 or meant[0] not in free:
        return None
    is_needed = meant[0] in required(schema)
    return meant[0] if _may_be(own, meant[0], item, tool, is_needed=is_needed) else None


def _its_file(own: tuple[str, ...], item: Any, free: Collection[str], schema: Schema, tool: str) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the one file that a tool has to get, where the name says only that it is one of what the tool is about: `audio_file`."""
    files = [
        each
        for each, own_schema in properties(schema).items()
        if any(option.get("format") == "file-path" for option in options(resolved(own_schema, schema), schema))
    ]
    is_one = len(files) == 1 and files[0] in free and files[0] in required(schema)
    is_about = len(own) > 1 and own[-1] in _FILES and {*own[:-1]} <= {*words(tool)[1:]}
    is_file = isinstance(item, str) and "." in item.rpartition("/")[2]
    return files[0] if is_one and is_about and is_file else None


def _its_path(own: tuple[str, ...], item: Any, free: Collection[str], schema: Schema) -> str | None:  # noqa: ANN401 - any JSON value
    """Return the one missing parameter, the path of a thing, of which a name says that thing in another word: `firmware_image`."""
    missing = [each for each in required(schema) if each in free]
    other = words(missing[0]) if len(missing) == 1 else ()
    rivals = [each for each in free if each not in missing and own[0] in words(each)]
    is_path = isinstance(item, str) and item == item.strip() and ("." in item.rpartition("/")[2] or "/" in item)
    if len(own) != len(other) or len(own) < 2 or own[:-1] != other[:-1] or rivals or not is_path:  # noqa: PLR2004 - a thing, a word
        return None
    turns = own[-1] in MODIFIERS | ATTRIBUTES | OTHERS | ACTIONS | DIRECTIONS
    return (
        missing[0] if other[-1] in _FILES and not turns and fits(properties(schema)[missing[0]], item, schema) else None
    )


def _says_itself(item: Any, schema: object, root: Schema) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a value is of a parameter by what it holds: its choices, or its inner names."""
    if not fits(schema, item, root):
        return False
    for option in options(resolved(schema, root), root):
        if isinstance(item, str) and "enum" in option:
            return True
        if isinstance(item, list) and item and type_of(option) == "array":
            inner = resolved(option.get("items", {}), root)
            if all(isinstance(each, str) for each in item) and "enum" in inner:
                return True
            if all(isinstance(each, dict) and _has_names(each, inner) for each in item):
                return True
        if isinstance(item, dict) and type_of(option) == "object" and _has_names(item, option):
            return True
    return False


def _has_names(item: dict[str, Any], schema: Schema) -> bool:
    """Return whether an object has two or more of the inner names, and each that is necessary."""
    inner = properties(schema)
    return len(item) > 1 and item.keys() <= inner.keys() and {*required(schema)} <= item.keys()


def _may_be(own: tuple[str, ...], name: str, item: Any, tool: str, *, is_needed: bool) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether nothing in the names speaks against it: another thing of the same kind, or a word that turns the meaning."""
    other, said = words(name), words(tool)
    if any(
        (word in MODIFIERS and word not in said and word not in other) or _turns(word, other) or word in OTHERS
        for word in own
    ):
        return False
    is_sort = _is_in(own[-1], other) or other[-1] in ATTRIBUTES | _SORTS
    if own[-1] in ATTRIBUTES and own[-1] not in other and ({*other} <= {*own} or not is_sort):
        return False  # a length of a room is no room
    idle = {*said, *_PLAIN, *DIRECTIONS}
    one, two = _turned(own), _turned(other)
    left, missing = (
        [word for word in some if not _is_in(word, rest) and word not in idle]
        for some, rest in ((one, two), (two, one))
    )
    shared = [word for word in one if _is_in(word, two)]
    if not shared:
        is_bare = DIRECTIONS.isdisjoint(own) and own[0] not in ACTIONS
        return is_bare and bool(left) and not _is_common(item) and (is_needed or _is_its_own(item))
    if not left or (not missing and not isinstance(item, dict)):
        return True
    is_sort_of_it = is_needed and one[-1] in _SORTS and len(one) == len(two) == 2  # noqa: PLR2004 - `offer_type` of `listing_type`
    if is_sort_of_it and isinstance(item, str) and not _is_common(item):
        return True
    return bool(missing) and not same_word(one[-1], two[-1])


def _turns(word: str, name: tuple[str, ...]) -> bool:
    """Return whether a word is one of a name behind letters that turn it: `unread`."""
    return any(word != own and word.endswith(own) for own in name)


def _turned(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name with the thing that it is about last, without the words between: of `action_on_hit` `hit`, `action`."""
    joints = [place for place, word in enumerate(name) if word in DIRECTIONS]
    if len(joints) != 1:
        return tuple(word for word in name if word not in DIRECTIONS)
    return (*name[joints[0] + 1 :], *name[: joints[0]])


def _is_common(item: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a choice is one that many parameters have."""
    if isinstance(item, str):
        return item.lower() in _COMMON or len(item) < 2  # noqa: PLR2004 - a letter
    if isinstance(item, dict):
        return _INNER.issuperset(item)
    return isinstance(item, list) and any(
        _INNER.issuperset(each) if isinstance(each, dict) else str(each).lower() in _COMMON for each in item
    )


def _is_its_own(item: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether a value is nobody else's: a choice of several words, several choices, or an object with uncommon names."""
    if isinstance(item, str):
        return len(words(item)) > 1
    if isinstance(item, dict):
        return len(item.keys() - _INNER) > 1
    return isinstance(item, list) and (len(item) > 1 or all(_is_its_own(each) for each in item))


def _is_in(word: str, others: tuple[str, ...]) -> bool:
    return any(same_word(word, other) for other in others)
