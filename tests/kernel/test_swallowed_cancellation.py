from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import ToolContext, tool
from playhead.errors import RunEndedError
from playhead.kernel.lifecycle.bodies import GRACE_S
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.clock import SystemClock
from tests.kernel.hung import TRIES
from tests.kernel.runs import data, make_agent, record
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 0.01
TIMEOUT = {"type": "Timeout", "message": "slow did not finish within 0.01 s"}
ABANDONED = {
    "call_id": "call_0_0",
    "tool": "slow",
    "position": 0,
    "ok": False,
    "error": TIMEOUT,
    "abandoned": True,
    "ended": "timeout",
}


async def swallow(release: asyncio.Event) -> None:
    """Wait for an event, whoever cancels."""
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            continue


@pytest.mark.parametrize("kind", ["async", "sync that returns a coroutine"])
@pytest.mark.parametrize("raises", [False, True])
async def test_a_body_that_swallows_its_cancellation(tmp_path: Path, kind: str, raises: bool):
    """It is left behind soon after its limit; that it comes back is noted, and what it returns is never used.

    On a busy machine the best of three measurements counts.
    """
    took_s = []
    for trial in range(TRIES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        took_s.append(await swallowing(folder, kind, raises=raises))
    assert min(took_s) < bound(LIMIT + GRACE_S + 0.2)


async def swallowing(tmp_path: Path, kind: str, *, raises: bool) -> float:
    """Check a run with a body that swallows its cancellation, and return the seconds it took."""
    release = asyncio.Event()

    async def body() -> str:
        await swallow(release)
        if raises:
            raise LookupError
        return "late"

    @tool(timeout=LIMIT)
    async def slow() -> str:
        """Swallow."""
        return await body()

    @tool(timeout=LIMIT, name="slow")
    def slow_sync() -> Any:
        """Swallow."""
        return body()

    @tool
    async def go_on() -> None:
        """Let the other go on."""
        release.set()
        await asyncio.sleep(0.005)

    started = time.monotonic()
    turns = [call("slow"), call("go_on"), text("done")]
    run = await record(tmp_path, turns, slow if kind == "async" else slow_sync, go_on, clock=SystemClock)
    took_s = time.monotonic() - started
    completed, late, _ = run.events("tool-call-completed", "tool-call-late")
    assert data(completed) == ABANDONED
    assert {"ok": False, **data(late)} == {"call_id": "call_0_0", "tool": "slow", "ok": not raises}
    assert run.result.output == "done"
    assert "late" not in [step.content for step in run.result.steps]
    assert (await reproduce(run.recording)).identical
    return took_s


async def test_a_body_that_takes_a_moment_to_tidy_up(tmp_path: Path):
    """What tidies up in a moment is waited for: nothing is abandoned, and what it returns then counts for nothing."""

    @tool(timeout=LIMIT)
    async def slow() -> str:
        """Tidy up."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.002)
        return "too late"

    run = await record(tmp_path, [call("slow"), text("done")], slow)
    (completed,) = run.events("tool-call-completed")
    assert data(completed) == {name: value for name, value in ABANDONED.items() if name != "abandoned"}


async def test_a_cancelled_run_does_not_wait_for_it(tmp_path: Path):
    """When the run is cancelled, such a body is left behind, and the trace says so.

    On a busy machine the best of three measurements counts.
    """
    took_s = []
    for trial in range(TRIES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        took_s.append(await cancelled_while_swallowing(folder))
    assert min(took_s) < bound(0.25)


async def cancelled_while_swallowing(tmp_path: Path) -> float:
    """Check a run that is cancelled with such a body, and return the seconds it took."""
    release, recorded = asyncio.Event(), []

    @tool(timeout=None)
    async def slow() -> None:
        """Swallow."""
        await swallow(release)

    agent = make_agent(tmp_path, [call("slow")], slow)
    agent.subscribe("tool-call-completed", lambda each: recorded.append(data(each.event)))
    started = time.monotonic()
    with anyio.move_on_after(0.02):
        await agent.run("Do it.")
    took_s = time.monotonic() - started
    assert [(each["ended"], each["abandoned"]) for each in recorded] == [("cancelled", True)]
    release.set()
    return took_s


async def test_it_can_do_nothing_more_through_the_ports(tmp_path: Path):
    """A body whose call has ended cannot ask the model or call tools: nobody would know what for."""
    release, refused = asyncio.Event(), asyncio.Event()

    @tool
    async def ping() -> str:
        """Answer."""
        return "pong"

    @tool(timeout=LIMIT)
    async def slow(context: ToolContext) -> None:
        """Swallow, and then call another tool."""
        await swallow(release)
        try:
            await context.tools.call("ping")
        except RunEndedError:
            refused.set()

    @tool
    async def go_on() -> None:
        """Let the other go on."""
        release.set()
        await refused.wait()

    run = await record(tmp_path, [call("slow"), call("go_on"), text("done")], slow, ping, go_on)
    assert [event.tool for event in run.events("tool-call-started")] == ["slow", "go_on"]


FOREVER = """
import asyncio, sys
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

@tool(timeout=0.01)
async def forever() -> str:
    "Never return."
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

agent = Agent(ScriptedModel([call("forever"), text("done")]), tools=[forever], trace=sys.argv[1])
if sys.argv[2] == "sync":
    print(agent.run_sync("Do it.").output)
else:
    print(asyncio.run(agent.run("Do it.")).output)
"""


@pytest.mark.parametrize("how", ["sync", "async"])
def test_it_does_not_keep_the_program_from_ending(tmp_path: Path, how: str):
    """Neither the end of the loop nor that of the program waits for a body that swallows every cancellation."""
    done = subprocess.run(
        [sys.executable, "-c", FOREVER, str(tmp_path), how], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
