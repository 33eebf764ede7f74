"""What the tests of strategies share: two tools, and a run that is reproduced from its file alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import text
from tests.kernel.runs import Ran, record

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


@tool(read_only=True)
async def broken() -> str:
    """Fail."""
    raise ValueError("no")


async def run(folder: Path, turns: Any, *tools: Any, task: Any = "Do it.", **options: Any) -> Ran:
    """Run an agent on a script, and reproduce its recording from the file alone."""
    ran = await record(folder, turns, *tools, task=task, **options)
    reproduced = await reproduce(ran.recording)
    assert reproduced.identical, reproduced.divergences
    return ran


def purposes(ran: Ran) -> list[str]:
    """Return what each request was for."""
    return [event.purpose for event in ran.events("llm-requested")]


def thoughts(*proposed: str) -> Any:
    """Return the turn of a model that proposes these thoughts."""
    return text(json.dumps({"thoughts": proposed}))


def score(number: float) -> Any:
    """Return the turn of a model that scores a thought."""
    return text(json.dumps({"score": number}))


def program(code: str) -> Any:
    """Return a turn in which the model writes a program."""
    return text(f"```python\n{code.strip()}\n```")
