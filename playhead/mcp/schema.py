"""A server's JSON schema, applied to values with bounded work: both are somebody else's.

jsonschema does the work. What could make it work for ever is replaced: regular expressions run on Rust's engine, whose time
is linear (one that it cannot read is left to the server, which checks again), references are counted, and none leaves the
document.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

from playhead.mcp.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.trace.values import JsonValue

MAX_REFERENCES: Final = 10_000
"""References followed for one value; a schema of a few lines can ask for 2^n."""
SHOWN: Final = 5
"""Problems named at once."""


class UnusableSchemaError(Exception):
    """The schema is none, or cannot be applied."""


class BoundedSchema:
    """A schema that can be asked what is wrong with a value."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Read the schema.

        Raises:
            UnusableSchemaError: it is no JSON schema.
        """
        self._lock = threading.Lock()
        self._references = 0
        try:
            kind = validator_for(schema, default=Draft202012Validator)
            kind.check_schema(schema)
            bounded: Any = extend(kind, self._replaced(kind.VALIDATORS))  # type: ignore[no-untyped-call]
            self._validator = bounded(schema, registry=Registry())
        except SchemaError as error:
            raise UnusableSchemaError(one_line(error.message)) from None
        except Exception as error:  # noqa: BLE001 - a hostile schema, e.g. one that is nested too deep
            raise UnusableSchemaError(f"{type(error).__name__}: {one_line(str(error))}") from None

    def problem(self, value: JsonValue) -> str | None:
        """Return what is wrong with the value, in words for a model; None when it fits.

        Raises:
            UnusableSchemaError: the schema refers to what is not there, or to itself without end.
        """
        with self._lock:
            self._references = 0
            try:
                found = list(islice(self._validator.iter_errors(value), SHOWN))
            except UnusableSchemaError:
                raise
            except (Unresolvable, RecursionError) as error:
                raise UnusableSchemaError(f"{type(error).__name__}: {one_line(str(error))}") from None
        return "; ".join(map(_told, found)) or None

    def _replaced(self, keywords: Any) -> dict[str, Any]:  # noqa: ANN401 - jsonschema's own table
        counted = {name: self._counted(keywords[name]) for name in ("$ref", "$dynamicRef") if name in keywords}
        return {
            **counted,
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "unevaluatedProperties": _unchecked,  # it would run the patterns on Python's engine
        }

    def _counted(self, keyword: Callable[..., Iterator[ValidationError]]) -> Callable[..., Iterator[ValidationError]]:
        def follow(validator: Any, ref: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise UnusableSchemaError(f"it follows more than {MAX_REFERENCES} references")
            yield from keyword(validator, ref, instance, schema)

        return follow


def _told(error: ValidationError) -> str:
    place = ".".join(map(str, error.absolute_path)) or "arguments"
    return f"{one_line(place, 100)}: {one_line(error.message)}"


@lru_cache(maxsize=512)
def _linear(pattern: str) -> SchemaValidator | None:
    """Return the pattern on Rust's engine, or None when that cannot read it (it looks around, or is too large)."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except Exception:  # noqa: BLE001 - whatever the engine dislikes about a hostile pattern
        return None


def _matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found; True when that cannot be told here."""
    compiled = _linear(pattern)
    return compiled is None or compiled.isinstance_python(text)


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, schema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if not validator.is_type(instance, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [name for name in instance if name not in known and not any(_matches(each, name) for each in patterns)]
    if validator.is_type(allowed, "object"):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        yield ValidationError(f"not known: {', '.join(map(repr, extra[:SHOWN]))}")


def _unchecked(*_: object) -> Iterator[ValidationError]:
    return iter(())
