from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose.killswitches import max_iterations
from playhead.testing import call, text
from tests.compose.hooked import fired, run_with
from tests.kernel.runs import ended, ending

if TYPE_CHECKING:
    from pathlib import Path


SCRIPT = [*(call("lookup", key=key) for key in "abcde"), text("done")]
SWITCH = "killswitch:max_iterations"


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
async def test_max_iterations(tmp_path: Path, limit: int):
    """At most this many turns begin; then the run stops with its best output, and says which switch stopped it and why."""
    run = await run_with(tmp_path, SCRIPT, max_iterations(limit))
    output = f"found {'abcde'[limit - 1]}" if limit else None
    assert ending(run) == ended("done", "max_iterations", output, limit, terminated_source=SWITCH)
    assert len(run.model.requests) == limit
    because = f"{limit} turn{' is' if limit == 1 else 's are'} used"
    assert run.result.terminated_because == because
    (event,) = run.events("killswitch-fired")
    assert (event.switch, event.reason, event.on_trigger, event.at) == ("max_iterations", because, "stop", "phase")
    assert [(each["hook"], each["phase"], each["timing"], each["switch"]) for each in fired(run)] == [
        ("max_iterations", "think", "before", "max_iterations")
    ]


@pytest.mark.parametrize(
    ("blocks", "own", "turns", "source"),
    [
        ([max_iterations(3), max_iterations(1)], 10, 1, SWITCH),
        ([max_iterations(1), max_iterations(3)], 10, 1, SWITCH),
        ([max_iterations(1), max_iterations(1, on_trigger="terminate")], 10, 1, SWITCH),
        ([max_iterations(3)], 2, 2, "kernel"),
        ([max_iterations(2)], 2, 2, "kernel"),
        ([max_iterations(2)], 3, 2, SWITCH),
    ],
)
async def test_stacked(tmp_path: Path, blocks: Any, own: int, turns: int, source: str):
    """The first limit that is reached ends the run, once; of two at the same place the first registered."""
    run = await run_with(tmp_path, SCRIPT, *blocks, max_iterations=own)
    output = f"found {'abcde'[turns - 1]}"
    assert ending(run) == ended("done", "max_iterations", output, turns, terminated_source=source)
    assert len(run.events("killswitch-fired")) == (source == SWITCH)
