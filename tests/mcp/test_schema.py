"""A server's schema is applied as JSON Schema says, in bounded time, and never asks the network."""

from __future__ import annotations

import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.mcp.schema import MAX_REFERENCES, BoundedSchema, UnusableSchemaError

PROPERTIES = {
    "type": "object",
    "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}, "n": {"type": "integer", "minimum": 1}},
    "patternProperties": {"^x-": {"type": "number"}},
    "additionalProperties": False,
    "required": ["a"],
}
TYPED = {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^.{1,3}$"}}
NESTED = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "$defs": {"item": {"anyOf": [{"type": "null"}, {"type": "object", "required": ["id"]}]}},
}
VALUES = st.dictionaries(
    st.sampled_from(["a", "n", "x-1", "items", "other"]),
    st.one_of(
        st.sampled_from(["abc", "ABC", ""]),
        st.integers(-2, 2),
        st.lists(st.one_of(st.none(), st.just({"id": 1}), st.just({}))),
    ),
)


@pytest.mark.parametrize("schema", [PROPERTIES, TYPED, NESTED], ids=["properties", "typed", "nested"])
@given(value=VALUES)
def test_it_agrees_with_jsonschema(schema: dict[str, Any], value: dict[str, Any]):
    """What was replaced to bound the work judges as the library itself does."""
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (BoundedSchema(schema).problem(value) is None) == expected


def test_problems_name_the_place():
    """The model is told where and what."""
    problem = BoundedSchema(PROPERTIES).problem({"a": "ABC", "n": 0, "other": 1})
    assert problem is not None
    assert set(problem.split("; ")) == {
        "a: 'ABC' does not match '^[a-z]+$'",
        "n: 0 is less than the minimum of 1",
        "arguments: not known: 'other'",
    }


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {"s0": {"type": "object"}}
    for level in range(1, levels):
        definitions[f"s{level}"] = {"allOf": [{"$ref": f"#/$defs/s{level - 1}"}] * 2}
    return {"type": "object", "$defs": definitions, "$ref": f"#/$defs/s{levels - 1}"}


HOSTILE = {
    "doubling": (_doubling(60), f"more than {MAX_REFERENCES} references"),
    "endless": ({"type": "object", "$ref": "#"}, "RecursionError"),
    "network": ({"type": "object", "$ref": "http://127.0.0.1:9/schema"}, "Unresolvable"),
    "nowhere": ({"type": "object", "$ref": "#/$defs/none"}, "PointerToNowhere"),
}


@pytest.mark.parametrize(("schema", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_schema_ends(schema: dict[str, Any], why: str):
    """References that multiply, run in a circle or leave the document end soon, with a reason."""
    began = time.monotonic()
    with pytest.raises(UnusableSchemaError) as raised:
        BoundedSchema(schema).problem({})
    assert why in str(raised.value)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "propertyNames", "unevaluatedProperties"])
def test_a_hostile_pattern_ends(keyword: str):
    """A regular expression that takes Python for ever takes linear time here."""
    evil, text = "(a+)+$", "a" * 5000 + "!"
    schemas: dict[str, dict[str, Any]] = {
        "pattern": {"properties": {"a": {"pattern": evil}}},
        "patternProperties": {"patternProperties": {evil: {"type": "null"}}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": evil}},
        "unevaluatedProperties": {"patternProperties": {evil: {}}, "unevaluatedProperties": False},
    }
    began = time.monotonic()
    BoundedSchema({"type": "object", **schemas[keyword]}).problem({"a": text, text: 1})
    assert time.monotonic() - began < 5


def test_a_pattern_that_only_python_knows_is_left_to_the_server():
    """What the linear engine cannot read (it looks around) is not checked here, and refuses nothing."""
    schema = BoundedSchema({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}})
    assert schema.problem({"a": "anything"}) is None
