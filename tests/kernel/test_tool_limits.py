from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import load_recording, tool
from playhead.kernel.lifecycle import threads
from playhead.kernel.lifecycle.bodies import run_in_thread
from playhead.replay import reproduce
from playhead.testing import call, text
from playhead.trace.clock import SystemClock
from playhead.trace.integrity import check_trace
from tests.kernel.runs import data, make_agent, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIMEOUT = {"type": "Timeout", "message": "slow did not finish within 0.005 s"}


def until(condition: Callable[[], object]) -> None:
    """Wait until a thread has done what it does; fail when it never does."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def test_an_async_body_is_cancelled_at_its_limit(tmp_path: Path):
    """At the limit the body is cancelled, may tidy up, and the model is told; the run goes on."""
    tidied: list[str] = []

    @tool(timeout=0.005)
    async def slow() -> str:
        """Take too long."""
        try:
            await anyio.sleep_forever()
        finally:
            tidied.append("up")
        return "never"

    run = await record(tmp_path, [call("slow"), text("done")], slow)
    (completed,) = run.events("tool-call-completed")
    assert data(completed) == {
        "call_id": "call_0_0",
        "tool": "slow",
        "position": 0,
        "ok": False,
        "error": TIMEOUT,
        "ended": "timeout",
    }
    assert (tidied, run.result.output) == (["up"], "done")
    assert run.model.requests[1].messages[-1].content == "error: slow did not finish within 0.005 s"


async def test_a_sync_body_is_abandoned_at_its_limit(tmp_path: Path):
    """A thread cannot be cancelled: the run goes on at once, and the late return is noted and never used."""
    release, late = threading.Event(), threading.Event()

    @tool(timeout=0.005)
    def slow() -> str:
        """Take too long."""
        release.wait(10)
        return "late"

    def last(_request: Any) -> Any:
        release.set()
        late.wait(10)
        return text("done")

    agent = make_agent(tmp_path, [call("slow"), last], slow, clock=SystemClock)
    agent.subscribe("tool-call-late", lambda _record: late.set())
    result = await agent.run("Do it.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    kinds = [record.kind for record in recording.records if record.kind.startswith("tool-call")]
    assert kinds == ["tool-call-started", "tool-call-completed", "tool-call-late"]
    completed, noted = [record.event for record in recording.records if record.kind in kinds[1:]]
    assert data(completed) == {
        "call_id": "call_0_0",
        "tool": "slow",
        "position": 0,
        "ok": False,
        "error": TIMEOUT,
        "abandoned": True,
        "ended": "timeout",
    }
    assert data(noted) == {"call_id": "call_0_0", "tool": "slow", "ok": True}
    assert (result.output, [step.content for step in result.steps]) == ("done", ["{}", f"error: {TIMEOUT['message']}"])
    assert (await reproduce(recording)).identical


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_call_that_a_cancelled_run_leaves_behind(tmp_path: Path, kind: str):
    """A cancelled run says of each call whether its body may still be running."""
    release, started = threading.Event(), threading.Event()

    @tool(name="wait")
    def wait() -> None:
        """Wait."""
        started.set()
        release.wait(10)

    @tool(name="wait")
    async def wait_async() -> None:
        """Wait."""
        started.set()
        await anyio.sleep_forever()

    agent = make_agent(tmp_path, [call("wait")], wait if kind == "sync" else wait_async)
    recorded: list[Any] = []
    agent.subscribe("tool-call-completed", lambda record: recorded.append(data(record.event)))
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Do it.")
        await anyio.to_thread.run_sync(started.wait)
        group.cancel_scope.cancel()
    release.set()
    assert recorded == [
        {
            "call_id": "call_0_0",
            "tool": "wait",
            "position": 0,
            "ok": False,
            "error": {"type": "Cancelled", "message": "the run ended before the call returned"},
            "ended": "cancelled",
            **({"abandoned": True} if kind == "sync" else {}),
        }
    ]


HUNG = """
import sys, time
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

@tool(timeout=0.01)
def hang() -> str:
    "Never return."
    time.sleep(3600)

agent = Agent(ScriptedModel([call("hang"), text("done")]), tools=[hang], trace=sys.argv[1])
print(agent.run_sync("Do it.").output)
"""


def test_a_hung_body_does_not_keep_the_program_from_ending(tmp_path: Path):
    """A program whose tool hangs for an hour prints its result and ends."""
    done = subprocess.run(
        [sys.executable, "-c", HUNG, str(tmp_path)], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# --- the threads themselves ------------------------------------------------------------------------------------------


async def test_threads_are_used_again():
    """One call after the other needs one thread, and the last result is not kept alive by it."""
    import weakref

    class Result:
        pass

    def work() -> tuple[int, Result]:
        return threading.get_ident(), Result()

    seen = set()
    for _ in range(20):
        thread, value = await run_in_thread(work)
        seen.add(thread)
    last = weakref.ref(value)
    del value
    until(lambda: last() is None)
    assert len(seen) == 1


FORK = """
import os, sys
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, text

def agent(*turns, tools=()):
    return Agent(ScriptedModel(turns), tools=tools, trace=sys.argv[1])

@tool
def ping() -> str:
    "Answer."
    return "pong"

@tool
def fork() -> int:
    "Go on in two processes."
    child = os.fork()
    if child == 0:
        try:
            answer = agent(call("ping"), text("from the child"), tools=[ping]).run_sync("Go on.", run_id="child").output
            os._exit(7 if answer == "from the child" else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

print(agent(call("ping"), call("fork"), text("done"), tools=[ping, fork]).run_sync("Fork.", run_id="parent").steps[-1].content)
"""


def test_a_fork_in_the_middle_of_a_run(tmp_path: Path):
    """The child of a fork writes nothing into its parent's trace, and can run agents with tools of its own."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    for name, events in (("parent", 2), ("child", 1)):
        path = tmp_path / f"{name}.jsonl"
        assert check_trace(path).ok
        assert path.read_text().count('"kind":"tool-call-completed"') == events


async def test_run_blocking_works_inside_a_loop():
    """A running loop, as in a notebook, is no obstacle."""

    async def answer() -> int:
        await anyio.lowlevel.checkpoint()
        return threading.get_ident()

    assert threads.run_blocking(answer) != threading.get_ident()
