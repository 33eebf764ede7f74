"""What a tool's JSON schema says about a value: whether it fits, and what may be in an object."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Schema = dict[str, Any]
MAX_DEPTH: Final = 64
"""Levels of a value that are looked at; a deeper one counts as one that does not fit."""
MAX_PATTERN: Final = 1000
"""Characters of a text that is compared with the schema's pattern; a longer one counts as one that fits."""
_REPEATED_GROUP: Final = re.compile(r"\)[+*{]")
_DATE: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": lambda text: _DATE.fullmatch(text) and _is_day(text),
    "date-time": lambda text: text[10:11] == "T" and _DATE_TIME.fullmatch(text),
    "email": lambda text: "@" in text,
}


def _is_day(text: str) -> bool:
    """Return whether a day is one of the calendar."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "number": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))
    ),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
}


def resolved(schema: object, root: Schema) -> Schema:
    """Return what a schema says after its `$ref`s; an empty one, which everything fits, when that cannot be found."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        found = _pointed_at(schema["$ref"], root)
        schema = {**found, **rest} if rest else found
    return {}


def properties(schema: Schema) -> dict[str, Any]:
    """Return the named properties of an object."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required(schema: Schema) -> list[str]:
    """Return the properties that have to be there."""
    found = schema.get("required")
    return found if isinstance(found, list) else []


def is_closed(schema: Schema) -> bool:
    """Return whether an object may have no other properties than those that are named."""
    return schema.get("additionalProperties") is False


def options(schema: Schema, root: Schema) -> list[Schema]:
    """Return what a value may be: the branches of `anyOf` or of a list of types, null left out; else the schema itself."""
    alone = schema.get("allOf")
    if isinstance(alone, list) and len(alone) == 1:  # around a reference, so that it can have a description
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        schema = {**resolved(alone[0], root), **rest}
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        common = {
            key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "default", "description")
        }
        found = [{**common, **resolved(branch, root)} for branch in branches]
    elif isinstance(schema.get("type"), list):
        found = [{**schema, "type": kind} for kind in schema["type"]]
    else:
        found = [schema]
    return [option for option in found if option.get("type") != "null"]


def type_of(schema: Schema) -> str:
    """Return the one type that a schema asks for, or nothing."""
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""


def fits(schema: object, value: object, root: Schema, depth: int = 0) -> bool:
    """Return whether a value fits a schema, as far as the usual words of schemas say; others are not looked at."""
    if schema is False or depth > MAX_DEPTH:
        return False
    if not isinstance(schema, dict) or not schema:
        return True
    if "$ref" in schema:
        schema = resolved(schema, root)
    kind = schema.get("type")
    if kind is not None and not _is_of(kind, value):
        return False
    if ("enum" in schema and not _is_one_of(value, schema["enum"])) or (
        "const" in schema and not _is_one_of(value, [schema["const"]])
    ):
        return False
    if isinstance(value, str):
        good = _text_fits(schema, value)
    elif isinstance(value, dict):
        good = _object_fits(schema, value, root, depth)
    elif isinstance(value, list):
        good = _list_fits(schema, value, root, depth)
    else:
        good = isinstance(value, bool) or value is None or _number_fits(schema, value)
    return good and _branches_fit(schema, value, root, depth)


def _is_of(kind: object, value: object) -> bool:
    if isinstance(kind, list):
        return any(_is_of(each, value) for each in kind)
    check = _TYPES.get(kind) if isinstance(kind, str) else None
    return check is None or check(value)


def _is_one_of(value: object, allowed: object) -> bool:
    return not isinstance(allowed, list) or any(
        value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed
    )


def _text_fits(schema: Schema, text: str) -> bool:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if (least is not None and len(text) < least) or (most is not None and len(text) > most):
        return False
    check = _FORMATS.get(str(schema.get("format")))
    return (check is None or bool(check(text))) and ("pattern" not in schema or _has_pattern(schema["pattern"], text))


def _has_pattern(pattern: object, text: str) -> bool:
    found = _compiled(pattern) if isinstance(pattern, str) and len(text) <= MAX_PATTERN else None
    return found is None or found.search(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of a schema; None for one that Python does not read, or may read in more than linear time."""
    if _REPEATED_GROUP.search(pattern):
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError):
        return None


def _number_fits(schema: Schema, number: Any) -> bool:  # noqa: ANN401 - int or float
    checks: tuple[tuple[str, Callable[[Any], bool]], ...] = (
        ("minimum", lambda bound: number >= bound),
        ("maximum", lambda bound: number <= bound),
        ("exclusiveMinimum", lambda bound: number > bound),
        ("exclusiveMaximum", lambda bound: number < bound),
    )
    return all(schema.get(word) is None or check(schema[word]) for word, check in checks)


def _object_fits(schema: Schema, value: dict[str, Any], root: Schema, depth: int) -> bool:
    for name in required(schema):
        if name not in value:
            return False
    known, others, patterns = (
        properties(schema),
        schema.get("additionalProperties", True),
        schema.get("patternProperties"),
    )
    for name, item in value.items():
        own = known.get(name, others)
        if patterns and name not in known and isinstance(patterns, dict):
            own = next((each for pattern, each in patterns.items() if _has_pattern(pattern, name)), others)
        if own is not True and not fits(own, item, root, depth + 1):
            return False
    return True


def _list_fits(schema: Schema, value: list[Any], root: Schema, depth: int) -> bool:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if (least is not None and len(value) < least) or (most is not None and len(value) > most):
        return False
    items, places = schema.get("items", True), schema.get("prefixItems")
    if isinstance(items, list):  # as drafts before 2020 wrote it
        items, places = schema.get("additionalItems", True), items
    if isinstance(places, list):
        if not all(fits(own, item, root, depth + 1) for own, item in zip(places, value, strict=False)):
            return False
        value = value[len(places) :]
    return items is True or all(fits(items, item, root, depth + 1) for item in value)


def _branches_fit(schema: Schema, value: object, root: Schema, depth: int) -> bool:
    for word, enough in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        branches = schema.get(word)
        if branches and not enough(fits(branch, value, root, depth + 1) for branch in branches):
            return False
    return True


def _pointed_at(reference: object, root: Schema) -> Schema:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return {}
    found: object = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
