"""Reads a tool's JSON schema: whether a value fits, the properties of an object, and a summary in one line.

Schemas are untrusted: each pair of a schema node and a value node is checked once, and the number of checks is limited.
"""

from __future__ import annotations

import json
import re
from datetime import date
from functools import lru_cache
from math import isfinite
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Schema = dict[str, Any]
Part = TypeVar("Part", dict[str, Any], list[Any])
MAX_STEPS: Final = 20_000
"""Pairs of schema and value that are checked for one call; a call that needs more is not judged."""
MAX_REFERENCES: Final = 64
"""Chained references that are followed."""
MAX_PATTERN: Final = 256
"""Characters of a text that is matched against a pattern; a longer one counts as fitting."""
MAX_REPEATS: Final = 3
"""Operators of a pattern that may repeat: each multiplies what a text may cost by its length."""
_NO_OPERATOR: Final = re.compile(r"\\.|\[\^?\]?[^\]]*\]|\(\?")
_REPEAT: Final = re.compile(r"[*+?]|\{\d*,")
_REPEATED_GROUP: Final = re.compile(r"\)[+*?{]")
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_BOUNDS: Final = {"minimum": ge, "maximum": le, "exclusiveMinimum": gt, "exclusiveMaximum": lt}
_OF_TEXT: Final = frozenset(("format", "pattern", "minLength", "maxLength"))
_CHOICES: Final = frozenset(("enum", "const"))
_BRANCHES: Final[Mapping[str, Callable[[Iterable[bool]], bool]]] = {
    "anyOf": any,
    "oneOf": any,
    "allOf": all,
    "$ref": all,
}


class TooCostlyError(Exception):
    """Checking the schema takes more steps than a call may cost."""


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2025-01-31") and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": _is_date, "date-time": _DATE_TIME.fullmatch, "email": lambda text: "@" in text,
}  # fmt: skip
_TYPES: Final = {"string": str, "boolean": bool, "null": type(None), "object": dict, "array": list,
                "number": None, "integer": None}  # fmt: skip


def _of(kind: type[Part], value: object) -> Part:
    """Return a value of this kind, or an empty one: a part of a schema may be anything."""
    return value if isinstance(value, kind) else kind()


