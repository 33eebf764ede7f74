"""Lists in other shapes: text with commas or bullets, objects with places for names, lists in a list, objects around each item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.schema import Schema, properties, type_of
from playhead.kernel.healing.words import folded, singular, words

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_TEXT: Final = 200_000
"""Characters of a text that is read as a list."""
MAX_ELEMENTS: Final = 500
"""Elements of a text in tags."""
_TAG: Final = re.compile(r"<([A-Za-z_][\w.-]{0,60})>")
_WORDY_SPLIT: Final = re.compile(r"\s*[,;]\s+(?:and\s+)?|\s*;\s*|\s+(?:and|&)\s+", re.IGNORECASE)
_CHOICES_SPLIT: Final = re.compile(r"\s*[,;|+&/](?:\s*and\b)?\s*|\s+and\s+", re.IGNORECASE)
_TIGHT_SPLIT: Final = re.compile(r"\s*[,;]\s*")
_BULLETS: Final = re.compile(r"(?:\s*+(?:[-*•]|\d{1,3}[.)])[ \t]++[^\n]++(?:\n|\Z))++", re.ASCII)
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_CODE: Final = re.compile(r"[a-z0-9][\w@./+#-]*|[A-Z0-9][A-Z0-9_./#-]*\d[\w./#-]*", re.ASCII)
"""A word in small letters, or one with a digit: an id, a tag, a column; no name of a person, which may have commas."""
_WORDS: Final = re.compile(r"[^\W\d_]\w{0,60}(?:,[^\W\d_]\w{0,60})++")
"""Single words, with nothing but commas between them."""
_EMAIL: Final = re.compile(r"[^\s,;@<>]+@[^\s,;@<>]+")
_ONE_FIELD: Final = r"([A-Za-z_]\w{0,60})([=:])[ ]?(\"[^\"]{0,500}\"|'[^']{0,500}'|[^\s,;{}\[\]\"'=]{1,500})"
_FIELD: Final = re.compile(_ONE_FIELD)
_FIELDS: Final = re.compile(rf"{_ONE_FIELD}(?:(?:\s*[,;]\s*|\s+){_ONE_FIELD}){{0,50}}")
_OPEN_END: Final = frozenset(("etc", "and", "or", "more", "others", "all", "none"))
_OF_COMMAND: Final = frozenset(
    ("args", "argv", "arg", "argument", "arguments", "command", "commands", "lines", "text", "texts")
)
"""Words of a name whose texts may have commas of their own."""
_ARGUMENTS: Final = frozenset(("args", "argv"))
"""Names of the arguments of a command, which a shell would part at blanks."""
_OF_SHELL: Final = re.compile(r"[\"'`$|&;<>*?~\\#,\n]")
_HOLDERS: Final = frozenset(("item", "items", "element", "elements", "list", "array", "values", "entry", "entries"))
_NAMES: Final = frozenset(("name", "id", "email", "path", "file", "title", "label", "text", "value", "url", "sku"))
"""Fields of which one alone says which thing is meant."""


def parts_of(text: str, items: Schema, name: str, least: int = 0) -> list[str] | None:
    """Return the parts of a text, where only parts or only the whole can be meant; None when that cannot be said.

    A list that has `least` two items cannot be the whole.
    """
    text, kind = text.strip(), type_of(items)
    if not text or len(text) > MAX_TEXT:
        return None
    if _BULLETS.fullmatch(text):
        return [line.strip() for line in _BULLET.sub("", text).splitlines() if line.strip()]
    if kind in ("integer", "number") or (kind == "string" and _are_arguments(text, name)):
        return _WORDY_SPLIT.split(text) if kind != "string" else text.split()
    if kind == "object" or not re.search(r"[\s,;]", text):
        return [text]
    if "enum" in items:
        return _chosen(text, items["enum"], name)
    parts = _TIGHT_SPLIT.split(text)
    return parts if (least > 1 and _are_words(text, parts, name)) or _are_told_apart(parts, items, name) else None


def _are_arguments(text: str, name: str) -> bool:
    """Return whether a text is the arguments of a command, which a shell would part at its blanks only."""
    return not {*words(name)}.isdisjoint(_ARGUMENTS) and _OF_SHELL.search(text) is None


def _are_words(text: str, parts: list[str], name: str) -> bool:
    """Return whether a text is single words with nothing but commas between them, and none of them leaves the end open."""
    is_plain = _OPEN_END.isdisjoint(map(str.lower, parts)) and _OF_COMMAND.isdisjoint(words(name))
    return is_plain and _WORDS.fullmatch(text) is not None


def tagged(text: str) -> list[tuple[str, str]] | None:
    """Return the elements that a text is, and nothing besides, as pairs of a tag and what is in it; None when it is something else."""
    text = text.strip()
    if not text.startswith("<") or len(text) > MAX_TEXT:
        return None
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text) and len(found) < MAX_ELEMENTS:
        opening = _TAG.match(text, place)
        end = -1 if opening is None else text.find(f"</{opening[1]}>", opening.end())
        if opening is None or end < 0 or f"<{opening[1]}>" in text[opening.end() : end]:
            return None
        found.append((opening[1], text[opening.end() : end].strip()))
        place = end + len(opening[1]) + 3
        place += len(text[place:]) - len(text[place:].lstrip())
    return found if place >= len(text) else None


def fields_of(text: str, known: Collection[str]) -> dict[str, str] | None:
    """Return the fields that a text is, as in `from=2 until=5`, or `from: 2, until: 5` where all of them are known; else None."""
    if len(text) > MAX_TEXT or _FIELDS.fullmatch(text.strip()) is None:
        return None
    pairs = [(each[1], each[2], each[3].strip("\"'")) for each in _FIELD.finditer(text.strip())]
    names = [name for name, _, _ in pairs]
    is_said = {*names} <= {*known} if known else all(mark == "=" for _, mark, _ in pairs)
    return {name: item for name, _, item in pairs} if is_said and len({*names}) == len(names) else None


def listed(text: str) -> list[str] | None:
    """Return what elements of one name hold, as in `<item>a</item><item>b</item>`; None when a text is something else."""
    found = tagged(text)
    return [inner for _, inner in found] if found and len({tag for tag, _ in found}) == 1 else None


def _chosen(text: str, choices: Any, name: str) -> list[str]:  # noqa: ANN401 - of a schema
    """Return the one choice that a text is, else the parts of a list in words: each of them has to be a choice."""
    from playhead.kernel.healing.choices import as_choice  # noqa: PLC0415 - only for a text in place of a list

    if isinstance(choices, list) and as_choice(choices, text, "string", name) is not None:
        return [text]
    return _CHOICES_SPLIT.split(text)


def _are_told_apart(parts: list[str], items: Schema, name: str) -> bool:
    """Return whether each part of a text is one of the choices, an address, or a word that has no comma of its own."""
    if items.get("format") == "email":
        return len(parts) > 1 or not re.search(r"\s", parts[0])
    if len(parts) < 2 or not _OF_COMMAND.isdisjoint(words(name)):  # noqa: PLR2004 - one text
        return False
    is_code = all(_CODE.fullmatch(part) and part.rstrip(".") not in _OPEN_END for part in parts)
    return is_code or all(map(_EMAIL.fullmatch, parts))


def held_list(value: Any, name: str, items: Schema) -> list[Any] | None:  # noqa: ANN401 - any JSON value
    """Return the list that an object or a list only holds: by places, under its own name, or as its only item."""
    if isinstance(value, list):
        is_nested = len(value) == 1 and isinstance(value[0], list) and type_of(items) != "array"
        return value[0] if is_nested else None
    if not isinstance(value, dict) or not value:
        return None
    if [*value] == [str(place) for place in range(len(value))]:
        return [*value.values()]
    if len(value) > 1:
        return None
    ((key, item),) = value.items()
    is_holder = key not in properties(items) and (
        key.lower() in _HOLDERS or key == "value" or singular(folded(key)) == singular(folded(name))
    )
    return item if is_holder and isinstance(item, list) else None


def unboxed(value: list[Any], items: Schema, name: str) -> list[Any]:
    """Return objects that each stand alone in one of a field named like an item of the list: `[{"edit": {…}}]` of `edits`."""
    keys = {tuple(each) if isinstance(each, dict) else () for each in value}
    key = next(iter(keys)) if len(keys) == 1 else ()
    is_box = (
        len(key) == 1
        and key[0] not in properties(items)
        and singular(folded(key[0])) in (singular(folded(name)), "item")
    )
    inner = [each[key[0]] for each in value] if is_box and type_of(items) == "object" else value
    return inner if all(isinstance(each, dict) for each in inner) else value


def one_row(value: Any, items: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return the row that a list of plain values is, where lists are asked for."""
    is_row = isinstance(value, list) and len(value) > 1 and not any(isinstance(each, (list, dict)) for each in value)
    return [value] if is_row and type_of(items) == "array" else value


