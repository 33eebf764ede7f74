"""A program whose run was ended at its limit can end at once, whatever it left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from playhead.trace.integrity import check_trace
from tests.proving import PROVE, sample

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import asyncio, os, sys, time
from playhead import Agent, tool
from playhead.compose.killswitches import timeout_after
from playhead.testing import ScriptedModel, call, text

async def swallow():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

def spin():
    while True:
        pass

KINDS = {
    "sleep": lambda: time.sleep(3600), "spin": spin, "read": lambda: os.read(os.pipe()[0], 1), "swallow": swallow,
    "wait": lambda: asyncio.sleep(3600),
}
how, where, kind, folder, limit = sys.argv[1:]

async def hang():
    found = KINDS[kind]()
    if asyncio.iscoroutine(found):
        await found

class Model(ScriptedModel):
    async def complete(self, request):
        if where == "model" and request.number:
            await hang()
        return await super().complete(request)

@tool(timeout=None)
async def in_loop():
    "Hang."
    await hang()

@tool(timeout=None)
def in_thread():
    "Hang."
    KINDS[kind]()

@tool
def lookup():
    "Look up."
    return "found"

async def hook(*_):
    if where == "hook":
        await hang()

name = "in_thread" if where == "thread" else "in_loop"
agent = Agent(
    Model([call("lookup"), call(name), text("never")]),
    tools=[lookup, in_loop, in_thread],
    trace=folder,
    compose=[timeout_after(float(limit)), lambda harness: harness.after("observe", hook, timeout_s=3600)],
)
if how == "run_sync":
    result = agent.run_sync("Do it.", run_id="run")
else:
    result = asyncio.run(agent.run("Do it.", run_id="run"))
print(result.output, result.terminated_by, flush=True)
"""
SYNC = [
    *(("model", kind) for kind in ("sleep", "spin", "swallow")),
    *(("loop", kind) for kind in ("sleep", "spin", "read", "swallow", "wait")),
    *(("thread", kind) for kind in ("sleep", "spin", "read")),
    *(("hook", kind) for kind in ("sleep", "swallow")),
]
ASYNC = [("model", "swallow"), ("loop", "swallow"), ("thread", "sleep"), ("thread", "spin"), ("hook", "swallow")]


@pytest.mark.parametrize(
    ("how", "where", "kind"),
    sample(
        [*(("run_sync", *each) for each in SYNC), *(("run", *each) for each in ASYNC)],
        [("run_sync", "model", "swallow"), ("run_sync", "thread", "spin"), ("run", "hook", "swallow")],
    ),
)
def test_the_program_ends(tmp_path: Path, how: str, where: str, kind: str):
    """It says its result and exits within half a second of that; nothing complains, and the trace is closed.

    On a busy machine the best of three measurements counts.
    """
    for trial in range(3):
        folder = tmp_path / str(trial)
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, how, where, kind, str(folder), str(sample(0.1, 0.5))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            assert program.stdout is not None
            assert program.stderr is not None
            try:
                said = program.stdout.readline()
                began = time.monotonic()
                code = program.wait(timeout=20)
                took_s = time.monotonic() - began
                complaints = program.stderr.read()
            finally:
                program.kill()
        assert (code, said, complaints) == (0, "found timeout_after\n", "")
        assert check_trace(folder / "run.jsonl").ok
        if took_s < 0.5 or not PROVE:
            return
    pytest.fail(f"it took {took_s:.2f} s to exit")
