"""Deadlines and cancellation rest on what anyio and asyncio document: an attribute of theirs that is private may go any day."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import anyio.lowlevel
import pytest

from playhead import tool
from playhead.compose.killswitches import stop_when, timeout_after
from playhead.testing import call, calls, text
from tests.findings.adapter import agent


@pytest.mark.parametrize("where", ["tool", "hook", "stop_when"])
async def test_code_that_swallows_cancellation_is_left_alone(where):
    """Abandoned code is cancelled a few times; after that it does not keep the loop busy."""
    release, turns = asyncio.Event(), Counter[str]()

    async def swallow(*_: object) -> bool:
        while not release.is_set():
            turns[where] += 1
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return True

    @tool(read_only=True)
    async def wait(key: str) -> str:
        """Wait."""
        if where in {"tool", "beside"}:
            await swallow()
        return key

    def block(harness: Any) -> None:
        if where == "hook":
            harness.before("act", swallow, timeout_s=60)

    options: dict[str, Any] = {"validators": [swallow]} if where == "validator" else {}
    options["compose"] = [timeout_after(0.2), stop_when(swallow) if where == "stop_when" else block]
    first = calls(call("wait", key="a"), call("wait", key="b")) if where == "beside" else call("wait", key="a")
    assert (await agent([first, text("done")], [wait], **options).run("go")).terminated_by == "timeout_after"
    before = turns[where]
    for _ in range(1000):
        await anyio.lowlevel.checkpoint()
    assert turns[where] - before <= 2
    release.set()
