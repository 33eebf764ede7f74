"""Fourth stage: types. A value that does not fit is read as what the schema asks for, where it has one reading only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.choices import as_choice
from playhead.kernel.healing.dates import as_date, as_date_time
from playhead.kernel.healing.json_reading import decoded, parsed, quoted_parts
from playhead.kernel.healing.lists import (
    bare_items,
    fields_of,
    held_list,
    listed,
    one_row,
    parts_of,
    tagged,
    unboxed,
    unnumbered,
)
from playhead.kernel.healing.numbers import as_boolean, as_number, bare_text, unquoted
from playhead.kernel.healing.pairs import as_pairs, pairs_in
from playhead.kernel.healing.patterns import as_pattern
from playhead.kernel.healing.schema import MAX_DEPTH, Schema, fits, options, properties, required, resolved, type_of
from playhead.kernel.healing.vocabulary import MODIFIERS
from playhead.kernel.healing.words import folded, words

if TYPE_CHECKING:
    from collections.abc import Callable


class _NoReading:
    """Says that a value has no reading, or more than one."""


NO_READING: Final = _NoReading()
EMPTY: Final = (
    "", "null", "none", "nil", "undefined", "n/a", "n.a.", "(none)", "<none>", "[none]", "(null)", "(empty)", "(default)",
    "not specified", "unspecified", "not provided", "not given", "not set", "not applicable", "not available", "no value",
)  # fmt: skip
"""Texts that stand for no value, where a text does not fit."""
_LEFT_OPEN: Final = (
    "default", "use default", "as default", "optional", "empty", "unset", "nothing", "na", "-", "--", "\u2014", "\u2013", "?", "...", "\u2026",
    "unknown", "not known", "not yet known", "to be determined", "tbd", "omit", "omitted", "blank", "empty string", "leave empty", "leave blank",
    "not used", "no data", "void", "missing", "absent", "none yet", "value not provided", "no preference", "no input", "n/a (optional)",
    "none (default)", "null (default)", "none (optional)", "null (optional)", "none.", "null.",
)  # fmt: skip
"""Texts that stand for no value where they are none: a tag may be called `default`."""
_NOT_GIVEN: Final = re.compile(
    r"(?:none|not|nothing|no (?:value|data|input|info))(?: (?:was|is|yet))? (?:provided|given|specified|set|supplied|needed|required|applicable|stated|"
    r"mentioned|defined|selected)(?: yet)?\.?"
)
_AROUND: Final = ("<>", "[]", "()", "{}", "''", '""', "``")
"""Brackets and quotes that may stand around such a text."""
_WRAPPED_IN: Final = frozenset(
    [
        "value",
        "val",
        "content",
        "data",
        "text",
        "string",
        "str",
        "integer",
        "int",
        "number",
        "float",
        "boolean",
        "bool",
        "array",
        "list",
        "object",
        "stringvalue",
        "datetime",
        "date",
        "amount",
    ]
)
_BARE_LIST: Final = re.compile(r"\s*\[([^\[\]{}\"']*)\]\s*")
"""A list whose texts have no quotes."""
_HOLD_NOTHING: Final[tuple[Any, ...]] = ([None], [""], [{}], [[]], {"value": None}, {"value": ""})
"""Values that only hold none."""
_BESIDE_VALUE: Final = frozenset({"type", "name", "description", "title", "format", "kind"})


@dataclass(frozen=True, slots=True)
class Types:
    """Reads values as the types of one tool's schema."""

    root: Schema
    """The tool's schema."""
    read_only: bool
    """Whether the tool has no side effects: then a number with decimals may become text."""
    tool: tuple[str, str] = ("", "")
    """The tool's name and description."""

    def read(self, schema: object, value: Any, name: str = "", depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value as the schema wants it, the value itself when it fits, else NO_READING."""
        schema = resolved(schema, self.root)
        if fits(schema, value, self.root):
            return value
        if depth > MAX_DEPTH:
            return NO_READING
        readings: list[Any] = []
        for option in options(schema, self.root):
            reading = self._as_type(option, value, name, depth)
            if reading is not NO_READING and fits(schema, reading, self.root) and reading not in readings:
                readings.append(reading)
        return readings[0] if len(readings) == 1 else NO_READING

    def object(self, schema: Schema, value: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """Return an object with each property as its schema wants it; those without a reading stay as they are.

        A property that need not be there and holds nothing is left out.
        """
        known, others, needed = properties(schema), schema.get("additionalProperties", True), required(schema)
        found: dict[str, Any] = {}
        for name, item in value.items():
            own = known.get(name, others)
            if own is True or fits(own, item, self.root):
                found[name] = item
                continue
            is_idle = name in known and name not in needed
            if is_idle and (is_empty(item) or item in _HOLD_NOTHING) and not self._is_choice(own, item):
                continue
            reading = self.read(own, item, name, depth + 1)
            if reading is NO_READING and is_idle and isinstance(item, str) and item.strip().lower() in _LEFT_OPEN:
                continue
            found[name] = item if reading is NO_READING else reading
        return found

    def _is_choice(self, schema: Any, item: Any) -> bool:  # noqa: ANN401 - any JSON value
        """Return whether a text that stands for no value is one of the choices, such as `None` where `none` can be chosen."""
        said = [option["enum"] for option in options(resolved(schema, self.root), self.root) if "enum" in option]
        texts = {each.lower() for enum in said if isinstance(enum, list) for each in enum if isinstance(each, str)}
        return isinstance(item, str) and item.strip().strip("()<>[]").lower() in texts

    def _as_type(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401, PLR0911 - any JSON value
        kind = type_of(schema)
        if "enum" in schema and not isinstance(value, (dict, list)):
            return _or_none(
                as_choice(schema["enum"], value, kind, name, (self.tool[0], str(schema.get("description", ""))))
            )
        if kind == "object":
            return self._as_object(schema, value, name, depth)
        if kind == "array":
            return self._as_list(schema, value, name, depth)
        if isinstance(value, list) and len(value) == 1:
            return self.read(schema, value[0], name, depth + 1)
        if isinstance(value, dict):
            inner = unwrapped(value, name)
            return NO_READING if inner is NO_READING else self.read(schema, inner, name, depth + 1)
        if isinstance(value, str) and kind in ("integer", "number", "boolean") and value.strip().startswith("["):
            inner = parsed(value)
            return self.read(schema, inner[0], name, depth + 1) if _holds_one(inner) else NO_READING
        return self._as_scalar(kind, schema, value, name)

    def _as_scalar(self, kind: str, schema: Schema, value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON value
        match kind:
            case "integer" | "number":
                said = str(schema.get("description", ""))
                return _or_none(as_number(kind, value, name, said, lambda other: fits(schema, other, self.root)))
            case "boolean":
                return _or_none(as_boolean(value, name))
            case "string":
                return self._as_text(schema, value)
        return NO_READING

    def _as_text(self, schema: Schema, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            reading: Callable[[str], str | None] | None = {"date": as_date, "date-time": as_date_time}.get(
                str(schema.get("format"))
            )
            read = None if reading is None else reading(unquoted(value)) or reading(bare_text(value))
            if read is None and "pattern" in schema:
                read = as_pattern(value, lambda text: fits(schema, text, self.root))
            return NO_READING if read is None else read
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and self.read_only and not value.is_integer():
            return json.dumps(value)
        return NO_READING

    def _as_object(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            inner = parsed(decoded(value))
            if inner is None and (fields := tagged(value)) is not None:
                inner = dict(fields) if len(dict(fields)) == len(fields) else None
            inner = fields_of(value, properties(schema)) if inner is None else inner
            if isinstance(inner, (dict, list)):
                return self.read(schema, inner, name, depth + 1)
            return self._around(schema, value, depth)
        if isinstance(value, list):
            inner = pairs_in(value)
            inner = value[0] if inner is None and len(value) == 1 else inner
            return NO_READING if inner is None else self.read(schema, inner, name, depth + 1)
        if not isinstance(value, dict):
            return NO_READING
        mended = self.named(schema, value, depth)
        if fits(schema, mended, self.root):
            return mended
        inner = _held(value) if len(value) == 1 else unwrapped(value, name)
        inner = unwrapped(value, name) if inner is NO_READING else inner
        return self.read(schema, inner, name, depth + 1) if isinstance(inner, (dict, str)) else NO_READING

    def named(self, schema: Schema, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with its properties' names and types put right."""
        from playhead.kernel.healing.noise import without_remarks  # noqa: PLC0415 - the same
        from playhead.kernel.healing.parameters import renamed  # noqa: PLC0415 - which reads values by this

        if not properties(schema):
            return self.object(schema, value, depth)
        kept = {key: item for key, item in value.items() if key in properties(schema) or item not in (None, "", [], {})}
        return self.object(schema, renamed(schema, without_remarks(schema, kept, self.root), self).value, depth)

    def _around(self, schema: Schema, value: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        """Return the object whose one necessary property this text is; one that may be several properties is none."""
        needed, known = required(schema), properties(schema)
        if len(needed) != 1 or "," in value or not value.strip():
            return NO_READING
        inner = self.read(known.get(needed[0]), value, needed[0], depth + 1)
        return NO_READING if inner is NO_READING else {needed[0]: inner}

    def _as_list(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        items = resolved(schema.get("items", {}), self.root)
        if isinstance(value, str) and _says_little(value) and not self._is_choice(items, value):
            return NO_READING  # no list with the word for nothing in it
        if isinstance(value, str):
            value = decoded(value)
            inner = parsed(value) if value.strip()[:1] in ("[", "{", "`") else listed(value) or quoted_parts(value)
            bare = _BARE_LIST.fullmatch(value)
            value = parts_of(bare[1] if bare else value, items, name, _least(schema)) if inner is None else inner
        return NO_READING if value is None else self._list(items, value, name, depth)

    def _list(self, items: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        pairs = as_pairs(items, value)
        held = held_list(value, name, items) if pairs is None else pairs
        value = value if held is None else held
        if isinstance(value, dict) and type_of(items) != "object":
            value = unwrapped(value, name)
        if value is NO_READING:
            return NO_READING
        value = one_row(value, items)
        bare = bare_items(
            unnumbered(unboxed(value if isinstance(value, list) else [value], items, name), items), items, name
        )
        read = [self.read(items, each, name, depth + 1) for each in bare]
        return NO_READING if any(each is NO_READING for each in read) else read


def _least(schema: Schema) -> int:
    """Return how many items a list has to have."""
    least = schema.get("minItems", 0)
    return least if isinstance(least, int) else 0


def is_empty(value: object) -> bool:
    """Return whether a value stands for none; a word for nothing may stand in brackets or quotes: `<null>`."""
    if not isinstance(value, str):
        return value is None or value in ([], {})
    text = value.strip().lower()
    return (
        text in EMPTY
        or _NOT_GIVEN.fullmatch(text) is not None
        or (text[:1] + text[-1:] in _AROUND and text[1:-1].strip() in (*EMPTY, *_LEFT_OPEN))
    )


def _says_little(text: str) -> bool:
    """Return whether a text in place of a list is a word for nothing, or no word at all."""
    bare = text.strip().lower()
    is_phrase = bare in _LEFT_OPEN and " " in bare  # a tag may be called `default`
    return is_empty(text) or is_phrase or bare in ("omit", "omitted", "tbd", "nan") or not any(map(str.isalnum, bare))


def unwrapped(value: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an object holds that is only there to hold it, as in `{"value": 5}`; else NO_READING."""
    inner = {key: item for key, item in value.items() if key not in _BESIDE_VALUE or len(value) == 1}
    if len(inner) != 1:
        return NO_READING
    ((key, item),) = inner.items()
    if folded(key) in _WRAPPED_IN or (name and folded(key) == folded(name)):
        return item
    from playhead.kernel.healing.parameters import likeness  # noqa: PLC0415 - only for an object in place of a value

    is_its_own = bool(name) and len(value) == 1 and isinstance(item, str) and MODIFIERS.isdisjoint(words(key))
    is_its_own = is_its_own and likeness(key, name) > 0
    return item if is_its_own else NO_READING


def _held(value: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the object that another one only holds, under a name for any fields."""
    ((key, item),) = value.items()
    return item if folded(key) in ("properties", "fields", "attributes") and isinstance(item, dict) else NO_READING


def _or_none(reading: Any) -> Any:  # noqa: ANN401 - any JSON value
    return NO_READING if reading is None else reading


def _holds_one(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1
