"""Programs whose agent hangs, ended by SIGTERM, Ctrl-C or the run's own limit: the trace is closed first."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.diagnose.integrity import check_trace
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call
from tests.kernel.runs import data
from tests.proving import bound, sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
BY_SIGTERM = ("failed", "cancelled", "signal:SIGTERM")


@contextmanager
def program(how: str, where: str, kind: str, folder: Path, limit: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run a program in which every warning is an error, until its agent hangs."""
    command = [sys.executable, "-W", "error", "-m", "tests.kernel.hung_program", how, where, kind, str(folder), limit]
    pipe: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipe) as started:
        try:
            assert started.stdout is not None
            for _ in range(2 if how == "two runs" else 1):
                assert started.stdout.readline() == "started\n"
            yield started
        finally:
            started.kill()


def signalled(name: str, how: str, where: str, kind: str, folder: Path) -> tuple[int, list[str]]:
    """Return how a program ends that gets a signal when its agent hangs, and what it says after that."""
    with program(how, where, kind, folder) as started:
        began = time.monotonic()
        started.send_signal(getattr(signal, name))
        said, complaints = started.communicate(timeout=20)
        assert time.monotonic() - began < bound(1.0)
        assert complaints == ""
        return started.returncode, said.split()


def ending(path: Path) -> tuple[str, str, str]:
    """Return status, reason and source of a run whose trace is closed and sound."""
    recording = load_recording(path)
    assert check_trace(path).ok
    assert recording.ending is not None
    return recording.ending.status, recording.ending.terminated_by, recording.ending.terminated_source


@pytest.mark.parametrize(
    ("how", "where", "kind"),
    sample(
        [
            (how, *place)
            for how in ("run_sync", "run")
            for place in (("sync tool", "block"), ("async tool", "swallow"), ("async tool", "block"))
        ],
        [("run_sync", "async tool", "swallow"), ("run", "async tool", "block")],
    ),
)
def test_sigterm_closes_the_trace_and_then_ends_the_process(tmp_path: Path, how: str, where: str, kind: str):
    """The trace is closed, and the process has died by SIGTERM within a second, as if nobody had caught it."""
    assert signalled("SIGTERM", how, where, kind, tmp_path) == (-signal.SIGTERM, ["closed"])
    assert ending(tmp_path / "run.jsonl") == BY_SIGTERM
    assert not list((tmp_path / ".control").glob("*"))


def test_sigterm_closes_the_trace_while_the_main_thread_is_in_c(tmp_path: Path):
    """Python delays its signal handlers until the C function returns; the trace is closed without them."""
    with program("run", "async tool", "compute", tmp_path) as started:
        started.send_signal(signal.SIGTERM)
        assert started.stdout is not None
        assert started.stdout.readline() == "closed\n"
    assert ending(tmp_path / "run.jsonl") == BY_SIGTERM


def test_sigterm_closes_all_runs_of_the_process(tmp_path: Path):
    """Two runs in one loop each get their end."""
    code, _ = signalled("SIGTERM", "two runs", "sync tool", "block", tmp_path)
    assert code == -signal.SIGTERM
    assert [ending(tmp_path / f"{name}.jsonl") for name in ("run", "other")] == [BY_SIGTERM] * 2


@pytest.mark.parametrize("how", sample(["own run_sync", "own run"], ["own run"]))
def test_a_handler_of_the_program_is_left_alone(tmp_path: Path, how: str):
    """A program's own handler of SIGTERM runs in place of ours."""
    code, said = signalled("SIGTERM", how, "sync tool", "block", tmp_path)
    assert (code, said[0]) == (7, "own")


@pytest.mark.parametrize(
    ("how", "where", "kind"),
    sample(
        [
            (how, *place)
            for how in ("run_sync", "run")
            for place in (("model", "wait"), ("async tool", "wait"), ("sync tool", "block"), ("async tool", "tidy"))
        ],
        [("run_sync", "sync tool", "block"), ("run", "async tool", "tidy")],
    ),
)
async def test_ctrl_c_closes_the_trace_before_the_caller_hears_of_it(tmp_path: Path, how: str, where: str, kind: str):
    """The caller gets its KeyboardInterrupt at once, after the trace was closed; the recording is reproduced."""
    assert signalled("SIGINT", how, where, kind, tmp_path) == (130, ["closed", "interrupted"])
    recording = load_recording(tmp_path / "run.jsonl")
    assert check_trace(recording.path).ok
    assert recording.ending is not None
    said: dict[str, Any] = data(recording.ending)
    why = "was interrupted (Ctrl-C, or SIGTERM)" if how == "run_sync" else "was cancelled from outside"
    assert (said["status"], said["terminated_by"], said["error"]) == ("failed", "cancelled", f"the run {why}")
    ends = [call.completed.abandoned for call in recording.root.calls.values() if call.completed]
    assert ends[1:] == ([] if where == "model" else [kind == "block"])
    assert (await reproduce(recording)).divergences == ()


