"""A shop whose runs die and are resumed: its tools keep what they did, and its model is a function of the thread."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead import Agent, PlayheadError, tool
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import Request

DONE: list[str] = []
"""What the tools did."""


@tool
async def charge(amount: int) -> str:
    """Charge a card."""
    DONE.append(f"charged {amount}")
    return f"receipt {amount}"


@tool(read_only=True)
async def look(key: str) -> str:
    """Look up."""
    DONE.append(f"looked {key}")
    return f"found {key}"


@tool(read_only=True, cache=True)
async def once(key: str) -> int:
    """Look up, and remember."""
    DONE.append(f"once {key}")
    return len(DONE)


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay, when allowed."""
    DONE.append(f"paid {amount}")
    return f"paid {amount}"


def script(*turns: Any) -> list[Any]:
    """Return turns that a model gives by how often it has answered, also when it is asked anew."""

    def answer(request: Request) -> Any:
        return turns[sum(message.role == "assistant" for message in request.messages)]

    return [answer] * 30


SHOP = script(call("look", key="a"), calls(call("look", key="b"), call("charge", amount=5)), text("Charged."))


def make(folder: Path | None, turns: Any = SHOP, *tools: Any, **options: Any) -> Agent:
    """Return an agent as it stands in the code."""
    model = turns if hasattr(turns, "complete") else ScriptedModel(turns)
    given = tools or (look, charge)
    defaults: dict[str, Any] = {"rationale": False, "meta_tools": (), "clock": TickingClock, "retry_delay_s": 0}
    return Agent(model, **grouped(tools=given, trace=folder, **{**defaults, **options}))


async def dead(folder: Path, agent: Agent, last: str, nth: int = 1, task: str = "Do it.") -> Path:
    """Run an agent, and leave of its trace what stood there when it died after its nth event of a kind."""
    try:
        result: Any = await agent.run(task, run_id="whole")
    except PlayheadError as failed:
        result = failed.result  # type: ignore[attr-defined]
    lines = result.trace_path.read_bytes().splitlines(keepends=True)
    at = [place for place, line in enumerate(lines) if json.loads(line)["kind"] == last][nth - 1]
    path = folder / "dead" / "whole.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(lines[: at + 1]))
    blobs = result.trace_path.with_suffix(".blobs")
    if blobs.exists():
        blobs.rename(path.with_suffix(".blobs"))
    DONE.clear()
    return path
