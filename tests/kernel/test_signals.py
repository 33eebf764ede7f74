"""SIGTERM while runs go on: closed traces, and then the process ends by the signal as if nobody had caught it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.testing import ScriptedModel, call, text
from playhead.trace.integrity import check_trace
from tests.proving import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROGRAM = """
import asyncio, hashlib, signal, sys, time
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

@tool(timeout=None)
async def computing() -> str:
    "Be in a call of C that lets other threads run, and does not come back."
    started()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

how, where, folder = sys.argv[1:]
if how.startswith("own"):
    signal.signal(signal.SIGTERM, lambda *_: (print("own", flush=True), sys.exit(7)))
agent = Agent(ScriptedModel([call(where)]), tools=[thread, stubborn, loop, computing], trace=folder)

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
    assert took < bound(1.0)
    assert ending(tmp_path / "run.jsonl") == ("failed", "cancelled", "signal:SIGTERM")
    assert not list((tmp_path / ".control").glob("*"))


def test_the_trace_is_closed_while_the_main_thread_computes(tmp_path: Path):
    """Python would hear the signal when the main thread runs Python again; who ends it then by SIGKILL finds a closed trace."""
    command = [sys.executable, "-c", PROGRAM, "run", "computing", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        trace, late_at = tmp_path / "run.jsonl", time.monotonic() + 10
        while b'"run-completed"' not in trace.read_bytes() and time.monotonic() < late_at:
            time.sleep(0.02)
        program.kill()
    assert ending(trace) == ("failed", "cancelled", "signal:SIGTERM")


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


FORKING = """
import json, multiprocessing, os, signal, sys, time
from playhead import Agent, load_recording, tool
from playhead.testing import ScriptedModel, call, calls, text

@tool(read_only=True, isolate=True)
def isolated() -> str:
    "Take a while, in a process of its own."
    open(os.path.join(sys.argv[2], "begun"), "w").close()
    while not os.path.exists(os.path.join(sys.argv[2], "go on")):
        time.sleep(0.005)
    return "whole"

def ends_by_signal():
    with open(os.path.join(sys.argv[2], "ready"), "w"):
        pass
    time.sleep(30)

def wait_for(name):
    while not os.path.exists(os.path.join(sys.argv[2], name)):
        time.sleep(0.005)

def forked(how):
    if how == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=ends_by_signal)
        child.start()
        wait_for("ready")
        child.terminate()
        began = time.monotonic()
        child.join(5)
        return child.exitcode, time.monotonic() - began
    pid = os.fork()
    if not pid:
        ends_by_signal()
        os._exit(1)
    wait_for("ready")
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), time.monotonic() - began

@tool(read_only=True)
def forks() -> list:
    "Fork, and end the child."
    wait_for("begun")
    ended = forked(sys.argv[1])
    open(os.path.join(sys.argv[2], "go on"), "w").close()
    return ended

if __name__ == "__main__":
    turns = [calls(call("isolated"), call("forks")), text("done")]
    result = Agent(ScriptedModel(turns), tools=[isolated, forks], trace=sys.argv[2]).run_sync("Do it.", run_id="run")
    records = load_recording(result.trace_path).records
    ends = {each.event.tool: each.event.result for each in records if each.kind == "tool-call-completed"}
    print(json.dumps([result.terminated_by, ends]))
"""


@pytest.mark.parametrize("how", ["multiprocessing", "fork"])
def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path, how: str):
    """SIGTERM ends a child that a tool forks as it ends any process, at once, and the parent's run goes on whole."""
    script = tmp_path / "forking.py"
    script.write_text(FORKING)
    command = [sys.executable, "-W", "ignore", str(script), how, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    reason, ends = json.loads(done.stdout)
    code, took_s = ends.pop("forks")
    assert (reason, ends, code) == ("end_turn", {"isolated": "whole"}, -signal.SIGTERM)
    assert took_s < bound(0.3)


def run_in(look_up: Callable[[], Any]) -> list[Any]:
    """Return what this finds out in a tool of a run in this thread."""
    found: list[Any] = []

    @tool
    async def look() -> None:
        """Look."""
        found.append(look_up())

    agent = Agent(ScriptedModel([call("look"), text("done")]), tools=[look], trace=None)
    asyncio.run(agent.run("Do it."))
    return found


@pytest.fixture
def nobody_listens() -> Iterator[None]:
    """SIGTERM ends this process while a test runs."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def handler() -> Any:
    """Return what handles SIGTERM."""
    return signal.getsignal(signal.SIGTERM)


def end_of_fork() -> int:
    """Return 0 when a forked child has no handler."""
    pid = os.fork()
    if not pid:
        os._exit(handler() is not signal.SIG_DFL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.usefixtures("nobody_listens")
def test_a_handler_that_is_set_meanwhile_stays():
    """Whoever sets one during a run, or before it, keeps it."""

    def mine(*_: Any) -> None:
        pass

    run_in(lambda: signal.signal(signal.SIGTERM, mine))
    assert handler() is mine
    assert run_in(handler) == [mine]
    assert handler() is mine