def unnumbered(value: list[Any], items: Schema) -> list[Any]:
    """Return objects without a field that only counts them, from 0 or 1, where no object has such a field of its own."""
    numbered = any({"id", "number", "index", "position", "line"} & {*words(each)} for each in properties(items))
    names = [
        name for name in ("id", "index", "idx", "no") if all(isinstance(each, dict) and name in each for each in value)
    ]
    if numbered or len(names) != 1 or type_of(items) != "object" or not value:
        return value
    counted = [str(each[names[0]]) for each in value]
    if counted not in ([str(place + first) for place in range(len(value))] for first in (0, 1)):
        return value
    return [{name: item for name, item in each.items() if name != names[0]} for each in value]


def bare_items(value: list[Any], items: Schema, name: str) -> list[Any]:
    """Return the texts that objects of one field each hold, such as `[{"email": …}]`, where texts are asked for."""
    keys = {tuple(each) if isinstance(each, dict) else None for each in value}
    if type_of(items) != "string" or len(keys) != 1 or None in keys:
        return value
    (key,) = keys
    said = {*words(name), *map(singular, words(name)), *words(str(items.get("description", ""))), *_NAMES}
    is_held = key is not None and len(key) == 1 and key[0].lower() in said
    texts = [each[key[0]] for each in value] if key is not None and is_held else value
    return texts if all(isinstance(each, str) for each in texts) else value
