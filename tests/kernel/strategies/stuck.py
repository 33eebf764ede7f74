"""Agents that are stuck, and strategies to switch to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Strategy, register_strategy, tool
from playhead.kernel.passes import fresh_thread, run_pass
from playhead.kernel.state import transition
from playhead.replay import reproduce
from playhead.testing import call
from playhead.trace.types import text_of
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path

RAN: list[str] = []
"""Keys that were looked up."""
SAME = [call("lookup", key="a")] * 3
STUCK = "lookup was called 3 times with the same arguments"


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    RAN.append(key)
    return f"found {key}"


@tool
async def broken(key: str = "a") -> str:
    """Fail."""
    raise OSError(f"no disk {key}" if key != "a" else "no disk")


class Other(Strategy):
    """Answer in a pass of its own."""

    name = "other"

    words: str = "Go on."
    """What it says to the model."""

    async def run(self, state: Any, session: Any) -> Any:
        """Answer."""
        thread = await fresh_thread(session, f"{self.words} {text_of(session.task)}")
        state, answer = await run_pass(state, session, thread, purpose="other", max_iterations=9)
        session.terminate(answer.reason, answer.output)
        return transition(state, output=answer.output)


async def passes(state: Any, session: Any) -> Any:
    """Run passes, and clean up when they end."""
    try:
        for number in range(5):
            thread = await fresh_thread(session, f"part {number}")
            state, _ = await run_pass(state, session, thread, purpose="passes", max_iterations=4)
    finally:
        session.gate.notes["cleaned"] = True
    return state


@pytest.fixture(autouse=True)
def strategies(register: Any) -> None:
    """Strategies of the user's to switch to."""
    RAN.clear()
    register_strategy(Other)
    register("passes", passes)


async def stuck(folder: Path, turns: Any, *tools: Any, **options: Any) -> Any:
    """Run on a script, and reproduce the recording from the file alone."""
    ran = await record(folder, turns, *(tools or (lookup,)), task="How high is it?", **options)
    reproduced = await reproduce(folder / "run.jsonl")
    assert reproduced.identical, reproduced.divergences
    return ran
