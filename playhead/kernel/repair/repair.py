"""Repairs one broken call where it has exactly one reading, or refuses it with all of its faults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.repair.names import folded, meant_tool
from playhead.kernel.repair.reading import PARAMETERS, Reading
from playhead.kernel.repair.schema import Check, TooCostlyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

NAME = "name"
_BEHIND: Final = re.compile(r"<\||:\d+\Z|\(")
"""What some servers append to a name: a token, the number of the call, or its arguments."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A call after repair."""

    name: str
    """The tool's name; unchanged where it means no tool."""
    arguments: dict[str, JsonValue] | None
    """The arguments; None when the call was refused."""
    steps: tuple[tuple[str, JsonValue, JsonValue], ...] = ()
    """The repairs in order: the stage (`name`, `shape`, `parameters`, `types`), and the value before and after."""
    faults: tuple[str, ...] = ()
    """The faults of arguments that could not be read; none where the name means no tool."""


def is_healthy(spec: ToolSpec, arguments: object) -> bool:
    """Return whether arguments fit a tool unchanged; also where its schema is too costly to check."""
    try:
        return isinstance(arguments, dict) and Check(spec.parameters).fits(spec.parameters, arguments)
    except TooCostlyError:
        return True


def repair(name: str, arguments: Any, specs: Mapping[str, ToolSpec]) -> Repaired:  # noqa: ANN401 - any JSON value
    """Return the call in its one reading, or refused; never raises.

    Args:
        name: the tool's name, as it was written.
        arguments: the arguments as they were written: an object, another JSON value, or a text that may be JSON.
        specs: the tools that may be called, by name.
    """

    def takes(tool: str) -> bool:
        spec = specs[tool]
        read = _for_tool(spec, arguments)
        is_guess = any(how == PARAMETERS and {*map(folded, old)} != {*map(folded, new)} for how, old, new in read.steps)
        return read.arguments is not None and (spec.read_only or not is_guess)

    written, bare = name, _BEHIND.split(name, maxsplit=1)[0]
    if bare != name and name not in specs and ("(" not in name or arguments in ({}, "")):
        name, arguments = bare, name if "(" in name else arguments
    tool = meant_tool(name, specs, takes)
    if tool is None:
        return Repaired(name, None)
    read = _for_tool(specs[tool], arguments)
    if read.arguments is None or tool == written:
        return read
    return Repaired(tool, read.arguments, ((NAME, written, tool), *read.steps))


def _for_tool(spec: ToolSpec, arguments: Any) -> Repaired:  # noqa: ANN401 - any JSON value
    if is_healthy(spec, arguments):
        return Repaired(spec.name, arguments)
    steps: list[tuple[str, Any, Any]] = []

    def note(stage: str, before: Any, after: Any) -> None:  # noqa: ANN401 - any JSON value
        if repr(after) != repr(before):  # `0 == False`
            steps.append((stage, before, after))

    try:
        reading = Reading(Check(spec.parameters), spec)
        value = reading.arguments(arguments, note)
    except TooCostlyError:
        return Repaired(spec.name, None, faults=("its schema says too much to repair a call of it",))
    if reading.faults:
        return Repaired(spec.name, None, faults=tuple(dict.fromkeys(reading.faults)))
    return Repaired(spec.name, value, tuple(steps))
