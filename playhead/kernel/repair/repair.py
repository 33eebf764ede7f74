"""Repairs one broken call where it has exactly one reading, or refuses it with all of its faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.kernel.bounded_schema import UnusableSchemaError
from playhead.kernel.repair.names import meant_tool
from playhead.kernel.repair.reading import Reading
from playhead.kernel.repair.schema import facts, schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

NAME, ARGUMENTS = "name", "arguments"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A call after repair."""

    name: str
    """The tool's name; unchanged where it means no tool."""
    arguments: dict[str, JsonValue] | None
    """The arguments; None when the call was refused."""
    steps: tuple[tuple[str, JsonValue, JsonValue], ...] = ()
    """The repairs in order: the stage (`name`, `arguments`), and the value before and after."""
    faults: tuple[str, ...] = ()
    """The faults of arguments that could not be read; none where the name means no tool."""


def is_healthy(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments fit a tool unchanged; also where its schema cannot be used."""
    try:
        return isinstance(arguments, dict) and schema_of(spec.parameters).fits(arguments)
    except UnusableSchemaError:
        return True


def repair(name: str, arguments: Any, specs: Mapping[str, ToolSpec]) -> Repaired:  # noqa: ANN401 - any JSON value
    """Return the call in its one reading, or refused; never raises.

    Args:
        name: the tool's name, as it was written.
        arguments: the arguments as they were written: an object, another JSON value, or a text that may be JSON.
        specs: the tools that may be called, by name.
    """
    tool = meant_tool(name.partition("<|")[0], specs)  # some servers append a token to a name
    if tool is None:
        return Repaired(name, None)
    spec, steps = specs[tool], () if tool == name else ((NAME, name, tool),)
    if is_healthy(spec, arguments):
        return Repaired(tool, arguments, steps)
    try:
        reading = Reading(spec)
        value, faults = reading.arguments(arguments), tuple(dict.fromkeys(reading.faults))
    except UnusableSchemaError as error:
        value, faults = None, (f"its schema cannot be used: {error}",)
    return (
        Repaired(tool, None, (), faults) if faults else Repaired(tool, value, (*steps, (ARGUMENTS, arguments, value)))
    )


def unread_arguments(spec: ToolSpec, faults: Sequence[str]) -> str:
    """Return every fault of the arguments of a call, and what the tool takes."""
    takes = facts(spec.parameters, spec.parameters)
    return "\n- ".join([f"the arguments of {spec.name} cannot be read:", *faults]) + f"\n{spec.name} takes {takes}"
