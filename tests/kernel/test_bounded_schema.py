"""JSON Schema is applied as the standard says, in a bounded number of steps, without the network."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.kernel.schemas import BoundedSchema, UnusableSchemaError

PROPERTIES = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 3}, "n": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
    "required": ["a"],
}
TYPED = {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"maxLength": 3}}
NESTED = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "$defs": {"item": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["id"]}]}},
}
RECURSIVE = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#"}}, "id": {"enum": [1, "one"]}},
    "not": {"required": ["other"]},
    "if": {"required": ["n"]},
    "then": {"required": ["a"]},
}
VALUES = st.dictionaries(
    st.sampled_from(["a", "n", "x-1", "items", "other"]),
    st.one_of(
        st.sampled_from(["abc", "ABC", ""]),
        st.integers(-2, 2),
        st.lists(st.one_of(st.none(), st.just({"id": 1}), st.just({}), st.just({"id": 2, "n": 1}))),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema", [PROPERTIES, TYPED, NESTED, RECURSIVE], ids=["properties", "typed", "nested", "recursive"]
)
@settings(max_examples=40)
@given(value=VALUES)
def test_it_agrees_with_jsonschema(schema: dict[str, Any], value: dict[str, Any]):
    """A value fits exactly when Python's reference library says so."""
    assert (not BoundedSchema(schema).faults(value)) == jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "$ref": "http://127.0.0.1:9/schema"}, "127.0.0.1:9/schema' is not present"),
        ({"type": "object", "$ref": "#/$defs/none"}, "does not exist"),
        ({"type": "object", "properties": {"a": {"enum": list(range(60_000))}}}, "more than 200000 characters"),
    ],
)
def test_unusable_schemas(schema: dict[str, Any], why: str):
    """An invalid or too large schema, or one with a reference outside of itself, is refused; no address is fetched."""
    with pytest.raises(UnusableSchemaError, match=why):
        BoundedSchema(schema)


def doubling(levels: int, word: str = "allOf", width: int = 2) -> dict[str, Any]:
    """Return a schema of a few lines that asks for `width` to the power of `levels` checks."""
    definitions: dict[str, Any] = {"s0": {"type": "object"}}
    for level in range(1, levels):
        definitions[f"s{level}"] = {word: [{"$ref": f"#/$defs/s{level - 1}"}] * width}
    return {"type": "object", "$defs": definitions, "$ref": f"#/$defs/s{levels - 1}"}


def nested(levels: int) -> dict[str, Any]:
    """Return objects inside each other."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


TWICE = {
    "$defs": {"n": {"anyOf": [{"properties": {"in": {"$ref": "#/$defs/n"}}, "required": [name]} for name in "ab"]}}
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(60), {}),
        ({**TWICE, "$ref": "#/$defs/n"}, nested(60)),
    ],
)
def test_a_value_that_would_take_too_many_steps_is_refused(schema: dict[str, Any], value: Any):
    """A schema and value that take too many steps are refused."""
    with pytest.raises(UnusableSchemaError, match="takes more than 200000 steps"):
        BoundedSchema(schema).faults(value)


def test_addresses_of_schemas():
    """The `$id` of a whole schema is never fetched; a part with its own `$id` is refused."""
    integer = {"$ref": "#/$defs/n"}
    for address in ("n", "http://127.0.0.1:9/n"):
        schema = {"$id": address, "properties": {"a": integer}, "$defs": {"n": {"type": "integer"}}}
        assert BoundedSchema(schema).faults({"a": "x"}) == ['a: "x" is not of type "integer"']
    inner = BoundedSchema({"properties": {"a": {"$id": "http://127.0.0.1:9/n", "type": "integer"}}})
    with pytest.raises(UnusableSchemaError, match="an address of its own"):
        inner.faults({"a": 1})
