"""Fourth stage: types. A value that does not fit is read as what the schema asks for, where it has one reading only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.dates import as_date, as_date_time
from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.schema import MAX_DEPTH, Schema, fits, options, properties, required, resolved, type_of
from playhead.kernel.healing.words import folded, singular, words

if TYPE_CHECKING:
    from collections.abc import Callable


class _NoReading:
    """Says that a value has no reading, or more than one."""


NO_READING: Final = _NoReading()
EMPTY: Final = ("", "null", "none", "nil", "undefined", "n/a")
"""Texts that stand for no value, where a text does not fit."""
_INTEGER: Final = re.compile(r"[+-]?(0|[1-9]\d{0,17})(\.0{1,6})?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(0|[1-9]\d{0,17})(\.\d{1,17})?([eE][+-]?\d{1,2})?", re.ASCII)
_GROUPED: Final = re.compile(r"[+-]?[1-9]\d{0,2}(\.000)+", re.ASCII)
"""Thousands as some countries write them, or decimals."""
_WITH_UNIT: Final = re.compile(r"([+-]?[\d.]+)\s*([A-Za-z°]+|%)", re.ASCII | re.IGNORECASE)
_TRUE: Final = ("true", "yes", "on", "1", "y", "t")
_FALSE: Final = ("false", "no", "off", "0", "n", "f")
_SPLIT: Final = re.compile(r"\s*[,;]\s+|\s*;\s*")
_TIGHT_SPLIT: Final = re.compile(r"\s*[,;]\s*")
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
    ]
)
_BESIDE_VALUE: Final = frozenset({"type", "name", "description", "title", "format", "kind"})
_UNITS: Final = (
    {"s", "sec", "secs", "second", "seconds"},
    {"min", "mins", "minute", "minutes"},
    {"h", "hr", "hrs", "hour", "hours"},
    {"d", "day", "days"},
    {"c", "°c", "celsius"},
    {"%", "percent", "percentage", "pct"},
)
MAX_TEXT: Final = 200_000
"""Characters of a text that is read as something else."""


@dataclass(frozen=True, slots=True)
class Types:
    """Reads values as the types of one tool's schema."""

    root: Schema
    """The tool's schema."""
    read_only: bool
    """Whether the tool has no side effects: then a number with decimals may become text."""

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
            elif name in known and name not in needed and is_empty(item):
                continue
            else:
                reading = self.read(own, item, name, depth + 1)
                found[name] = item if reading is NO_READING else reading
        return found

    def _as_type(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401, PLR0911 - any JSON value
        kind = type_of(schema)
        if "enum" in schema and not isinstance(value, (dict, list)):
            return _as_choice(schema["enum"], value, kind)
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
            listed = parsed(value)
            return self.read(schema, listed[0], name, depth + 1) if _holds_one(listed) else NO_READING
        return self._as_scalar(kind, schema, value, name)

    def _as_scalar(self, kind: str, schema: Schema, value: Any, name: str) -> Any:  # noqa: ANN401 - any JSON value
        match kind:
            case "integer" | "number":
                return _as_number(kind, value, (*words(name), *words(str(schema.get("description", "")))))
            case "boolean":
                return _as_boolean(value)
            case "string":
                return self._as_text(schema, value)
        return NO_READING

    def _as_text(self, schema: Schema, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            reading: Callable[[str], str | None] | None = {"date": as_date, "date-time": as_date_time}.get(
                str(schema.get("format"))
            )
            read = None if reading is None else reading(value)
            return NO_READING if read is None else read
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and self.read_only and not value.is_integer():
            return json.dumps(value)
        return NO_READING

    def _as_object(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            inner = parsed(value)
            if isinstance(inner, dict):
                return self.read(schema, inner, name, depth + 1)
            return self._around(schema, value, depth)
        if isinstance(value, list):
            return self.read(schema, value[0], name, depth + 1) if len(value) == 1 else NO_READING
        if not isinstance(value, dict):
            return NO_READING
        mended = self.named(schema, value, depth)
        if fits(schema, mended, self.root):
            return mended
        inner = unwrapped(value, name)
        return self.read(schema, inner, name, depth + 1) if isinstance(inner, (dict, str)) else NO_READING

    def named(self, schema: Schema, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with its properties' names and types put right."""
        from playhead.kernel.healing.parameters import renamed  # noqa: PLC0415 - which reads values by this

        if not properties(schema):
            return self.object(schema, value, depth)
        return self.object(schema, renamed(schema, value, self).value, depth)

    def _around(self, schema: Schema, value: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        """Return the object whose one necessary property this text is; one that may be several properties is none."""
        needed, known = required(schema), properties(schema)
        if len(needed) != 1 or "," in value or not value.strip():
            return NO_READING
        inner = self.read(known.get(needed[0]), value, needed[0], depth + 1)
        return NO_READING if inner is NO_READING else {needed[0]: inner}

    def _as_list(self, schema: Schema, value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        items = resolved(schema.get("items", {}), self.root)
        if isinstance(value, str):
            inner = parsed(value) if value.strip()[:1] in ("[", "{") else None
            return (
                self._split(items, value, name, depth) if inner is None else self.read(schema, inner, name, depth + 1)
            )
        if isinstance(value, dict) and type_of(items) != "object":
            inner = unwrapped(value, name)
            return NO_READING if inner is NO_READING else self.read(schema, inner, name, depth + 1)
        read = [self.read(items, each, name, depth + 1) for each in (value if isinstance(value, list) else [value])]
        return NO_READING if any(each is NO_READING for each in read) else read

    def _split(self, items: Schema, value: str, name: str, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        """Return the parts of a text, where only parts or only the whole can be meant."""
        if not value.strip() or len(value) > MAX_TEXT:
            return NO_READING
        is_tight = "enum" in items or items.get("format") == "email"
        parts = (_TIGHT_SPLIT if is_tight else _SPLIT).split(value.strip())
        is_told_apart = is_tight or type_of(items) in ("integer", "number")
        if not is_told_apart and type_of(items) != "object" and re.search(r"[\s,;]", value):
            return NO_READING
        read = [self.read(items, part, name, depth + 1) for part in (parts if is_told_apart else [value])]
        if any(each is NO_READING for each in read) or (
            items.get("format") == "email" and re.search(r"\s", value) and len(parts) == 1
        ):
            return NO_READING
        return read


def is_empty(value: object) -> bool:
    """Return whether a value stands for none."""
    return value is None or value in ([], {}) or (isinstance(value, str) and value.strip().lower() in EMPTY)


def unwrapped(value: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what an object holds that is only there to hold it, as in `{"value": 5}`; else NO_READING."""
    inner = {key: item for key, item in value.items() if key not in _BESIDE_VALUE or len(value) == 1}
    if len(inner) != 1:
        return NO_READING
    ((key, item),) = inner.items()
    return item if folded(key) in _WRAPPED_IN or (name and folded(key) == folded(name)) else NO_READING


def _holds_one(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1


def _as_choice(choices: list[Any], value: Any, kind: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the choice that differs in case, separators, plural or one letter only."""
    if not isinstance(value, str):
        return NO_READING
    texts = [each for each in choices if isinstance(each, str)]
    if kind in ("integer", "number") or not texts:
        number = _as_number("number", value, ())
        return number if number in choices else NO_READING
    written = folded(value)
    readings: tuple[Callable[[str], bool], ...] = (
        lambda each: folded(each) == written,
        lambda each: singular(folded(each)) == singular(written),
        lambda each: _is_near(written, folded(each)),
    )
    for same in readings:
        found = [each for each in texts if same(each)]
        if found:
            return found[0] if len(found) == 1 and written else NO_READING
    return NO_READING


def _is_near(written: str, choice: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a value that is none of those

    return len(choice) > 5 and written[:1] == choice[:1] and OSA.distance(written, choice, score_cutoff=2) <= 1  # noqa: PLR2004


def _as_number(kind: str, value: Any, around: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the number that a text holds, with the unit that the parameter has; no other unit, and no commas."""
    if not isinstance(value, str) or len(value) > 60:  # noqa: PLR2004 - no number is that long
        return NO_READING
    text = value.strip()
    with_unit = _WITH_UNIT.fullmatch(text)
    if with_unit is not None and _is_unit_of(with_unit[2].lower(), around):
        text = with_unit[1]
    if text.startswith("#") and "id" in around:
        text = text[1:]
    if _GROUPED.fullmatch(text):
        return NO_READING
    if _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    return float(text) if kind == "number" and _NUMBER.fullmatch(text) else NO_READING


def _is_unit_of(unit: str, around: tuple[str, ...]) -> bool:
    if any(singular(unit) == singular(word) for word in around if len(unit) > 2):  # noqa: PLR2004 - `a`, `of`
        return True
    return any(unit in group and group.intersection(around) for group in _UNITS)


def _as_boolean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    text = value.strip().lower() if isinstance(value, str) else ""
    return True if text in _TRUE else False if text in _FALSE else NO_READING
