"""What a model is sent of a tool's schema, where its profile asks for less than all of it. Calls are checked against all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playhead.trace.guidance import SchemaDetail
    from playhead.trace.types import ToolSpec

LONGEST: Final = 120
"""Characters that are left of a tool's description."""
DEEPEST: Final = 20
"""Levels of a schema; what is deeper is left open."""
_SENTENCE: Final = re.compile(r"[.!?](?=\s)|\n")
_WORDS: Final = frozenset({"description", "title", "examples", "$comment"})
"""Keywords of JSON Schema that only explain."""
_NAMED: Final = frozenset({"properties", "$defs", "definitions", "patternProperties"})
"""Keywords whose values are schemas by name, so that a property may be called `title`."""
_DATA: Final = frozenset({"enum", "const", "default", "required"})
"""Keywords whose values are no schemas."""


def described(spec: ToolSpec, detail: SchemaDetail) -> ToolSpec:
    """Return a tool as the model is to see it.

    `names-and-types`: the first sentence of its description, and its parameters without descriptions. `names-only`: that
    sentence and the names of its parameters, in an open schema. The kernel's own tools stay as they are.
    """
    if detail == "full" or spec.kind == "meta":
        return spec
    words = first_sentence(spec.description)
    if detail == "names-and-types":
        return spec.model_copy(update={"description": words, "parameters": _bare(spec.parameters, DEEPEST)})
    named = spec.parameters.get("properties")
    required = spec.parameters.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in named or ()]
    told = f"Arguments: {', '.join(names)}." if names else ""
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return spec.model_copy(update={"description": f"{words} {told}".strip(), "parameters": schema})


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, on one line, cut where it is too long."""
    text = text.strip()[: 4 * LONGEST]
    end = _SENTENCE.search(text)
    line = " ".join((text if end is None else text[: end.end()]).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _bare(schema: Any, depth: int) -> Any:  # noqa: ANN401 - JSON Schema
    """Return a schema without what only explains it."""
    if isinstance(schema, list):
        return [_bare(each, depth) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if depth == 0:
        return {}
    kept = {name: value for name, value in schema.items() if name not in _WORDS}
    return {name: _part(name, value, depth - 1) for name, value in kept.items()}


def _part(keyword: str, value: Any, depth: int) -> Any:  # noqa: ANN401 - JSON Schema
    if keyword in _DATA:
        return value
    if keyword in _NAMED and isinstance(value, dict):
        return {name: _bare(each, depth) for name, each in value.items()}
    return _bare(value, depth)
