"""What a tool's JSON schema says of a value: its options, properties and choices, whether it fits, and a summary in one line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from playhead.kernel.bounded_schema import (
    MAX_STEPS,
    BoundedSchema,
    UnusableSchemaError,
    as_dict,
    require_affordable,
    resolved,
)

Schema = dict[str, Any]
MAX_REFERENCES: Final = 64
"""Chained references that are followed."""
LONGEST: Final = 2000
"""Characters of what is said of a schema."""
LONGEST_TOLD: Final = 300
"""Characters of what a fault says that a value has to be."""
MOST: Final = 100
"""Choices or properties that it names."""
MAX_KNOWN: Final = 1000
_KNOWN: Final[dict[int, BoundedSchema]] = {}
"""Schemas of tools, by identity."""
_LIMITS: Final = ("format", "maxLength", "minLength", "pattern",
                  "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")  # fmt: skip
"""Keywords of one value that a summary names."""


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
    return {name: as_dict(each) for name, each in as_dict(schema.get("properties")).items()}


def required(schema: Schema) -> list[str]:
    """Return the properties that have to be there."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def choices(schema: Schema) -> list[Any] | None:
    """Return the values of an `enum` or `const`; None without one."""
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found if isinstance(found, list) else None


Facts = dict[tuple[int, int], tuple[object, str]]
"""What has been said of a schema, with the schema itself, so that its id stays its own."""


def facts(schema: object, root: Schema, depth: int = 3, known: Facts | None = None) -> str:
    """Return what may stand for a schema, in a few words: `integer, minimum 1`, `"low" | "high"`, `list of string`.

    `known` is what has been said of other parts of the root: each is looked at once, however often it is referred to.
    """
    known = {} if known is None else known
    if (id(schema), depth) not in known:
        said = dict.fromkeys(_facts(each, root, depth, known) for each in options(schema, root)[:8])
        known[id(schema), depth] = (schema, " | ".join(said)[:LONGEST])
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
        """What references in the parts are about."""
        self._left = MAX_STEPS
        self._known: Facts = {}
        """What has been said of the root's parts."""

    def told(self, schema: object) -> str:
        """Return what a fault says that a value has to be."""
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
    """Return a schema with its `$ref` resolved; one that leads nowhere says nothing."""
    with suppress(UnusableSchemaError):
        for _ in range(MAX_REFERENCES):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return as_dict(schema)
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**as_dict(resolved(schema["$ref"], root)), **rest}
    return {}
