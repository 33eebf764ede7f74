"""What a replay and a reproduction take from a recording in the same way."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias

from playhead.kernel.meta_tools import MetaTool, make_meta_tools

if TYPE_CHECKING:
    from playhead.kernel.tools import Tool
    from playhead.trace.recording import Recording
    from playhead.trace.types import ToolSpec
    from playhead.trace.values import JsonValue

Facts: TypeAlias = "dict[tuple[str, str, str], deque[JsonValue]]"
"""Answers by owner, question and key, in the order in which they were given."""


def facts_of(recording: Recording) -> Facts:
    """Return the recorded facts."""
    facts: Facts = defaultdict(deque)
    for owner in recording.owners.values():
        for fact in owner.facts:
            facts[owner.owner, fact.name, fact.key].append(fact.value)
    return facts


def meta_tool(spec: ToolSpec, given: Tool | None) -> Tool:
    """Return the kernel's own tool, which runs: that of the code, or else the one of its name."""
    return given if isinstance(given, MetaTool) else make_meta_tools((spec.name,))[spec.name]
