"""The JSON Schemas that are published: `python docs/schemas.py trace` and `… debrief` print them (`make reference`).

What the fields mean is said once, in the strings beneath them in the classes; here those strings are read from the
source. (pydantic could do that on its own, `use_attribute_docstrings`, but then at every import of every event.)
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import GenerateJsonSchema

from playhead.diagnose.debrief_model import Debrief
from playhead.trace.events import EVENT_TYPES
from playhead.trace.format import FORMAT
from playhead.trace.line import Record
from playhead.trace.values import TYPE_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

Schema = dict[str, Any]

_TEXT: Final = {"type": "string"}
_LOSSY: Final = {"const": True}
_OURS: Final = "x-playhead"
"""Stands for a reference to a definition that pydantic does not know, until it is done."""
_VALUE: Final = {"$ref": "#/$defs/Value"}

TAGS: Final[dict[str, tuple[str, Schema]]] = {
    "text": ("Text with lone surrogates, which are U+FFFD here.", {"text": _TEXT, "lossy": _LOSSY}),
    "int": ("An integer of 2^53 or more: decimal, or hexadecimal (0x…) when very long.", {"value": _TEXT}),
    "float": ("`NaN`, `Infinity` or `-Infinity`.", {"value": _TEXT}),
    "bytes": (
        "Bytes: `utf8` when they are text, else each as the character `latin1`.",
        {"utf8": _TEXT, "latin1": _TEXT},
    ),
    "set": ("A set; the items are sorted by their JSON.", {"items": {"type": "array", "items": _VALUE}}),
    "dict": (
        "A dictionary with other keys than strings, or with the key `$type`: [key, value] pairs in order.",
        {"entries": {"type": "array", "items": {"type": "array", "items": _VALUE, "minItems": 2, "maxItems": 2}}},
    ),
    "cycle": ("A container inside itself.", {"lossy": _LOSSY}),
    "too-deep": ("What was nested deeper than 100 levels.", {"depth": {"type": "integer"}, "lossy": _LOSSY}),
    "object": (
        "Any other object, by its class and what `repr` said.",
        {"class": _TEXT, "repr": _TEXT, "lossy": _LOSSY},
    ),
    "blob": (
        "A field of over 256 KiB of JSON, which stands in the file `<run id>.blobs/<sha256>`.",
        {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "bytes": {"type": "integer"}},
    ),
}
"""The objects with a `$type` key: what each stands for, and its other keys."""


def line_schema() -> Schema:
    """Return the schema of a line, in draft 2020-12."""
    definitions = {"Value": _value(), **{f"Tag-{tag}": _tag(tag) for tag in TAGS}}
    for event_type in EVENT_TYPES.values():
        definitions |= _definitions_of(event_type)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:playhead:trace-format:{FORMAT}",
        "title": f"A line of a Playhead trace, format {FORMAT}",
        "description": "The keys stand in the order of `required`, `iteration` and `erased` before `data`, without spaces between "
        "tokens. A reader keeps kinds and fields that it does not know. See trace-format.md.",
        "type": "object",
        "properties": _envelope(),
        "required": ["seq", "ts", "kind", "owner", "data", "h"],
        "additionalProperties": False,
        "allOf": [_case("kind", kind, f"{model.__name__}", "data") for kind, model in EVENT_TYPES.items()],
        "$defs": dict(sorted(definitions.items())),
    }


def debrief_schema() -> Schema:
    """Return the JSON Schema of a debrief as JSON."""
    schema = Debrief.model_json_schema(mode="serialization", schema_generator=_Described)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A Playhead debrief", **schema}


def _envelope() -> Schema:
    docs = attribute_docs(Record)
    number = {"type": "integer", "minimum": 0}
    return {
        "seq": {"description": docs["seq"], **number},
        "ts": {"description": docs["ts"], **number},
        "kind": {"description": "What kind of event this is.", "type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
        "owner": {"description": docs["owner"], **_TEXT},
        "iteration": {"description": "Turn of the owner's loop, from 0; absent outside it.", **number},
        "erased": {"description": "Some of `data` was erased on request; `h` is that of the line before.", **_LOSSY},
        "data": {"description": "The event's own fields. Absent is what is null.", "type": "object"},
        "h": {
            "description": "SHA-256 over the previous line's `h` and this line's bytes before `,\"h\":`.",
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
        },
    }


def _case(key: str, value: str, definition: str, within: str | None = None) -> Schema:
    """Return: when `key` is this, the object, or the property `within` it, is of this definition."""
    reference = {"$ref": f"#/$defs/{definition}"}
    return {
        "if": {"properties": {key: {"const": value}}, "required": [key]},
        "then": {"properties": {within: reference}} if within else reference,
    }


def _value() -> Schema:
    return {
        "description": "Any JSON value. What JSON cannot hold is an object with a `$type` key, see the Tag-… definitions.",
        "if": {"type": "object", "required": [TYPE_TAG]},
        "then": {"allOf": [_case(TYPE_TAG, tag, f"Tag-{tag}") for tag in TAGS]},
        "else": {"items": _VALUE, "additionalProperties": _VALUE},
    }


def _tag(tag: str) -> Schema:
    description, properties = TAGS[tag]
    required = [] if tag == "bytes" else list(properties)
    return {
        "description": description,
        "type": "object",
        "properties": {TYPE_TAG: {"const": tag}, **properties},
        "required": [TYPE_TAG, *required],
    }


def _definitions_of(event_type: type[BaseModel]) -> Schema:
    """Return the definitions of an event and of the values inside it."""
    schema = _with_references(event_type.model_json_schema(schema_generator=_OfEvents))
    definitions = schema.pop("$defs", {})
    schema["properties"].pop("kind")
    schema["properties"] = {name: _or_blob(field) for name, field in schema["properties"].items()}
    return {**definitions, event_type.__name__: schema}


def _or_blob(field: Schema) -> Schema:
    """Return the schema of an event's field with the blob that may stand in its place when it can be large."""
    options = field.get("anyOf", [field])
    if not any(map(_may_be_large, options)):
        return field
    kept = {key: field[key] for key in ("description", "default") if key in field}
    plain = [{key: value for key, value in option.items() if key not in kept} for option in options]
    return kept | {"anyOf": [*plain, {"$ref": "#/$defs/Tag-blob"}]}


