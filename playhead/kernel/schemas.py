"""Applies JSON schemas in a bounded number of steps, because schemas from servers and recordings, and values, may be hostile.

`jsonschema-rs` applies them. Its steps are counted in advance; too many raise `UnusableSchemaError`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.values import JsonValue


MAX_CHARACTERS: Final = 200_000
"""Characters of a schema."""
SIMPLE: Final = 4_000
"""The size in characters below which a schema without references needs no count for an object of plain values."""
MAX_STEPS: Final = 200_000
"""The maximum number of applications of schema parts to parts of one value; a few lines of schema can require 2^n."""
MAX_DEPTH: Final = 200
"""Levels of a schema, and of a value in it, once references are followed."""
MAX_BACKTRACKS: Final = 10_000
"""Backtracking limit of a pattern with lookaround or backreferences; any other pattern takes linear time."""
SHOWN: Final = 5
"""Faults named at once."""
LONGEST: Final = 500
"""Characters of one fault."""
_NESTED: Final = frozenset({dict, list})
_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_BY_NAME: Final = ("dependentSchemas", "dependencies")
"""Keywords with schemas for the value itself: plain ones, and some by name."""
_EACH_PART: Final = ("contains", "items", "prefixItems", "additionalItems")
"""Keywords with schemas for items; each is counted for every item."""
_NOT_APPLIED: Final = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
"""Keywords whose steps cannot be counted."""
Schema = dict[str, Any]
MAX_REFERENCES: Final = 64
"""Chained references that are followed."""
LONGEST_SUMMARY: Final = 2000
"""Characters of a schema's summary."""
LONGEST_TOLD: Final = 300
"""Characters of the expected form in a fault."""
MOST: Final = 100
"""The number of choices or properties that a summary names."""
MAX_KNOWN: Final = 1000
_KNOWN: Final[dict[int, BoundedSchema]] = {}
"""Schemas of tools, by identity."""
_LIMITS: Final = ("format", "maxLength", "minLength", "pattern",
                  "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")  # fmt: skip
"""Keywords of one value that a summary names."""
Facts = dict[tuple[int, int], tuple[object, str]]
"""Summaries of schemas; each keeps its schema alive, so that the id is not reused."""


class UnusableSchemaError(Exception):
    """The schema is invalid, refers to something outside itself, or takes too many steps."""


class BoundedSchema:
    """A schema that reports the faults of a value."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Read a schema.

        Raises:
            UnusableSchemaError: it is no JSON schema, refers to what is not in it, or is too large.
        """
        import jsonschema_rs as library  # noqa: PLC0415 - only where a schema is applied

        self.schema = schema
        try:
            written = json.dumps(schema)
            if len(written) > MAX_CHARACTERS:
                raise UnusableSchemaError(f"it has more than {MAX_CHARACTERS} characters")  # noqa: TRY301
            self._is_simple = len(written) <= SIMPLE and '"$ref"' not in written
            own = {word: each for word, each in schema.items() if word != "$id"}  # an address that is never fetched
            self._validator = library.validator_for(
                own,
                offline=True,
                pattern_options=library.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS),
                keywords=dict.fromkeys(("format", *_NOT_APPLIED), _Ignored),
            )
        except Exception as error:  # noqa: BLE001 - a hostile schema may cause any exception
            raise UnusableSchemaError(getattr(error, "message", None) or str(error)) from None

    def fits(self, value: dict[str, JsonValue]) -> bool:
        """Return whether the value fits; raises like `faults`."""
        if not (self._is_simple and _NESTED.isdisjoint(map(type, value.values()))):
            require_affordable(self.schema, value)
        return bool(self._validator.is_valid(value))

    def faults(self, value: JsonValue) -> list[str]:
        """Return the value's faults, at most `SHOWN`, each with its place; empty if it fits.

        Raises:
            UnusableSchemaError: applying the schema to this value takes too many steps.
        """
        require_affordable(self.schema, value)
        try:
            found = list(islice(self._validator.iter_errors(value), SHOWN))
        except Exception as error:  # noqa: BLE001 - such as a text that is no UTF-8
            raise UnusableSchemaError(f"{type(error).__name__}: {error}") from None
        named = (f"{'.'.join(map(str, each.instance_path)) or 'arguments'}: {each.message[:LONGEST]}" for each in found)
        return list(dict.fromkeys(named))


class _Ignored:
    """A keyword that is not applied; `date` is the only text format that is checked."""

    def __init__(self, _: JsonValue, given: JsonValue, *__: Any) -> None:  # noqa: ANN401 - as the library calls it
        self._is_day = given == "date"

    def validate(self, value: JsonValue) -> None:
        """Refuse a text that is not a date."""
        if self._is_day and isinstance(value, str) and str(date.fromisoformat(value)) != value:
            raise ValueError(f"{value!r} is not a day such as 2025-01-31")


def require_affordable(schema: dict[str, Any], value: JsonValue) -> int:
    """Return the maximum number of steps of applying a schema to a value, with any validator.

    Raises:
        UnusableSchemaError: it takes more than `MAX_STEPS`, or goes round in a circle.
    """
    steps = 0
    waiting: list[tuple[Any, Any, int]] = [(schema, value, 0)]
    while waiting:
        part, of_value, depth = waiting.pop()
        if depth and (isinstance(part.get("$id"), str) or isinstance(part.get("id"), str)):
            raise UnusableSchemaError("a part of it has an address of its own ($id)")
        applied = list(islice(_applications(part, of_value, schema), MAX_STEPS))
        choices = part.get("enum")
        steps += 1 + len(applied) + (len(choices) if isinstance(choices, list) else 0)
        if steps > MAX_STEPS or depth > MAX_DEPTH:
            raise UnusableSchemaError(f"it takes more than {MAX_STEPS} steps, or {MAX_DEPTH} levels, for this value")
        waiting += [(each, inner, depth + 1) for each, inner in applied if isinstance(each, dict)]
    return steps