def options(schema: object, root: Schema) -> list[Schema]:
    """Return what a value may be: the branches of `anyOf`, `oneOf` or a list of types; else the schema itself."""
    schema = _resolved(schema, root)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        common = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "default")}
        return [{**common, **_resolved(branch, root)} for branch in branches]
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else [schema]


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the named properties of an object, with their schemas."""
    return {name: _of(dict, each) for name, each in _of(dict, schema.get("properties")).items()}


def required(schema: Schema) -> list[str]:
    """Return the properties that have to be there."""
    return [name for name in _of(list, schema.get("required")) if isinstance(name, str)]


def choices(schema: Schema) -> list[Any] | None:
    """Return the values of an `enum` or `const`; None without one."""
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) else None


def facts(schema: object, root: Schema, depth: int = 3) -> str:
    """Return what may stand for a schema, in a few words: `integer, minimum 1`, `"low" | "high"`, `list of string`."""
    said = dict.fromkeys(_facts(each, root, depth) for each in options(schema, root)[:8])
    return " | ".join(said)


def _facts(schema: Schema, root: Schema, depth: int) -> str:
    allowed, needed = choices(schema), required(schema)
    if allowed is not None:
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in allowed)
    if "items" in schema and depth:
        return f"list of {facts(schema['items'], root, depth - 1)}"
    inner = properties(schema) if depth else {}
    named = (f"{key}{'' if key in needed else '?'}: {facts(each, root, depth - 1)}" for key, each in inner.items())
    kind = f"{{{', '.join(named)}}}" if inner else str(schema.get("type", "anything"))
    return ", ".join([kind, *(f"{key} {schema[key]}" for key in (*sorted(_OF_TEXT), *_BOUNDS) if key in schema)])


class Check:
    """Checks the values of one call; each pair of a schema node and a value node once."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._left = MAX_STEPS
        self._known: dict[tuple[int, int], tuple[bool, object, object]] = {}
        """Whether a value fits, with both, so that their ids are theirs."""

    def spend(self) -> None:
        """Take one of the steps that a call may cost.

        Raises:
            TooCostlyError: there have been enough.
        """
        self._left -= 1
        if self._left < 0:
            raise TooCostlyError

    def fits(self, schema: object, value: object) -> bool:
        """Return whether a value fits a schema of this root; unknown keywords are ignored.

        Raises:
            TooCostlyError: the schema says more than is looked at.
        """
        if not isinstance(schema, dict) or not schema:
            return schema is not False
        if schema.keys().isdisjoint(_BRANCHES):
            return self._words_fit(schema, value)
        pair = (id(schema), id(value))
        if pair not in self._known:
            self.spend()
            self._known[pair] = (True, schema, value)  # also the answer for a schema that refers to itself
            self._known[pair] = (self._words_fit(schema, value) and self._branches_fit(schema, value), schema, value)
        return self._known[pair][0]

    def _branches_fit(self, schema: Schema, value: object) -> bool:
        if "$ref" in schema and not self.fits(_pointed_at(schema["$ref"], self.root), value):
            return False
        return all(
            enough(self.fits(branch, value) for branch in schema[word])
            for word, enough in _BRANCHES.items()
            if isinstance(schema.get(word), list)
        )

    def _words_fit(self, schema: Schema, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        if "type" in schema and not _is_of(schema["type"], value):
            return False
        if not _CHOICES.isdisjoint(schema) and not _is_one_of(value, choices(schema)):
            return False
        if isinstance(value, dict):
            return self._object_fits(schema, value)
        if isinstance(value, list):
            return self._list_fits(schema, value)
        if isinstance(value, str) or schema.keys().isdisjoint(_BOUNDS) or not _is_number(value):
            return not isinstance(value, str) or _OF_TEXT.isdisjoint(schema) or _text_fits(schema, value)
        return all(holds(value, schema[word]) for word, holds in _BOUNDS.items() if _is_number(schema.get(word)))

    def _object_fits(self, schema: Schema, value: dict[str, Any]) -> bool:
        known, others = _of(dict, schema.get("properties")), schema.get("additionalProperties", True)
        patterns = _of(dict, schema.get("patternProperties"))
        for name, item in value.items():
            named = (each for pattern, each in patterns.items() if name not in known and _has_pattern(pattern, name))
            if not self.fits(known[name] if name in known else next(named, others), item):
                return False
        return all(name in value for name in required(schema))

    def _list_fits(self, schema: Schema, value: list[Any]) -> bool:
        items = True if "prefixItems" in schema else schema.get("items", True)
        return _has_size(schema, value, "Items") and all(self.fits(items, item) for item in value)


def _is_one_of(value: object, allowed: list[Any] | None) -> bool:
    return allowed is None or any(
        value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed
    )


def _is_of(kind: object, value: Any) -> bool:  # noqa: ANN401 - any JSON value
    if isinstance(kind, list):
        return any(_is_of(each, value) for each in kind)
    known = _TYPES.get(kind, object) if isinstance(kind, str) else object
    return isinstance(value, known) if known else _is_number(value) and (kind != "integer" or value == int(value))


def _has_size(schema: Schema, value: str | list[Any], of: str) -> bool:
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    return not (isinstance(least, int) and len(value) < least) and not (isinstance(most, int) and len(value) > most)


def _text_fits(schema: Schema, text: str) -> bool:
    check = _FORMATS.get(str(schema.get("format")))
    is_of_form = check is None or bool(check(text))
    return is_of_form and _has_size(schema, text, "Length") and _has_pattern(schema.get("pattern"), text)


def _has_pattern(pattern: object, text: str) -> bool:
    found = _compiled(pattern) if isinstance(pattern, str) and len(text) <= MAX_PATTERN else None
    return found is None or found.search(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a compiled pattern; None for one that Python cannot read, or that may be slow."""
    bare = _NO_OPERATOR.sub("", pattern)
    repeats = len(_REPEAT.findall(bare)) + (not bare.startswith("^"))
    try:
        return None if _REPEATED_GROUP.search(bare) or repeats > MAX_REPEATS else re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def _resolved(schema: object, root: Schema) -> Schema:
    """Return a schema with its `$ref` resolved; an unresolvable one becomes empty, which any value fits."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_pointed_at(schema["$ref"], root), **rest}
    return schema if isinstance(schema, dict) and "$ref" not in schema else {}


def _pointed_at(reference: object, root: Schema) -> Schema:
    found: object = root
    for part in str(reference).removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) and str(reference).startswith("#") else {}