def _may_be_large(option: Schema) -> bool:
    if "$ref" in option:
        return bool(option != _VALUE)  # a blob is one of the tags of a value
    return option.get("type") in {"string", "array", "object"} and not {"enum", "const"} & option.keys()


class _Described(GenerateJsonSchema):
    """pydantic's generator without titles, and with our descriptions."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - as pydantic calls it
        return False

    def model_schema(self, schema: Any) -> Schema:  # noqa: ANN401
        model: type[BaseModel] = schema["cls"]
        result = super().model_schema(schema)
        result.pop("title", None)
        for name, field in result.get("properties", {}).items():
            if name in (docs := attribute_docs(model)):
                field["description"] = docs[name]
        return result


class _OfEvents(_Described):
    """The same for events: with our form of any value; absent is what is null."""

    def any_schema(self, schema: Any) -> Schema:  # noqa: ANN401, ARG002
        return {_OURS: "Value"}

    def model_schema(self, schema: Any) -> Schema:  # noqa: ANN401
        result = super().model_schema(schema)
        for field in result.get("properties", {}).values():
            if field.get("default", ...) is None:
                del field["default"]
        return result


def _with_references(schema: Any) -> Any:  # noqa: ANN401 - a schema or any part of it
    if isinstance(schema, list):
        return [_with_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _with_references(value) for key, value in schema.items() if key != _OURS}
    return {**rest, "$ref": f"#/$defs/{schema[_OURS]}"} if _OURS in schema else rest


@cache
def attribute_docs(model: type) -> dict[str, str]:
    """Return the string beneath each attribute of a class and of its bases."""
    docs: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.startswith("playhead."):
            docs |= dict(_strings_beneath(inspect.getsource(each)))
    return docs


def _strings_beneath(source: str) -> Iterator[tuple[str, str]]:
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    for field, beneath in itertools.pairwise(body):
        match field, beneath:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                yield name, " ".join(doc.split())


if __name__ == "__main__":
    made = {"trace": line_schema, "debrief": debrief_schema}[sys.argv[1]]()
    print(json.dumps(made, indent=2, ensure_ascii=False))  # noqa: T201 - that is what it is for
