"""Schemas of tools, in the shapes that providers and frameworks write."""

from __future__ import annotations

from typing import Any, Final

from playhead.importing.values import NOTHING, object_of, parsed_json, text_of
from playhead.trace.types import ToolSpec

_SCHEMA: Final = ("parameters", "input_schema", "inputSchema", "json_schema")
_KEYWORDS: Final = ("type", "properties", "$ref", "anyOf", "oneOf", "allOf")


def spec_of(value: Any, name: str | None = None, description: str | None = None) -> ToolSpec | None:  # noqa: ANN401 - any JSON value
    """Return a tool: of OpenAI's or Anthropic's definition, or of a bare schema whose name stands beside it."""
    whole = object_of(value)
    inner = object_of(whole.get("function")) or whole
    named = text_of(inner.get("name")) or name
    if named is None:
        return None
    schema = next(
        (inner[key] for key in _SCHEMA if isinstance(inner.get(key), dict)), inner if is_schema(inner) else None
    )
    fields: dict[str, Any] = {} if schema is None else {"parameters": schema}
    return ToolSpec(name=named, description=text_of(inner.get("description")) or description or "", **fields)


def is_schema(value: Any) -> bool:  # noqa: ANN401
    """Tell whether an object is a JSON Schema of arguments, and not the arguments themselves."""
    if not isinstance(value, dict) or not any(key in value for key in _KEYWORDS):
        return False
    return value.get("type", "object") == "object" and isinstance(value.get("properties", {}), dict)


def schema_of(value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Return a JSON Schema of arguments; one that has only the properties, as smolagents writes them, is completed."""
    schema = parsed_json(value) if isinstance(value, str) else value
    if schema is NOTHING or not isinstance(schema, dict):
        return None
    if is_schema(schema):
        return schema
    if schema and all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in schema.values()):
        properties = {
            name: {key: each[key] for key in each if (key, each[key]) != ("type", "any")}
            for name, each in schema.items()
        }
        return {"type": "object", "properties": properties}
    return None
