"""SIGTERM while runs go on: closed traces, and then the process ends by the signal as if nobody had caught it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from playhead.kernel import signals
from playhead.trace.integrity import check_trace

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import asyncio, signal, sys, time
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call

def started():
    print("started", flush=True)

@tool(timeout=None)
def thread() -> str:
    "Block a thread."
    started()
    time.sleep(3600)

@tool(timeout=None)
async def stubborn() -> str:
    "Swallow every cancellation."
    started()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@tool(timeout=None)
async def loop() -> str:
    "Hold up the loop."
    started()
    time.sleep(3600)

how, where, folder = sys.argv[1:]
if how.startswith("own"):
    signal.signal(signal.SIGTERM, lambda *_: (print("own", flush=True), sys.exit(7)))
agent = Agent(ScriptedModel([call(where)]), tools=[thread, stubborn, loop], trace=folder)

async def two():
    await asyncio.gather(agent.run("Do it.", run_id="run"), agent.run("Do it.", run_id="other"))

if how.endswith("run_sync"):
    agent.run_sync("Do it.", run_id="run")
elif how == "two":
    agent.model.turns = agent.model._queue = [call(where)] * 2
    asyncio.run(two())
else:
    asyncio.run(agent.run("Do it.", run_id="run"))
"""


def terminated(how: str, where: str, folder: Path) -> tuple[int, list[str], float]:
    """Return how a program ends that gets SIGTERM when its tool has started, what it said, and the seconds it took."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how, where, str(folder)], stdout=subprocess.PIPE, text=True
    )
    with program:
        assert program.stdout is not None
        try:
            said = [program.stdout.readline().strip()]
            if how == "two":
                program.stdout.readline()
            began = time.monotonic()
            os.kill(program.pid, signal.SIGTERM)
            said += program.stdout.read().split()
            return program.wait(timeout=20), said, time.monotonic() - began
        finally:
            program.kill()


def ending(path: Path) -> tuple[str, str, str]:
    """Return status, reason and source of a run whose trace is closed and sound."""
    recording = load_recording(path)
    assert check_trace(path).ok
    assert recording.ending is not None
    return recording.ending.status, recording.ending.terminated_by, recording.ending.terminated_source


@pytest.mark.parametrize("where", ["thread", "stubborn", "loop"])
@pytest.mark.parametrize("how", ["run_sync", "run"])
def test_sigterm_closes_the_trace_and_then_ends_the_process(tmp_path: Path, how: str, where: str):
    """Whatever the run waits for: the trace is closed, and the process has died by SIGTERM within a second."""
    code, said, took = terminated(how, where, tmp_path)
    assert (code, said) == (-signal.SIGTERM, ["started"])
    assert took < 1.0
    assert ending(tmp_path / "run.jsonl") == ("failed", "cancelled", "signal:SIGTERM")
    assert not list((tmp_path / ".control").glob("*"))


def test_all_runs_of_the_process_are_closed(tmp_path: Path):
    """Two runs in one loop each get their end."""
    code, _, _ = terminated("two", "thread", tmp_path)
    assert code == -signal.SIGTERM
    for name in ("run", "other"):
        assert ending(tmp_path / f"{name}.jsonl") == ("failed", "cancelled", "signal:SIGTERM")


@pytest.mark.parametrize("how", ["own run_sync", "own run"])
def test_a_handler_of_the_program_is_left_alone(tmp_path: Path, how: str):
    """Where somebody has said what SIGTERM does, it does that."""
    code, said, _ = terminated(how, "thread", tmp_path)
    assert (code, said) == (7, ["started", "own"])


def test_the_handler_is_there_only_while_runs_are(monkeypatch: pytest.MonkeyPatch):
    """Nested or one after the other: the last one out puts things back, unless somebody else has set a handler."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with signals.listening():
            with signals.listening():
                assert signal.getsignal(signal.SIGTERM) is signals._on_signal
            assert signal.getsignal(signal.SIGTERM) is signals._on_signal
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

        def mine(*_: Any) -> None:
            pass

        with signals.listening():
            signal.signal(signal.SIGTERM, mine)
        assert signal.getsignal(signal.SIGTERM) is mine
        with signals.listening():
            assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
