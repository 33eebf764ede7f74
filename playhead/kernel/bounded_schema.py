"""JSON schemas, applied in a bounded number of steps: a server's or a recording's schema is somebody else's, and so is a value.

The steps are counted before anything applies the schema: `UnusableSchemaError` says when there are too many. `pattern` and
`patternProperties` are not applied: whoever wrote the schema checks them again, and an expression can take for ever.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.trace.values import JsonValue

MAX_SIZE: Final = 50_000
"""Parts of a schema, once its references are followed; a schema of a few lines can ask for 2^n."""
MAX_STEPS: Final = 200_000
"""Parts of a schema that are applied to parts of one value."""
MAX_DEPTH: Final = 200
"""Levels of a schema, and of a value in it, once references are followed."""
SHOWN: Final = 5
"""Faults named at once."""
LONGEST: Final = 500
"""Characters of one fault."""
_SAME_VALUE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_NAMED: Final = ("properties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Keywords whose values are schemas by name, so that a property may be called `pattern`."""
_DATA: Final = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})
_NOT_APPLIED: Final = frozenset({
    "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary", "format",
    "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
"""Keywords whose work has no bound, or that a bound would have to know more of than of all others."""


class UnusableSchemaError(Exception):
    """The schema is none, refers to what is not in it, or takes too many steps."""


class BoundedSchema:
    """A schema that can be asked what is wrong with a value."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Read the schema.

        Raises:
            UnusableSchemaError: it is no JSON schema, refers to what is not in it, or is too large.
        """
        import jsonschema_rs  # noqa: PLC0415 - only where a schema is applied

        require_bounded(schema)
        self._schema = _applied(schema)
        try:
            self._validator = jsonschema_rs.validator_for(self._schema, offline=True, validate_formats=False)
        except Exception as error:  # noqa: BLE001 - whatever it dislikes about a hostile schema
            raise UnusableSchemaError(getattr(error, "message", None) or f"{type(error).__name__}: {error}") from None

    def faults(self, value: JsonValue) -> list[str]:
        """Return what is wrong with the value, at most `SHOWN` faults, each with its place; empty when it fits.

        Raises:
            UnusableSchemaError: applying the schema to this value takes too many steps.
        """
        require_affordable(self._schema, value)
        try:
            found = list(islice(self._validator.iter_errors(value), SHOWN))
        except Exception as error:  # noqa: BLE001 - such as a text that is no UTF-8
            raise UnusableSchemaError(f"{type(error).__name__}: {error}") from None
        told = (f"{'.'.join(map(str, each.instance_path)) or 'arguments'}: {each.message[:LONGEST]}" for each in found)
        return list(dict.fromkeys(told))


def require_bounded(schema: dict[str, Any]) -> None:
    """Make sure that a schema, with its references followed, is of bounded size; one that refers to itself counts once.

    Raises:
        UnusableSchemaError: it is too large or too deep, or a reference leads nowhere or out of it.
    """
    known: dict[int, tuple[int, int]] = {}
    inside: set[int] = set()

    def measure(part: Any, depth: int) -> tuple[int, int]:  # noqa: ANN401 - JSON
        """Return how many parts there are below, and how many levels."""
        if not isinstance(part, (dict, list)) or id(part) in inside:
            return 1, 0
        if id(part) not in known:
            if depth > MAX_DEPTH:
                raise UnusableSchemaError(f"it is nested deeper than {MAX_DEPTH} levels")
            inside.add(id(part))
            size, levels = 1, 0
            for each in _below(part, schema):
                more, below = measure(each, depth + 1)
                size, levels = size + more, max(levels, below + 1)
                if size > MAX_SIZE:
                    raise UnusableSchemaError(f"it has more than {MAX_SIZE} parts, with its references followed")
            inside.remove(id(part))
            known[id(part)] = size, levels
        if depth + known[id(part)][1] > MAX_DEPTH:
            raise UnusableSchemaError(f"it is nested deeper than {MAX_DEPTH} levels")
        return known[id(part)]

    measure(schema, 0)


def require_affordable(schema: dict[str, Any], value: JsonValue) -> int:
    """Return how many steps applying a schema to a value takes at most, whoever applies it.

    Raises:
        UnusableSchemaError: it takes more, as a schema that refers to itself twice may, or goes round in a circle.
    """
    left = MAX_STEPS
    waiting: list[tuple[Any, Any, int]] = [(schema, value, 0)]
    while waiting:
        part, of_value, depth = waiting.pop()
        choices = part.get("enum")
        left -= 1 + (len(choices) if isinstance(choices, list) else 0)
        for each, inner in _applications(part, of_value, schema):
            left -= 1
            if isinstance(each, dict):
                waiting.append((each, inner, depth + 1))
            if left < 0:
                break
        if left < 0 or depth > MAX_DEPTH:
            raise UnusableSchemaError(f"it takes more than {MAX_STEPS} steps, or {MAX_DEPTH} levels, for this value")
    return MAX_STEPS - left


def _below(part: Any, root: dict[str, Any]) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield the parts of a part, with what it refers to."""
    if isinstance(part, list):
        yield from part
        return
    yield from part.values()
    if isinstance(reference := part.get("$ref"), str):
        yield resolved(reference, root)


def _applications(part: dict[str, Any], value: Any, root: dict[str, Any]) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - JSON
    """Yield the schemas that are applied with this one, each with the part of the value that it is for."""
    for word in _SAME_VALUE & part.keys():
        inner = part[word]
        yield from ((each, value) for each in (inner if isinstance(inner, list) else [inner]))
    if isinstance(reference := part.get("$ref"), str):
        yield resolved(reference, root), value
    if isinstance(value, dict):
        for word in ("dependentSchemas", "dependencies"):
            yield from ((each, value) for each in _dict(part.get(word)).values())
        own, others = _dict(part.get("properties")), part.get("additionalProperties")
        for name, item in value.items():
            yield own.get(name, others), item
            if "propertyNames" in part:
                yield part["propertyNames"], name
    elif isinstance(value, list):
        items, first = part.get("items"), part.get("prefixItems")
        places = items if isinstance(items, list) else first if isinstance(first, list) else []
        rest = part.get("additionalItems") if isinstance(items, list) else items
        for position, item in enumerate(value):
            yield places[position] if position < len(places) else rest, item
            if "contains" in part:
                yield part["contains"], item


def resolved(reference: str, root: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return what a reference inside a schema leads to.

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


def _applied(part: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without the keywords that are not applied."""
    if isinstance(part, list):
        return [_applied(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {}
    for word, each in part.items():
        if word in _NAMED and isinstance(each, dict):
            kept[word] = {name: _applied(inner) for name, inner in each.items()}
        elif word in _DATA:
            kept[word] = each
        elif word not in _NOT_APPLIED and not (word == "additionalProperties" and "patternProperties" in part):
            kept[word] = _applied(each)
    return kept


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return value if isinstance(value, dict) else {}
