from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose.killswitches import max_iterations
from playhead.testing import call, text
from tests.compose.hooked import run_with
from tests.kernel.runs import ended, ending

if TYPE_CHECKING:
    from pathlib import Path


SCRIPT = [*(call("lookup", key=key) for key in "abcde"), text("done")]
SWITCH = "killswitch:max_iterations"


@pytest.mark.parametrize(
    ("blocks", "own", "turns", "source"),
    [
        *(([max_iterations(limit)], 10, limit, SWITCH) for limit in (0, 1, 2, 5)),
        ([max_iterations(3), max_iterations(1)], 10, 1, SWITCH),
        ([max_iterations(1), max_iterations(3)], 10, 1, SWITCH),
        ([max_iterations(1), max_iterations(1, on_trigger="terminate")], 10, 1, SWITCH),
        ([max_iterations(3)], 2, 2, "kernel"),
        ([max_iterations(2)], 2, 2, "kernel"),
        ([max_iterations(2)], 3, 2, SWITCH),
    ],
)
async def test_max_iterations(tmp_path: Path, blocks: Any, own: int, turns: int, source: str):
    """The first limit that is reached ends the run before its next turn, once; of two at the same place the first registered."""
    run = await run_with(tmp_path, SCRIPT, *blocks, max_iterations=own)
    output = f"found {'abcde'[turns - 1]}" if turns else None
    assert ending(run) == ended("done", "max_iterations", output, turns, terminated_source=source)
    assert len(run.model.requests) == turns
    because = f"{turns} turn{' is' if turns == 1 else 's are'} used"
    assert [(each.switch, each.reason, each.on_trigger, each.at) for each in run.events("killswitch-fired")] == (
        [("max_iterations", because, "stop", "phase")] if source == SWITCH else []
    )
