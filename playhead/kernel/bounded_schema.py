"""JSON schemas, applied in a bounded number of steps: a server's or a recording's schema is somebody else's, and so is a value.

`jsonschema-rs` applies them. The steps that it will take are counted first: `UnusableSchemaError` says when there are too many.
"""

from __future__ import annotations

import json
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
"""Characters of a schema without references that takes few steps for an object of plain values: they are not counted."""
MAX_STEPS: Final = 200_000
"""Parts of a schema that are applied to parts of one value; a schema of a few lines can ask for 2^n."""
MAX_DEPTH: Final = 200
"""Levels of a schema, and of a value in it, once references are followed."""
MAX_BACKTRACKS: Final = 10_000
"""Steps back of a pattern that looks around or back; any other pattern takes linear time."""
SHOWN: Final = 5
"""Faults named at once."""
LONGEST: Final = 500
"""Characters of one fault."""
_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_BY_NAME: Final = ("dependentSchemas", "dependencies")
"""Keywords with schemas for the value itself: plain ones, and some by name."""
_EACH_PART: Final = ("contains", "items", "prefixItems", "additionalItems")
"""Keywords with schemas for items; each is counted for every item."""
_NOT_APPLIED: Final = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
"""Keywords whose steps cannot be counted."""


class UnusableSchemaError(Exception):
    """The schema is none, refers to what is not in it, or takes too many steps."""


class BoundedSchema:
    """A schema that can be asked what is wrong with a value."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Read a schema.

        Raises:
            UnusableSchemaError: it is no JSON schema, refers to what is not in it, or is too large.
        """
        import jsonschema_rs as library  # noqa: PLC0415 - only where a schema is applied

        self.schema = schema
        try:
            written = _written(schema)
            self._is_simple = len(written) <= SIMPLE and '"$ref"' not in written
            own = {word: each for word, each in schema.items() if word != "$id"}  # an address that nobody asks
            self._validator = library.validator_for(
                own,
                offline=True,
                pattern_options=library.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS),
                keywords=dict.fromkeys(("format", *_NOT_APPLIED), _Ignored),
            )
        except Exception as error:  # noqa: BLE001 - whatever it dislikes about a hostile schema
            raise UnusableSchemaError(getattr(error, "message", None) or str(error)) from None

    def fits(self, value: dict[str, JsonValue]) -> bool:
        """Return whether nothing is wrong with the value; raises as `faults`."""
        if not self._is_simple or any(isinstance(each, (dict, list)) for each in value.values()):
            require_affordable(self.schema, value)
        return bool(self._validator.is_valid(value))

    def faults(self, value: JsonValue) -> list[str]:
        """Return what is wrong with the value, at most `SHOWN` faults, each with its place; empty when it fits.

        Raises:
            UnusableSchemaError: applying the schema to this value takes too many steps.
        """
        require_affordable(self.schema, value)
        try:
            found = list(islice(self._validator.iter_errors(value), SHOWN))
        except Exception as error:  # noqa: BLE001 - such as a text that is no UTF-8
            raise UnusableSchemaError(f"{type(error).__name__}: {error}") from None
        told = (f"{'.'.join(map(str, each.instance_path)) or 'arguments'}: {each.message[:LONGEST]}" for each in found)
        return list(dict.fromkeys(told))


class _Ignored:
    """A keyword that is not applied, or the format of a text: only that of a day can be told in one way."""

    def __init__(self, _: JsonValue, given: JsonValue, *__: Any) -> None:  # noqa: ANN401 - as the library calls it
        self._is_day = given == "date"

    def validate(self, value: JsonValue) -> None:
        """Refuse what is no day."""
        if self._is_day and isinstance(value, str) and str(date.fromisoformat(value)) != value:
            raise ValueError(f"{value!r} is not a day such as 2025-01-31")


def _written(schema: dict[str, Any]) -> str:
    written = json.dumps(schema)
    if len(written) > MAX_CHARACTERS:
        raise UnusableSchemaError(f"it has more than {MAX_CHARACTERS} characters")
    return written


def require_affordable(schema: dict[str, Any], value: JsonValue) -> int:
    """Return how many steps applying a schema to a value takes at most, whoever applies it.

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
    """Yield the schemas that are applied with this one, each with the part of the value that it is for."""
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
    """Return the schemas under these keywords, each of which may have one or a list."""
    found = [part[word] for word in words if word in part]
    return [each for inner in found for each in (inner if isinstance(inner, list) else [inner])]


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


def as_dict(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return an object, or an empty one: a part of a schema may be anything."""
    return value if isinstance(value, dict) else {}
