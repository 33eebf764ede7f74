"""Whatever words of JSON Schema a tool uses: a call that fits stays as it is, and simple damage elsewhere in it is put right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal, is_healthy
from playhead.trace.types import ToolSpec

TEXT: dict[str, Any] = {"type": "string"}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
CARD = {"type": "object", "properties": {"card": TEXT}, "required": ["card"], "additionalProperties": False}
CASH = {
    "type": "object",
    "properties": {"cash": {"type": "number"}},
    "required": ["cash"],
    "additionalProperties": False,
}
DEFS = {"Point": POINT, "Tree": {"type": "object", "properties": {"to": {"$ref": "#/$defs/Tree"}, "at": TEXT}}}
FEATURES: dict[str, tuple[Any, Any]] = {
    "date-time without a zone": ({**TEXT, "format": "date-time"}, "2026-05-12T09:40:00"),
    "date-time with a zone": ({**TEXT, "format": "date-time"}, "2026-05-12T09:40:00+02:00"),
    "date-time in fractions": ({**TEXT, "format": "date-time"}, "2026-05-12T09:40:00.250Z"),
    "date": ({**TEXT, "format": "date"}, "2026-02-28"),
    "time": ({**TEXT, "format": "time"}, "09:40:00"),
    "duration": ({**TEXT, "format": "duration"}, "PT15M"),
    "email": ({**TEXT, "format": "email"}, "k.weiss@example.org"),
    "uri": ({**TEXT, "format": "uri"}, "https://example.org/a?b=c#d"),
    "uuid": ({**TEXT, "format": "uuid"}, "5f0c2a52-2d1e-4c9f-9a39-0b6f7e7b8c11"),
    "ipv4": ({**TEXT, "format": "ipv4"}, "10.0.0.7"),
    "hostname": ({**TEXT, "format": "hostname"}, "db-1.example.org"),
    "regex": ({**TEXT, "format": "regex"}, r"^\d+$"),
    "pattern": ({**TEXT, "pattern": "^[A-Z]{2}-[0-9]{4}$"}, "AB-1234"),
    "minLength and maxLength": ({**TEXT, "minLength": 2, "maxLength": 5}, "abcde"),
    "minimum and maximum": ({"type": "integer", "minimum": 1, "maximum": 10}, 10),
    "exclusiveMinimum": ({"type": "number", "exclusiveMinimum": 0}, 0.5),
    "exclusiveMaximum": ({"type": "number", "exclusiveMaximum": 1}, 0.5),
    "multipleOf": ({"type": "integer", "multipleOf": 5}, 25),
    "a float for a whole number": ({"type": "number"}, 3),
    "const": ({"const": "v2"}, "v2"),
    "const with a type": ({"type": "string", "const": "v2"}, "v2"),
    "enum of numbers": ({"type": "integer", "enum": [1, 2, 4]}, 4),
    "enum of mixed values": ({"enum": ["auto", 0, None]}, None),
    "enum without a type": ({"enum": ["auto", "off"]}, "off"),
    "a reference": ({"$ref": "#/$defs/Point"}, {"x": 1, "y": 2.5}),
    "a reference with a default": ({"$ref": "#/$defs/Point", "default": None}, {"x": 1, "y": 2.5}),
    "a reference within allOf": ({"allOf": [{"$ref": "#/$defs/Point"}], "description": "Where."}, {"x": 1, "y": 2.5}),
    "a reference to itself": ({"$ref": "#/$defs/Tree"}, {"to": {"to": {"at": "leaf"}}}),
    "a list of references": ({"type": "array", "items": {"$ref": "#/$defs/Point"}}, [{"x": 1, "y": 2}]),
    "anyOf with null, a text": ({"anyOf": [TEXT, {"type": "null"}], "default": None}, "some"),
    "anyOf with null, nothing": ({"anyOf": [TEXT, {"type": "null"}], "default": None}, None),
    "anyOf of a reference and null": ({"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}, {"x": 1, "y": 2}),
    "a list of types": ({"type": ["integer", "null"]}, None),
    "anyOf of text and number": ({"anyOf": [TEXT, {"type": "integer"}]}, 7),
    "anyOf of text and list": ({"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, ["a", "b"]),
    "oneOf of objects": ({"oneOf": [CARD, CASH]}, {"cash": 12.5}),
    "oneOf with a discriminator": (
        {
            "oneOf": [
                {"type": "object", "properties": {"by": {"const": "card"}, "no": TEXT}, "required": ["by", "no"]},
                {"type": "object", "properties": {"by": {"const": "cash"}}, "required": ["by"]},
            ],
            "discriminator": {"propertyName": "by"},
        },
        {"by": "card", "no": "4111"},
    ),
    "allOf": ({"allOf": [{"type": "object", "properties": {"a": TEXT}}, {"required": ["a"]}]}, {"a": "b"}),
    "any value": ({}, {"a": [1, None]}),
    "true": (True, [1]),
    "an object of any fields": ({"type": "object"}, {"a": 1}),
    "an object of texts": ({"type": "object", "additionalProperties": TEXT}, {"Accept": "text/html"}),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False},
        {"x-trace": "on"},
    ),
    "an object within an object": (
        {"type": "object", "properties": {"at": POINT, "by": TEXT}, "required": ["at"], "additionalProperties": False},
        {"at": {"x": 1, "y": 2}},
    ),
    "a tuple": ({"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "items": False}, ["a", 1]),
    "a tuple with open end": ({"type": "array", "prefixItems": [TEXT, {"type": "integer"}]}, ["a", 1]),
    "a tuple of old drafts": ({"type": "array", "items": [TEXT, {"type": "integer"}]}, ["a", 1]),
    "minItems and uniqueItems": ({"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}, ["a", "b"]),
    "a list of lists": ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, [[1, 2], [3]]),
    "a list of enums": ({"type": "array", "items": {"type": "string", "enum": ["sms", "email"]}}, ["sms"]),
    "a boolean": ({"type": "boolean", "default": True}, False),
    "examples and title": ({**TEXT, "title": "Feature", "examples": ["one"], "deprecated": False}, "two"),
    "nullable of OpenAPI": ({**TEXT, "nullable": True}, "two"),
    "a text with all signs": (TEXT, 'a "b" {c} [d] <e> it\'s, f: g\\h'),
}


def _tool(own: Any, *, read_only: bool, open_: bool) -> ToolSpec:
    known = {
        "record_id": TEXT,
        "level": {"type": "string", "enum": ["low", "high_risk"]},
        "feature": own,
        "retries": {"type": "integer", "default": 2},
        "notes": {"anyOf": [TEXT, {"type": "null"}], "default": None},
    }
    schema = {"type": "object", "properties": known, "required": ["record_id", "level", "feature"], "$defs": DEFS}
    return ToolSpec(
        name="file_record",
        description="File a record.",
        parameters=schema if open_ else {**schema, "additionalProperties": False},
        read_only=read_only,
    )


def _damaged(call: dict[str, Any], *, open_: bool) -> dict[str, Any]:
    """Return the same arguments with simple damage, each with one reading only."""
    text = json.dumps(call)
    return {
        "as it is": call,
        "enum case": {**call, "level": "HIGH_RISK"},
        "enum separator": {**call, "level": "high-risk"},
        "number for a text": {**call, "record_id": 8812},
        "text for a number": {**call, "retries": "3"},
        "misspelt parameter": {("recrod_id" if key == "record_id" else key): item for key, item in call.items()},
        "case of a parameter": {("LEVEL" if key == "level" else key): item for key, item in call.items()},
        "camel case": {("recordId" if key == "record_id" else key): item for key, item in call.items()},
        "wrapped": {"arguments": call},
        "wrapped in its name": {"name": "file_record", "parameters": call},
        "values alone": {key: {"value": item} for key, item in call.items()},
        "stringified": text,
        "fenced": f"```json\n{text}\n```",
        "trailing comma": f"{text[:-1]},}}",
        "raw newline": text.replace("first\\nsecond", "first\nsecond"),
        "unclosed": text[:-1],
        "in a list": [call],
        "null beside": {**call, "retries": None},
        **({} if open_ else {"thought beside": {**call, "thought": "This files it."}}),  # an open schema may take it
    }


@pytest.mark.parametrize("open_", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("read_only", [False, True], ids=["changes", "looks"])
def test_simple_damage_is_put_right(*, read_only: bool, open_: bool):
    """A healthy call with such a parameter fits; damaged elsewhere it is read as itself. For each feature of schemas."""
    wrong = {}
    for feature, (own, value) in FEATURES.items():
        spec = _tool(own, read_only=read_only, open_=open_)
        call = {"record_id": "8812", "level": "high_risk", "feature": value, "retries": 3, "notes": "first\nsecond"}
        assert is_healthy(spec, call), feature
        bare = {key: item for key, item in call.items() if key != "retries"}
        for damage, written in _damaged(call, open_=open_).items():
            healed = heal("file_record", written, {"file_record": spec}).arguments
            if healed != (bare if damage == "null beside" else call):
                wrong[feature, damage] = healed
    assert wrong == {}


def test_calls_in_text():
    """The same call in text is found and read as itself, for each feature of schemas."""
    wrong = {}
    for feature, (own, value) in FEATURES.items():
        specs = {"file_record": _tool(own, read_only=False, open_=False)}
        call = {"record_id": "8812", "level": "high_risk", "feature": value}
        made = [
            [heal(each.name or "", each.arguments, specs).arguments for each in read_calls(text, specs)[0]]
            for text in _texts(call)
        ]
        if made != [[call]] * len(made):
            wrong[feature] = made
    assert wrong == {}


def _texts(call: dict[str, Any]) -> list[str]:
    written = json.dumps({"name": "file_record", "arguments": call})
    return [
        written,
        f"<tool_call>\n{written}\n</tool_call>",
        f"```json\n{written}\n```",
        f"[TOOL_CALLS]file_record[ARGS]{json.dumps(call)}",
        written.replace("true", "True").replace("null", "None"),
    ]
