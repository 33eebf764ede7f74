"""What a model is told of a call that could not be read: all that is wrong with it, and what would be right, in one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import nearest
from playhead.kernel.repair.schema import facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.trace.types import ToolSpec

LONGEST: Final = 2000
"""Characters of what is said of a tool's parameters."""


def unknown_tool(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return that there is no such tool, and which are near, or there."""
    return f"there is no tool {name[:80]!r}.{nearest(name[:80], specs)}"


def unread_arguments(spec: ToolSpec, faults: Sequence[str]) -> str:
    """Return all that is wrong with the arguments of a call, and what the tool takes."""
    takes = facts(spec.parameters, spec.parameters)[:LONGEST]
    return "\n- ".join([f"the arguments of {spec.name} cannot be read:", *faults]) + f"\n{spec.name} takes {takes}"
