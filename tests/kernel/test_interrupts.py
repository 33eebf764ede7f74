from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.replay import reproduce
from playhead.trace.integrity import check_trace
from tests.kernel.runs import data
from tests.proving import bound, sample

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import asyncio, sys, time
import anyio
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

def started():
    print("started", flush=True)

@tool
def block() -> str:
    "Block a thread."
    started()
    time.sleep(3600)

@tool
async def wait() -> str:
    "Wait in the loop."
    started()
    await anyio.sleep_forever()

@tool
async def stubborn() -> str:
    "Take a moment to tidy up."
    try:
        started()
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.05)
            print("tidied", flush=True)

def think(request):
    started()
    return text("late", delay_s=3600)

how, where, folder = sys.argv[1:]
turns = [think] if where == "think" else [call(where), text("never")]
agent = Agent(ScriptedModel(turns), tools=[block, wait, stubborn], trace=folder)
agent.subscribe("run-completed", lambda record: print("closed", flush=True))
try:
    if how == "run_sync":
        agent.run_sync("Do it.", run_id="run")
    else:
        asyncio.run(agent.run("Do it.", run_id="run"))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
print("not interrupted")
"""


def interrupted(how: str, where: str, folder: Path) -> tuple[int, list[str]]:
    """Return how a program ends that is interrupted in this place, and what it said until then."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how, where, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with program:
        assert program.stdout is not None
        try:
            said = [program.stdout.readline().strip()]
            os.kill(program.pid, signal.SIGINT)
            said += program.stdout.read().split()
            return program.wait(timeout=20), said
        finally:
            program.kill()


@pytest.mark.parametrize("how", ["run_sync", "run"])
@pytest.mark.parametrize("where", sample(["think", "wait", "block", "stubborn"], ["block", "stubborn"]))
async def test_ctrl_c(tmp_path: Path, how: str, where: str):
    """Ctrl-C during `run_sync`, or in a program's own loop: the trace is closed first, then the caller gets its KeyboardInterrupt, at once."""
    began = time.monotonic()
    code, said = interrupted(how, where, tmp_path)
    assert (code, said) == (130, ["started", *(["tidied"] if where == "stubborn" else []), "closed", "interrupted"])
    assert time.monotonic() - began < bound(20)
    recording = load_recording(tmp_path / "run.jsonl")
    assert check_trace(recording.path).ok
    assert recording.ending is not None
    ending: dict[str, Any] = data(recording.ending)
    assert {name: ending[name] for name in ("status", "terminated_by", "error", "iterations")} == {
        "status": "failed",
        "terminated_by": "cancelled",
        "error": "the run was interrupted (Ctrl-C, or SIGTERM)"
        if how == "run_sync"
        else "the run was cancelled from outside",
        "iterations": 1,
    }
    calls = [(call.started.tool, call.completed.abandoned) for call in recording.root.calls.values() if call.completed]
    assert calls == ([] if where == "think" else [(where, where == "block")])
    assert (await reproduce(recording)).divergences == ()