def test_what_a_signal_handler_raises_ends_the_run(tmp_path: Path) -> None:
    """A handler of the application's that raises in `run_sync` leaves no agent behind that runs further tools."""
    ran: list[int] = []

    @tool
    async def wait(step: int) -> str:
        """Wait, for ever unless the run ends."""
        ran.append(step)
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.Event().wait()
        return ""

    def raising(*_: object) -> None:
        raise TimeoutError("alarm")

    before = signal.signal(signal.SIGUSR1, raising)
    agent = Agent(ScriptedModel([call("wait", step=0), call("wait", step=1)]), tools=[wait], trace=tmp_path)
    try:
        with pytest.raises(TimeoutError, match="alarm"):
            agent.run_sync("Go.", run_id="run")
    finally:
        signal.signal(signal.SIGUSR1, before)
    ending = load_recording("run", tmp_path).ending
    assert ending is not None
    assert (ran, data(ending)["terminated_by"]) == ([0], "cancelled")


SYNC = [
    *(("model", kind) for kind in ("block", "spin", "swallow")),
    *(("async tool", kind) for kind in ("block", "spin", "read", "swallow", "wait")),
    *(("sync tool", kind) for kind in ("block", "spin", "read")),
    *(("hook after observe", kind) for kind in ("block", "swallow")),
]
ASYNC = [("model", "swallow"), ("sync tool", "spin"), ("hook after observe", "swallow"), ("approver", "swallow")]


@pytest.mark.parametrize(
    ("how", "where", "kind"),
    sample(
        [*(("run_sync", *each) for each in SYNC), *(("run", *each) for each in ASYNC)],
        [("run_sync", "model", "swallow"), ("run_sync", "sync tool", "spin"), ("run", "approver", "swallow")],
    ),
)
def test_a_program_exits_without_what_its_run_left_behind(tmp_path: Path, how: str, where: str, kind: str):
    """It has its result at the run's limit and exits within half a second of that; nothing complains."""
    with program(how, where, kind, tmp_path, "0.5") as started:
        assert started.stdout is not None
        assert [started.stdout.readline() for _ in "ab"] == ["closed\n", "timeout_after\n"]
        began = time.monotonic()
        assert started.communicate(timeout=20) == ("", "")
        assert time.monotonic() - began < bound(0.5)
        assert started.returncode == 0
    assert check_trace(tmp_path / "run.jsonl").ok


FORKING = """
import os, signal, sys, time
from playhead import Agent, UsageError, recorded, tool
from playhead.testing import ScriptedModel, call, text

def ends_by_signal():
    os.write(2, b".")
    time.sleep(30)

def ended(child, wait):
    os.kill(child, signal.SIGTERM)
    began = time.monotonic()
    return wait(), time.monotonic() - began < float(sys.argv[2])

@tool
def fork() -> list:
    "Fork, and end the child."
    child = os.fork()
    if not child:
        ends_by_signal()
    time.sleep(0.05)
    return ended(child, lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

@tool
def run_there() -> int:
    "Fork, and run an agent in the child."
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        Agent(ScriptedModel([text("done")]), trace=None).run_sync("Do it.")
    except UsageError:
        os._exit(3)
    os._exit(4)

@tool
async def go_on() -> str:
    "Fork, and return in parent and child."
    if sys.version_info < (3, 14) and (child := os.fork()):  # later asyncio lets no coroutine go on in a child
        os.waitpid(child, 0)
    return "forked"

def last(request):
    os.write(1, b"asked\\n")
    return text("done")

turns = [call("fork"), call("run_there"), call("go_on"), last]
result = Agent(ScriptedModel(turns), tools=[fork, run_there, go_on], trace=sys.argv[1]).run_sync("Do it.", run_id="run")
print([step.content for step in result.steps if step.type == "observation"])

@recorded(trace=sys.argv[1])
def program() -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        fork()
    except Exception as error:  # a pool waits for ever where anything else ends its worker
        os._exit(5 * isinstance(error, UsageError))

print(program())
"""


def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path):
    """SIGTERM ends the child of a fork at once; it runs no agent, goes on with no run and no program, and writes into no trace."""
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path), str(bound(0.3))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "asked\n['[-15, true]', '3', 'forked']\n5\n"), done.stderr
    path = tmp_path / "run.jsonl"
    assert check_trace(path).ok
    assert path.read_text().count('"kind":"tool-call-completed"') == 3
