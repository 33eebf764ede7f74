from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.errors import ToolDefinitionError
from playhead.replay import reproduce
from playhead.testing import TickingClock, call, text
from tests.kernel.runs import record

if TYPE_CHECKING:
    from pathlib import Path


def test_a_name_decides_nothing():
    """What counts is what is declared."""
    assert tool(lambda: "", name="delete_page", read_only=True).spec.read_only  # type: ignore[call-overload]
    assert not tool(lambda: "", name="get_page").spec.read_only  # type: ignore[call-overload]


async def test_a_memory_that_fades(tmp_path: Path):
    """A result is remembered for so many seconds, by the run's clock; the recording gives the run back."""
    ran: list[str] = []
    clock = TickingClock()

    @tool(read_only=True, cache=10)
    async def look(key: str) -> str:
        """Look."""
        ran.append(key)
        return key

    @tool
    async def wait(seconds: int) -> str:
        """Let time pass."""
        clock._now_us += seconds * 1_000_000
        return "waited"

    turns = [
        call("look", key="a"),
        call("wait", seconds=5),
        call("look", key="a"),
        call("wait", seconds=6),
        call("look", key="a"),
    ]
    run = await record(tmp_path, [*turns, text("done")], look, wait, clock=lambda: clock)
    looked = [event.cached for event in run.events("tool-call-completed") if event.tool == "look"]
    assert (ran, looked) == (["a", "a"], [False, True, False])
    assert (await reproduce(run.recording)).identical


@pytest.mark.parametrize("cache", [0.0, -1, float("inf"), "10"])
def test_what_is_no_time(cache: Any):
    """It is a number of seconds, or for the whole run."""
    with pytest.raises(ToolDefinitionError, match=r"@tool\(cache="):
        tool(name="look", read_only=True, cache=cache)(lambda: "")
