"""Plans for tests, as a model writes them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from playhead.kernel.plan import Plan, PlanStep
from playhead.testing import text
from playhead.trace.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

WHY = {"why": "it is needed"}


def spec(name: str, *required: str, read_only: bool = True) -> ToolSpec:
    """Return a tool with these parameters, all texts."""
    properties = {each: {"type": "string"} for each in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, parameters=schema, read_only=read_only)


def tool_step(tool: str, **fields: Any) -> dict[str, Any]:
    """Return a tool call as a step; `args` are its arguments."""
    args = fields.pop("args", {})
    return {"type": "tool_call", "tool_name": tool, "tool_args": args, "rationale": WHY, **fields}


def analysis(instruction: str, **fields: Any) -> dict[str, Any]:
    """Return an analysis as a step."""
    return {"type": "analysis", "instruction": instruction, **fields}


def composite(instruction: str, *hints: str, **fields: Any) -> dict[str, Any]:
    """Return a composite step."""
    return {"type": "composite", "instruction": instruction, "tool_hints": list(hints), **fields}


def plan(*steps: Any) -> Any:
    """Return the turn of a model that answers with this plan."""
    return text(json.dumps({"steps": list(steps)}))


def verdict(reason: str = "all there", *, satisfied: bool = True) -> Any:
    """Return the turn of a model that judges the results."""
    return text(json.dumps({"reason": reason, "satisfied": satisfied}))


def made(mode: Any = "linear", kept: Iterable[PlanStep] = ()) -> Plan:
    """Return a plan with two tools, the read-only `look` and `send`, and room for 20 steps."""
    tools = {"look": spec("look", "key"), "send": spec("send", "to", read_only=False)}
    turns = SimpleNamespace(header=SimpleNamespace(max_iterations=21)), SimpleNamespace(iteration=0)
    session, state = cast("tuple[Any, Any]", turns)
    by_id = {each.id: each for each in kept}
    return Plan("p", "goal", mode, session, state, tools, by_id, set(by_id), version=bool(by_id) - 1)
