"""What a replay and a reproduction take from a recording in the same way."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias

from playhead.kernel.meta_tools import MetaTool, make_meta_tools
from playhead.trace.owners import owner_inside, tool_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.kernel.session import Tool
    from playhead.trace.events import ToolCallStarted
    from playhead.trace.recording import OwnerRecording, RecordedCall, Recording
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


def outermost_scope(owner: str, owners: Mapping[str, OwnerRecording]) -> str | None:
    """Return the outermost tool's body that an owner is in, or None when agents alone led to it."""
    parts = owner.split("/")
    paths = ("/".join(parts[:count]) for count in range(2, len(parts) + 1))
    return next((path for path in paths if _is_body(path, owners)), None)


def _is_body(path: str, owners: Mapping[str, OwnerRecording]) -> bool:
    """Return whether an owner is the body of a tool: no agent, or one that a function entered, as imported runs have them."""
    owner = owners.get(path)
    if owner is None or owner.started is None:
        return True
    parent, tool = path.rpartition("/")[0], tool_of(path)
    known = owners[parent].own_tools.values() if parent in owners else ()
    return any(spec.name == tool and spec.kind == "function" for spec in known)


def scope_of(owner: str, call: RecordedCall) -> str:
    """Return under whose name stands what a call's body does, and the agent that it enters."""
    return owner_inside(owner, call.started.tool, call.iteration, call.started.position)


def same_call(started: ToolCallStarted, tool: str, args_hash: str) -> bool:
    """Return whether a recorded call is one of this tool and these arguments."""
    return started.tool == tool and started.args_hash == args_hash
