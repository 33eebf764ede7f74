"""Running agents that write programs, and looking at what came of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import Turn, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

RAN: list[Any] = []
"""What bodies of tools were run with."""


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look a fact up."""
    RAN.append(key)
    return f"found {key}"


@tool
async def pay(amount: int, to: str = "Ann") -> dict[str, Any]:
    """Pay somebody."""
    RAN.append((amount, to))
    return {"paid": amount, "to": to}


@tool(requires_approval=True)
async def guarded() -> str:
    """Ask first."""
    RAN.append("guarded")
    return "ran"


def program(code: str) -> Turn:
    """Return a turn in which the model writes a program."""
    return text(f"```python\n{code.strip()}\n```")


async def act(folder: Path, turns: Any, *tools: Any, settings: Any = None, **options: Any) -> Any:
    """Run on a script, and reproduce the recording from the file alone, without any process."""
    ran = await record(folder, turns, *tools, strategy="code-action", strategy_settings=settings or {}, **options)
    await reproduced(folder)
    return ran


async def reproduced(folder: Path) -> None:
    """See to it that the recording is reproduced, that no body of a tool runs again, and no process starts."""
    ran = list(RAN)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocess, "Popen", None)
        same = await reproduce(folder / "run.jsonl")
    assert same.identical, same.divergences
    assert ran == RAN


def result(ran: Any, number: int = 0) -> dict[str, Any]:
    """Return what came of a program."""
    events = [event for event in ran.events("tool-call-completed", owner="root") if event.tool == "run-program"]
    found = events[number].result
    assert isinstance(found, dict)
    return found


async def outcome(folder: Path, code: str, *tools: Any, **settings: Any) -> dict[str, Any]:
    """Return what comes of one program."""
    return result(await act(folder, [program(code), text("done")], *tools, settings=settings))