def _applications(part: dict[str, Any], value: Any, root: dict[str, Any]) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - JSON
    """Yield the schemas that are applied with this one, each with its part of the value."""
    if isinstance(reference := part.get("$ref"), str):
        yield resolved(reference, root), value
    yield from ((each, value) for each in _schemas(part, _SAME_VALUE))
    if isinstance(value, dict):
        yield from ((each, value) for word in _BY_NAME for each in as_dict(part.get(word)).values())
        own, patterns = as_dict(part.get("properties")), as_dict(part.get("patternProperties"))
        for name, item in value.items():
            yield from ((each, item) for each in (own.get(name, part.get("additionalProperties")), *patterns.values()))
            yield part.get("propertyNames"), name
    elif isinstance(value, list):
        applied = _schemas(part, _EACH_PART)
        yield from ((each, item) for item in value for each in applied)


def _schemas(part: dict[str, Any], words: tuple[str, ...]) -> list[Any]:
    """Return the schemas under these keywords; each keyword may have one schema or a list."""
    found = [part[word] for word in words if word in part]
    return [each for inner in found for each in (inner if isinstance(inner, list) else [inner])]


def resolved(reference: str, root: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return the target of a reference inside a schema.

    Raises:
        UnusableSchemaError: it leads out of the schema, or nowhere.
    """
    found: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise UnusableSchemaError(f"the reference {reference[:200]!r} leads out of the schema")
    for step in reference[2:].split("/") if len(reference) > 1 else ():
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name in map(str, range(len(found))):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise UnusableSchemaError(f"the reference {reference[:200]!r} leads nowhere")
    return found


def as_dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return an object, or an empty one: a part of a schema may be anything."""
    return value if isinstance(value, dict) else {}


def options(schema: object, root: Schema) -> list[Schema]:
    """Return the alternatives for a value: the branches of `anyOf`, `oneOf` or a list of types; else the schema itself."""
    schema = _resolved(schema, root)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, list):
        common = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "default")}
        return [{**common, **_resolved(branch, root)} for branch in branches]
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else [schema]


def properties(schema: Schema) -> dict[str, Schema]:
    """Return the named properties of an object, with their schemas."""
    return {name: as_dict(each) for name, each in as_dict(schema.get("properties")).items()}


def required(schema: Schema) -> list[str]:
    """Return the required properties."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def choices(schema: Schema) -> list[Any] | None:
    """Return the values of an `enum` or `const`; None without one."""
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) else None


def facts(schema: object, root: Schema, depth: int = 3, known: Facts | None = None) -> str:
    """Return a short summary of a schema: `integer, minimum 1`, `"low" | "high"`, `list of string`.

    `known` holds summaries of other parts of the root, so that each part is read once.
    """
    known = {} if known is None else known
    if (id(schema), depth) not in known:
        parts = dict.fromkeys(_facts(each, root, depth, known) for each in options(schema, root)[:8])
        known[id(schema), depth] = (schema, " | ".join(parts)[:LONGEST_SUMMARY])
    return known[id(schema), depth][1]


def _facts(schema: Schema, root: Schema, depth: int, known: Facts) -> str:
    allowed, needed = choices(schema), required(schema)
    if allowed is not None:
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in allowed[:MOST])
    if "items" in schema and depth:
        return f"list of {facts(schema['items'], root, depth - 1, known)}"
    inner = list(properties(schema).items())[: MOST if depth else 0]
    named = (f"{key}{'' if key in needed else '?'}: {facts(each, root, depth - 1, known)}" for key, each in inner)
    kind = f"{{{', '.join(named)}}}" if inner else str(schema.get("type", "anything"))
    return ", ".join([kind, *(f"{key} {schema[key]}" for key in _LIMITS if key in schema)])


def schema_of(parameters: Schema) -> BoundedSchema:
    """Return the schema of a tool, read once.

    Raises:
        UnusableSchemaError: it cannot be used.
    """
    known = _KNOWN.get(id(parameters))
    if known is None or known.schema is not parameters:
        if len(_KNOWN) >= MAX_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[id(parameters)] = BoundedSchema(parameters)
    return known


class Check:
    """Checks the values of one call against parts of a tool's schema, in a bounded number of steps."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        schema_of(root)  # raises where the whole cannot be used
        self._shared = {word: root[word] for word in ("$defs", "definitions") if word in root}
        """The root to which references in the parts refer."""
        self._left = MAX_STEPS
        self._known: Facts = {}
        """Summaries of the root's parts."""

    def expected(self, schema: object) -> str:
        """Return the expected form of a value, for a fault."""
        return facts(schema, self.root, known=self._known)[:LONGEST_TOLD]

    def fits(self, schema: object, value: Any) -> bool:  # noqa: ANN401 - any JSON value
        """Return whether a value fits a part of the schema.

        Raises:
            UnusableSchemaError: the part is no schema, or the call has taken too many steps.
        """
        if not isinstance(schema, dict) or not schema:
            return schema is not False
        part = {**self._shared, **schema}
        self._left -= 1 + require_affordable(part, value)
        if self._left < 0:
            raise UnusableSchemaError(f"it takes more than {MAX_STEPS} steps to read this call")
        return not BoundedSchema(part).faults(value)


def _resolved(schema: object, root: Schema) -> Schema:
    """Return a schema with its `$ref` resolved; an unresolvable one becomes an empty schema."""
    with suppress(UnusableSchemaError):
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return as_dict(schema)
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**as_dict(resolved(schema["$ref"], root)), **rest}
    return {}
