from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import load_recording
from playhead.trace.integrity import check_trace
from tests.compose.hooked import EVERYTHING, everything
from tests.compose.hostile import PLACES, Odd, placed, raising
from tests.kernel.runs import make_agent
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path


def agent_with(folder: Path, place: str, hook: Any) -> Any:
    """Return an agent that passes every chokepoint, with a hook at one place."""
    options = {**EVERYTHING, "rationale": True, "compose": [placed(place, hook)]}
    return make_agent(folder, everything(), *options.pop("tools"), **options)


@pytest.mark.parametrize("place", sample(PLACES, PLACES[::5]))
async def test_what_is_no_exception_is_not_swallowed(tmp_path: Path, place: str):
    """What is raised to end the program, such as by pytest, ends the run, and the trace is closed."""
    with pytest.RaisesGroup(Odd, allow_unwrapped=True, flatten_subgroups=True):  # calls side by side raise in a group
        await agent_with(tmp_path, place, raising(Odd())).run("Do it.", run_id="run")
    assert_cancelled(tmp_path)


@pytest.mark.parametrize(
    "place", ["on prompt.system", "tap tool.call", "before act", "after complete", "tap answer.final"]
)
def test_an_interrupt_is_not_swallowed(tmp_path: Path, place: str):
    """Ctrl+C in a hook ends the run, and the trace is closed."""
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(agent_with(tmp_path, place, raising(KeyboardInterrupt())).run("Do it.", run_id="run"))
    assert_cancelled(tmp_path)


@pytest.mark.parametrize("place", sample(PLACES, PLACES[::7]))
async def test_a_run_that_is_cancelled_while_a_hook_hangs(tmp_path: Path, place: str):
    """The caller's cancellation passes through the hook, and the trace is closed; nothing leaves that it did not pass."""
    reached = anyio.Event()

    async def hook(*_: Any) -> None:
        reached.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: agent_with(tmp_path, place, hook).run("Do it.", run_id="run"))
        await reached.wait()
        group.cancel_scope.cancel()
    assert_cancelled(tmp_path)


def assert_cancelled(folder: Path) -> None:
    """Look at the trace of a run that was cancelled: closed, failed, without the answer."""
    recording = load_recording(folder / "run.jsonl")
    assert check_trace(recording.path).ok
    assert recording.ending is not None
    assert (recording.status, recording.ending.status, recording.ending.terminated_by) == (
        "closed",
        "failed",
        "cancelled",
    )
    assert recording.ending.output != "done"
    kinds = [record.kind for record in recording.records]
    assert "final-answer" not in kinds
    assert kinds.count("tool-call-started") == kinds.count("tool-call-completed")
