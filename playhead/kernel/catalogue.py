"""Which of the tools that are at hand an agent gets: by keywords, or by what a function says of each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final, TypeAlias

from playhead.errors import SHOWN_NAMES, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.tools import Tool
    from playhead.trace.types import ToolSpec

ToolFilter: TypeAlias = "str | Callable[[ToolSpec], bool]"
"""Words, one of which has to stand in a tool's name or description in any case; or a function that says whether it stays."""
MANY_TOOLS: Final = 30
"""Tools that an agent may have before it is told that they are many: each of them is sent with every request."""


def filtered(tools: dict[str, Tool], keep: ToolFilter | None) -> dict[str, Tool]:
    """Return the tools that stay; without a filter all, with a warning when they are many.

    Raises:
        UsageError: the filter is neither text nor a function, raises, or keeps no tool.
    """
    if keep is None:
        if len(tools) > MANY_TOOLS:
            warnings.warn(
                f"the agent has {len(tools)} tools, and each is sent with every request; over {MANY_TOOLS} cost much and "
                "make the choice hard: name fewer, or say which with tool_filter",
                UserWarning,
                stacklevel=3,
            )
        return tools
    if isinstance(keep, str):
        words = keep.casefold().split()
        kept = [name for name in tools if not words or any(_holds(tools[name].spec, word) for word in words)]
    elif callable(keep):
        kept = [name for name, each in tools.items() if _keeps(keep, each.spec)]
    else:
        raise UsageError(f"tool_filter is text with keywords, or a function of a ToolSpec; it is {keep!r}")
    if tools and not kept:
        asked = f" {keep!r}" if isinstance(keep, str) else ""
        shown = ", ".join(sorted(tools)[:SHOWN_NAMES]) + (", …" if len(tools) > SHOWN_NAMES else "")
        raise UsageError(f"tool_filter{asked} keeps none of the {len(tools)} tools: {shown}")
    return {name: tools[name] for name in kept}


def _holds(spec: ToolSpec, word: str) -> bool:
    return word in spec.name.casefold() or word in spec.description.casefold()


def _keeps(keep: Callable[[ToolSpec], bool], spec: ToolSpec) -> bool:
    try:
        said = keep(spec)
    except Exception as error:
        raise UsageError(f"tool_filter raised {type(error).__name__} for the tool {spec.name}: {error}") from error
    if type(said) is not bool:
        raise UsageError(f"tool_filter returned {type(said).__name__} for the tool {spec.name}: return True or False")
    return said
