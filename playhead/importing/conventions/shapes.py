"""Shapes that several conventions have in common: tokens, schemas of tools, why a model stopped, what a tool returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playhead.importing.values import NOTHING, first_text, integer_of, object_of, parsed_json, text_of
from playhead.trace.types import ToolSpec
from playhead.trace.usage import LARGEST_COUNT, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.importing.attributes import Attributes

_SCHEMA: Final = ("parameters", "input_schema", "inputSchema", "json_schema")
_KEYWORDS: Final = ("type", "properties", "$ref", "anyOf", "oneOf", "allOf")
_NAMES: Final = ("finish_reason", "stop_reason", "finishReason")
_WITHIN: Final = ("generation_info", "response_metadata", "incomplete_details", "message", "kwargs", "data")
_LISTS: Final = ("choices", "generations", "candidates")
_MOST_DEEP: Final = 6


def usage_of(
    attributes: Attributes, names: Mapping[str, tuple[str, ...]], total: str
) -> tuple[Usage | None, tuple[str, ...]]:
    """Return the tokens, None when nothing can be read of them, and the attributes that cannot be.

    Args:
        attributes: those of the span.
        names: the attributes of each field of `Usage`, the first that holds a number counts.
        total: the attribute of the sum, which says too little when it stands alone.
    """
    given = {name: attributes.value(name) for field in names.values() for name in field}
    given = {name: value for name, value in given.items() if value is not NOTHING and value is not None}
    counts = {name: count for name, value in given.items() if (count := tokens_of(value)) is not None}
    unread = [name for name in given if name not in counts]
    if not given and attributes.value(total) is not NOTHING:
        unread.append(total)
    if not counts:
        return None, tuple(unread)
    fields = {field: next((n for name in each if (n := counts.get(name))), 0) for field, each in names.items()}
    known = {field for field, each in names.items() if counts.keys() & set(each)}
    partly = not {"input_tokens", "output_tokens"} <= known or any(
        given.keys() & set(names[field]) for field in names.keys() - known
    )
    return Usage.model_validate({**fields, "unknown": 1 if partly else None}), tuple(unread)


def tokens_of(value: Any) -> int | None:  # noqa: ANN401 - any JSON value
    """Return a number of tokens, also of digits in a text; None when it can be none: negative, broken, too large."""
    if isinstance(value, float) and not value.is_integer():
        return None
    count = integer_of(value)
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None


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


def finish_reason_of(answered: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return it of an answer of OpenAI, Anthropic, Gemini or LangChain, or of the first one of several."""
    waiting, depth = [answered], 0
    while waiting and depth < _MOST_DEEP:
        waiting = [_first(each) for each in waiting]
        objects = [each for each in waiting if isinstance(each, dict)]
        names = (*_NAMES, "reason") if depth else _NAMES
        found = first_text(each.get(name) for each in objects for name in names)
        if found is not None:
            return found
        waiting = [each[name] for each in objects for name in (*_WITHIN, *_LISTS) if name in each]
        depth += 1
    return None


def _first(value: Any) -> Any:  # noqa: ANN401
    """Return the first item of a list, also of one that is in it: LangChain has a list for each prompt of a batch."""
    for _ in range(2):
        value = value[0] if isinstance(value, list) and value else value
    return value


def unwrapped_result(value: Any) -> tuple[Any, str | None]:  # noqa: ANN401 - any JSON value
    """Return what a tool returned, and the id of the call that it answers, where the wrapping says it.

    LangChain writes the message that its result becomes: `{"type": "tool", "data": {"content": …, "tool_call_id": …}}`.
    """
    if not isinstance(value, dict):
        return value, None
    inner = value.get("data") if value.get("type") == "tool" else value.get("kwargs") if "lc" in value else None
    inner = value if inner is None and value.get("type") == "tool" and "tool_call_id" in value else inner
    if not isinstance(inner, dict) or "content" not in inner:
        return value, None
    return inner["content"], text_of(inner.get("tool_call_id"))
