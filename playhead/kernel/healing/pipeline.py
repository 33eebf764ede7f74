"""The stages in their order: name, shape, parameters, types; then the whole call has to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.json_reading import parsed
from playhead.kernel.healing.names import meant_tool
from playhead.kernel.healing.parameters import renamed
from playhead.kernel.healing.schema import Schema, fits, is_closed, properties, required
from playhead.kernel.healing.shapes import shaped, with_defaults, without_empty
from playhead.kernel.healing.values import Types
from playhead.kernel.healing.words import folded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.calls_in_text.found import Written
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

CALLERS: Final = frozenset(
    ("multitooluseparallel", "multitooluse", "parallel", "toolcall", "functioncall", "calltool", "callfunction", "usetool", "tooluse",
     "invoketool", "runtool", "executetool", "invoke", "toolscall", "usemcptool")
)  # fmt: skip
"""Names, folded, of what is no tool and only makes a call."""
SEVERAL: Final = 2
"""Parameters of a tool that say together which tool is meant."""
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
    if name not in specs and (within := _call_within(name, arguments, specs)) is not None:
        found = heal(*within, specs)
        if found.arguments is not None:
            before = {"name": name, "arguments": arguments}
            after = {"name": found.name, "arguments": found.arguments}
            return Healed(found.name, found.arguments, (Mended(SHAPE, before, after),))
    read: dict[str, Healed] = {}

    def takes(tool: str) -> bool:
        if tool not in read:
            read[tool] = _arguments_for(specs[tool], arguments)
        return read[tool].arguments is not None

    def speaks_for(tool: str) -> bool:
        return _speak_for(specs[tool], arguments) or (_name_most(specs[tool], arguments) and takes(tool))

    def stands(tool: str) -> bool:
        return isinstance(arguments, dict) and bool(arguments) and _fit_alone(specs[tool], arguments)

    meant = meant_tool(name, specs, takes, speaks_for, stands)
    if meant.name is None:
        return Healed(name, None, why=meant.why)
    takes(meant.name)
    found = read[meant.name]
    if found.arguments is None:
        return Healed(name, None, why=found.why)
    renaming = () if meant.name == name else (Mended(NAME, name, meant.name),)
    return Healed(meant.name, found.arguments, (*renaming, *found.mended))


def _speak_for(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments alone say that this tool is meant: several of them, each one of its own, and they fit as they stand."""
    return isinstance(arguments, dict) and len(arguments) >= SEVERAL and _fit_alone(spec, arguments)


def _fit_alone(spec: ToolSpec, arguments: dict[str, object]) -> bool:
    """Return whether arguments are all the tool's own, and fit as they stand."""
    return properties(spec.parameters).keys() >= arguments.keys() and is_healthy(spec, arguments)


def _name_most(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments have, letter by letter, the names of two parameters that say which tool is meant, and one other at most.

    Two of those that the tool has to get, or the one, and another.
    """
    arguments = parsed(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, dict):
        return False
    known, needed = properties(spec.parameters), required(spec.parameters)
    own = arguments.keys() & known.keys()
    return (
        len(own) >= SEVERAL
        and len(own.intersection(needed)) >= min(SEVERAL, len(needed))
        and len(arguments.keys() - own) <= 1
    )


def _call_within(name: str, arguments: Any, specs: Mapping[str, ToolSpec]) -> tuple[str, Any] | None:  # noqa: ANN401 - any JSON value
    """Return the one call that stands as a whole in the field of the name, or in the arguments of what only makes calls."""
    if folded(name) in CALLERS:
        arguments = parsed(arguments) if isinstance(arguments, str) else arguments
        from playhead.kernel.calls_in_text.json_form import calls_of  # noqa: PLC0415 - only for a call within a call

        calls = calls_of(arguments)
        return _named(calls[0]) if len(calls) == 1 and calls[0].sure and not calls[0].beside else None
    if arguments not in ({}, None, "", "{}") or not any(mark in name for mark in "{(<"):
        return None
    from playhead.kernel.calls_in_text.reading import read_calls  # noqa: PLC0415 - only for a call in a name

    name = f"<tool_call>{name}</tool_call>" if "<arg_key>" in name and "<tool_call>" not in name else name
    found, rest = read_calls(name, specs, cut_off=not name.rstrip().endswith(">"), nameless=False)
    return _named(found[0]) if len(found) == 1 and not rest else None


def _named(call: Written) -> tuple[str, Any] | None:
    """Return a call's name and arguments; None where the name may hold another call."""
    name = call.name or ""
    return None if folded(name) in CALLERS or any(mark in name for mark in "{(<") else (name, call.arguments)


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
    types, mended = Types(schema, spec.read_only, (spec.name, spec.description)), list[Mended]()

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
    value = note(PARAMETERS, value, with_defaults(schema, value))
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
