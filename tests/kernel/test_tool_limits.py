"""Tools at their time limit: cancelled or left behind, recorded, and powerless afterwards."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import ToolContext, load_recording, tool
from playhead.errors import RunEndedError
from playhead.kernel.lifecycle.threads import run_blocking
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.clock import SystemClock
from tests.kernel.hung import hanging
from tests.kernel.runs import data, make_agent, record
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 0.01
TIMEOUT = {
    "call_id": "call_0_0",
    "tool": "slow",
    "position": 0,
    "ok": False,
    "error": {"type": "Timeout", "message": "slow did not finish within 0.01 s"},
    "ended": "timeout",
}


async def test_an_async_body_is_cancelled_at_its_limit(tmp_path: Path):
    """It may clean up for a moment; what it returns then is not used, the model is told, and the run continues."""
    tidied: list[str] = []

    @tool(timeout=LIMIT)
    async def slow() -> str:
        """Take too long."""
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            await asyncio.sleep(0.002)
            tidied.append("up")
        return "too late"

    run = await record(tmp_path, [call("slow"), text("done")], slow)
    (completed,) = run.events("tool-call-completed")
    assert (data(completed), tidied, run.result.output) == (TIMEOUT, ["up"], "done")
    assert run.model.requests[1].messages[-1].content == "error: slow did not finish within 0.01 s"


@pytest.mark.parametrize("kind", ["sync", "swallow", "coroutine of a sync function"])
async def test_a_body_that_ignores_its_limit_is_left_behind(tmp_path: Path, kind: str):
    """The run continues at once; the late return is recorded and never used, and the recording is reproduced."""
    with hanging() as hang:
        late = threading.Event()

        @tool(timeout=LIMIT, name="slow")
        async def in_loop() -> str:
            """Take too long."""
            return await hang.swallow()

        @tool(timeout=LIMIT, name="slow")
        def in_thread() -> Any:
            """Take too long."""
            return hang.block() if kind == "sync" else hang.swallow()

        @tool
        async def release() -> None:
            """Let the other return."""
            hang.released.set()
            await anyio.to_thread.run_sync(late.wait)

        slow = in_loop if kind == "swallow" else in_thread
        agent = make_agent(tmp_path, [call("slow"), call("release"), text("done")], slow, release, clock=SystemClock)
        agent.subscribe("tool-call-late", lambda _: late.set())
        began = time.monotonic()
        result = await agent.run("Do it.", run_id="run")
        assert time.monotonic() - began < bound(1)
    recording = load_recording(tmp_path / "run.jsonl")
    kinds = ("tool-call-completed", "tool-call-late")
    completed, noted, _ = [record.event for record in recording.records if record.kind in kinds]
    assert data(completed) == {**TIMEOUT, "abandoned": True}
    assert data(noted) == {"call_id": "call_0_0", "tool": "slow", "ok": True}
    assert (result.output, [step.content for step in result.steps if "late" in step.content]) == ("done", [])
    assert (await reproduce(recording)).identical


@pytest.mark.parametrize(("kind", "abandoned"), [("block", True), ("swallow", True), ("wait", False)])
async def test_a_cancelled_run_leaves_its_body_behind(tmp_path: Path, kind: str, abandoned: bool):
    """It does not wait for the body, and the trace says whether that may still be running."""
    with hanging() as hang:
        body = getattr(hang, kind)

        @tool(name="slow", timeout=None)
        async def in_loop() -> None:
            """Wait."""
            await body()

        slow = tool(name="slow", timeout=None)(body) if kind == "block" else in_loop
        agent = make_agent(tmp_path, [call("slow")], slow)
        async with anyio.create_task_group() as group:
            group.start_soon(partial(agent.run, "Do it.", run_id="run"))
            await anyio.to_thread.run_sync(hang.started.wait)
            group.cancel_scope.cancel()
        assert not hang.released.is_set()
    events = [record.event for record in load_recording(tmp_path / "run.jsonl").records]
    (completed,) = [data(event) for event in events if event.kind == "tool-call-completed"]
    assert completed == {
        **TIMEOUT,
        "error": {"type": "Cancelled", "message": "the run ended before the call returned"},
        "ended": "cancelled",
        **({"abandoned": True} if abandoned else {}),
    }


async def test_a_body_that_was_left_behind_has_no_ports(tmp_path: Path):
    """After its call has ended it can neither ask the model nor call tools."""
    release, refused = asyncio.Event(), asyncio.Event()

    @tool
    async def ping() -> str:
        """Answer."""
        return "pong"

    @tool(timeout=LIMIT)
    async def slow(context: ToolContext) -> None:
        """Swallow the cancellation, and then call another tool."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
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


async def test_run_blocking_works_inside_a_loop():
    """A running loop, as in a notebook, is no obstacle."""

    async def answer() -> int:
        await anyio.lowlevel.checkpoint()
        return threading.get_ident()

    assert run_blocking(answer) != threading.get_ident()
