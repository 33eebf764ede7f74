"""The message for a call that could not be read: all of its faults, and what the tool takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import nearest
from playhead.kernel.repair.schema import facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.trace.types import ToolSpec

LONGEST: Final = 2000
"""Characters of the description of a tool's parameters."""


def unknown_tool(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return that there is no such tool, with the nearest or all names."""
    return f"there is no tool {name[:80]!r}.{nearest(name[:80], specs)}"


def unread_arguments(spec: ToolSpec, faults: Sequence[str]) -> str:
    """Return every fault of the arguments of a call, and what the tool takes."""
    takes = facts(spec.parameters, spec.parameters)[:LONGEST]
    return "\n- ".join([f"the arguments of {spec.name} cannot be read:", *faults]) + f"\n{spec.name} takes {takes}"
