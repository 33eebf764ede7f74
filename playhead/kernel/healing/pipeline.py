"""The stages in their order: name, shape, parameters, types; then the whole call has to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.kernel.healing.names import meant_tool
from playhead.kernel.healing.parameters import renamed
from playhead.kernel.healing.schema import Schema, fits, is_closed, properties, required
from playhead.kernel.healing.shapes import shaped, without_empty
from playhead.kernel.healing.values import Types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

NAME, SHAPE, PARAMETERS, TYPES, PATH = "name", "shape", "parameters", "types", "path"


@dataclass(frozen=True, slots=True)
class Mended:
    """One thing that was put right."""

    stage: str
    """`name`, `shape`, `parameters`, `types` or `path`."""
    before: JsonValue
    """What stood there."""
    after: JsonValue
    """What it was read as."""


@dataclass(frozen=True, slots=True)
class Healed:
    """A call, read."""

    name: str
    """The tool's name; as it was written when the call could not be healed."""
    arguments: dict[str, JsonValue] | None
    """The arguments; None when the call could not be healed."""
    mended: tuple[Mended, ...] = ()
    """What was put right, in order."""
    why: str = ""
    """Why it could not be healed, for the model."""


def is_healthy(spec: ToolSpec, arguments: object) -> bool:
    """Return whether a call of a known tool fits as it is."""
    return isinstance(arguments, dict) and fits(spec.parameters, arguments, spec.parameters)


def heal(name: str, arguments: object, specs: Mapping[str, ToolSpec]) -> Healed:
    """Return the call as it can be read in one way only; never raises.

    Args:
        name: the tool's name, as it was written.
        arguments: the arguments as they were written: an object, or any other JSON value, or text that may be JSON.
        specs: the tools that may be called, by name.
    """
    read: dict[str, Healed] = {}

    def takes(tool: str) -> bool:
        if tool not in read:
            read[tool] = _arguments_for(specs[tool], arguments)
        return read[tool].arguments is not None

    def speaks_for(tool: str) -> bool:
        return isinstance(arguments, dict) and len(arguments) > 1 and is_healthy(specs[tool], arguments)

    meant = meant_tool(name, specs, takes, speaks_for)
    if meant.name is None:
        return Healed(name, None, why=meant.why)
    takes(meant.name)
    found = read[meant.name]
    if found.arguments is None:
        return Healed(name, None, why=found.why)
    renaming = () if meant.name == name else (Mended(NAME, name, meant.name),)
    return Healed(meant.name, found.arguments, (*renaming, *found.mended))


def _arguments_for(spec: ToolSpec, written: object) -> Healed:
    """Return the arguments as this tool takes them; a field of an inner object may also be a parameter of that name."""
    if isinstance(written, dict) and is_healthy(spec, written):
        return Healed(spec.name, written)
    gathered = _read_arguments(spec, written, gather=True)
    if gathered.arguments is not None:
        return gathered
    plain = _read_arguments(spec, written, gather=False)
    return gathered if plain.arguments is None else plain


def _read_arguments(spec: ToolSpec, written: object, *, gather: bool) -> Healed:
    schema = spec.parameters
    types, mended = Types(schema, spec.read_only), list[Mended]()

    def note(stage: str, before: Any, after: Any) -> Any:  # noqa: ANN401 - any JSON value
        if after is not before and repr(after) != repr(before):  # `0 == False`
            mended.append(Mended(stage, before, after))
        return after

    value = note(SHAPE, written, shaped(spec, written, gather=gather))
    if not isinstance(value, dict):
        return Healed(spec.name, None, why="its arguments are no JSON object that can be read in one way only")
    naming = renamed(schema, value, types)
    value = note(PARAMETERS, value, naming.value)
    value = note(TYPES, value, types.object(schema, without_empty(schema, value)))
    if fits(schema, value, schema) and not _lost(schema, value):
        return Healed(spec.name, value, tuple(mended))
    return Healed(spec.name, None, why=naming.why or _misfit(schema, value, types))


def _lost(schema: Schema, value: dict[str, Any]) -> bool:
    """Return whether a name is left that an open schema would swallow."""
    return not is_closed(schema) and bool(properties(schema)) and any(name not in properties(schema) for name in value)


def _misfit(schema: Schema, value: dict[str, Any], types: Types) -> str:
    """Return which argument has no reading, or is missing."""
    missing = [name for name in required(schema) if name not in value]
    if missing:
        return f"{missing[0]} is missing"
    known = properties(schema)
    unread = [name for name in value if name in known and not fits(known[name], value[name], types.root)]
    return (
        f"{unread[0]} has no value, or more than one, that it can be read as" if unread else "they do not fit together"
    )
