"""From what a server lists to what an agent offers: names, descriptions and schemas that a provider takes."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from playhead.errors import ToolDefinitionError, nearest
from playhead.kernel.bounded_schema import BoundedSchema, UnusableSchemaError
from playhead.mcp.plain import cleaned, one_line
from playhead.trace.types import ToolSpec
from playhead.trace.values import MAX_DEPTH, to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import mcp_types

    from playhead.mcp.choices import Choices
    from playhead.trace.values import JsonValue

log = logging.getLogger("playhead")

MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 16_000
"""Characters of a description that a model is shown; servers are known that write whole manuals."""
MAX_TOOLS: Final = 1_000
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
_TEXTS: Final = ("description", "title", "$comment")
"""Where a schema speaks to the reader. All other text in it is data, and stays as it is."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool of a server, as an agent offers it."""

    listed: str
    """The server's name for it."""
    spec: ToolSpec
    arguments: BoundedSchema
    output: BoundedSchema | None
    """What its structured results promise to be."""


def define_all(server: str, listed: Sequence[mcp_types.Tool], choices: Choices) -> list[Definition]:
    """Return the tools of a server that the user chose.

    Raises:
        ToolDefinitionError: a name is unknown, or a tool cannot be offered.
    """
    known = {each.name for each in listed}
    for what in ("names", "read_only", "requires_approval", "untrusted"):
        _require_known(server, what, getattr(choices, what), known)
    chosen = [each for each in listed if choices.names is None or each.name in choices.names]
    return [_define(server, each, choices) for each in chosen]


def problem_of(schema: BoundedSchema, value: JsonValue) -> str | None:
    """Return what is wrong with a value, in words for a model; None when it fits the schema."""
    try:
        return "; ".join(map(one_line, schema.faults(value))) or None
    except UnusableSchemaError as error:
        return f"the schema cannot be applied: {one_line(str(error))}"


def _require_known(server: str, what: str, names: Collection[str] | bool | None, known: Collection[str]) -> None:  # noqa: FBT001
    for name in () if names is None or isinstance(names, bool) else names:
        if name not in known:
            near = nearest(name, map(one_line, known))
            raise ToolDefinitionError(f"{what}: the MCP server {server} has no tool {name!r}.{near}")


def _define(server: str, tool: mcp_types.Tool, choices: Choices) -> Definition:
    name = tool_name(f"{choices.prefix}{tool.name}")
    if name != f"{choices.prefix}{tool.name}":
        log.warning("%r of the MCP server %s is no tool name; it is offered as %s", one_line(tool.name), server, name)
    try:
        arguments = BoundedSchema(_object(tool.input_schema))
        output = None if tool.output_schema is None else BoundedSchema(tool.output_schema)
        spec = ToolSpec(
            name=name,
            description=cleaned(tool.description or tool.title or "", MAX_DESCRIPTION),
            parameters=_readable(_object(tool.input_schema)),
            read_only=_is_read_only(tool, choices),
            timeout_s=choices.timeout_s,
            requires_approval=_holds(choices.requires_approval, tool.name),
            untrusted=_holds(choices.untrusted, tool.name),
        )
    except (UnusableSchemaError, ValidationError) as error:
        why = one_line(str(error))
        raise ToolDefinitionError(
            f"the tool {one_line(tool.name)!r} of the MCP server {server} has a schema that cannot be used: {why}. "
            "Leave it out with names=[…]"
        ) from None
    return Definition(tool.name, spec, arguments, output)


def _is_read_only(tool: mcp_types.Tool, choices: Choices) -> bool:
    hinted = choices.trust_annotations and tool.annotations is not None and tool.annotations.read_only_hint is True
    return hinted or _holds(choices.read_only, tool.name)


def _holds(names: Collection[str] | bool, name: str) -> bool:  # noqa: FBT001
    return names if isinstance(names, bool) else name in names


def tool_name(listed: str) -> str:
    """Return the name under which a tool is offered: providers take letters, digits, `_` and `-`, at most 64."""
    name = _FOREIGN.sub("_", listed) or "tool"
    if name[0] in "0123456789-":
        name = f"_{name}"
    if len(name) > MAX_NAME:  # two long names may differ at their ends only
        name = f"{name[: MAX_NAME - 9]}_{hashlib.sha256(listed.encode(errors='replace')).hexdigest()[:8]}"
    return name


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise UnusableSchemaError(f"arguments are an object, and this is of the type {one_line(repr(schema['type']))}")
    return {"properties": {}, **schema, "type": "object"}


def _readable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as models and traces get it, its texts cleaned."""
    kept = to_json(schema)
    if kept != schema:
        raise UnusableSchemaError(
            f"it is nested deeper than {MAX_DEPTH} levels, or holds numbers that no JSON reader keeps"
        )
    return _cleaned(schema)  # type: ignore[no-any-return]


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - JSON, of a depth that has been checked
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: cleaned(each, MAX_DESCRIPTION) if name in _TEXTS and isinstance(each, str) else _cleaned(each)
        for name, each in value.items()
    }
