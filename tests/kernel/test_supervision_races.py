"""Ends that meet: hostile ids, slow code of the user's, a second cancellation, and a clock that nobody could look at."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, load_recording, tool
from playhead.compose.killswitches import circuit_breaker, clock, kill_file, timeout_after
from playhead.kernel.lifecycle import watch as watching
from playhead.kernel.lifecycle.watch import Watch
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.integrity import check_trace
from playhead.trace.types import ToolCall
from playhead.trace.usage import Prices
from tests.options import grouped
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: dict[str, Any] = {"rationale": False, "meta_tools": ()}


@tool(read_only=True)
def look(key: str) -> str:
    """Look."""
    return f"found {key}"


@tool(timeout=None)
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(3600)
    return "late"


def kinds(path: Path) -> list[str]:
    """Return the kinds of a trace that is closed and sound."""
    assert check_trace(path).ok
    return [record.kind for record in load_recording(path).records]


@pytest.mark.parametrize("name", ["agent", "", "request 0.0", "0.0", "1.0", "call agent"])
def test_a_call_may_have_any_id(tmp_path: Path, name: str):
    """Whatever a provider calls a call: the run that made it ends, and is recorded to its end."""
    turn = text("")
    turns = [type(turn)(calls=(ToolCall(id=name, name="look", arguments={"key": "a"}),)), text("fine")]
    result = Agent(ScriptedModel(turns), **grouped(tools=[look], trace=tmp_path, **OPTIONS)).run_sync("x", run_id="run")
    assert (result.output, result.trace_complete) == ("fine", True)
    assert kinds(tmp_path / "run.jsonl")[-1] == "run-completed"


@pytest.mark.parametrize("limit", [1e18, timedelta.max, "999999999999h"])
def test_a_limit_beyond_all_time(limit: Any):
    """It never fires, and keeps no other one from firing."""
    far = Agent(ScriptedModel([text("a")]), **grouped(compose=[timeout_after(limit)], trace=None, **OPTIONS))
    assert far.run_sync("x").output == "a"
    near = Agent(
        ScriptedModel([call("wait")]), **grouped(tools=[wait], compose=[timeout_after(0.1)], trace=None, **OPTIONS)
    )
    assert near.run_sync("x").terminated_by == "timeout_after"


def test_a_thread_that_the_system_does_not_give(monkeypatch: pytest.MonkeyPatch):
    """Once there is one, what waits is done."""
    watch, done = Watch(), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("no thread")))
        with pytest.raises(RuntimeError, match="no thread"):
            watch.after(0.0, done.set)
    watch.after(0.0, lambda: None)
    assert done.wait(2)


@pytest.mark.parametrize("kind", ["llm-requested", "tool-call-started"])
def test_nothing_starts_after_the_end_however_slow_redaction_is(tmp_path: Path, kind: str):
    """A rule of the user's that takes its time keeps nobody from ending the run, and lets nothing start after that."""
    for number in range(sample(12, 3)):
        limit_s = 0.02 + number * 0.004

        def slow(content: str) -> str:
            if "slow" in content:
                time.sleep(0.03)
            return content

        asked: list[float] = []

        class Model(ScriptedModel):
            async def complete(self, request: Any, asked: list[float] = asked) -> Any:
                asked.append(time.monotonic())
                return await super().complete(request)

        turns = [call("look", key="slow")] * 9 if kind == "tool-call-started" else [call("look", key="a")] * 9
        prompt = "slow" if kind == "llm-requested" else "quick"
        agent = Agent(
            Model(turns),
            **grouped(
                tools=[look],
                compose=[timeout_after(limit_s)],
                redact=[slow],
                parameters={"stop": prompt},
                trace=tmp_path,
                **OPTIONS,
            ),
        )
        agent.run_sync("x", run_id=f"run-{number}")
        found = kinds(tmp_path / f"run-{number}.jsonl")
        if "killswitch-fired" in found:
            after = found[found.index("killswitch-fired") :]
            assert "llm-requested" not in after
            assert "tool-call-started" not in after
            assert len(asked) == found.count("llm-requested")


def test_an_end_that_meets_the_moment_at_which_it_is_left_behind(tmp_path: Path):
    """Code that comes back just then: whoever closes the run closes all of it."""
    for number in range(0, 20, sample(1, 4)):

        @tool(timeout=None)
        async def tidies(number: int = number) -> str:
            """Tidy up for about as long as it may."""
            try:
                await asyncio.sleep(3600)
            finally:
                time.sleep(0.095 + number * 0.0005)  # noqa: ASYNC251 - it holds up the loop
            return "x"

        agent = Agent(
            ScriptedModel([call("tidies")]),
            **grouped(tools=[tidies], compose=[timeout_after(0.02)], trace=tmp_path, **OPTIONS),
        )
        agent.subscribe("killswitch-fired", lambda _: time.sleep(0.005))
        result = agent.run_sync("x", run_id=f"run-{number}")
        assert result.terminated_by == "timeout_after"
        assert kinds(tmp_path / f"run-{number}.jsonl")[-1] == "run-completed"


async def test_a_second_cancellation(tmp_path: Path):
    """Whoever does not wait for what is put in order gets a closed trace all the same."""

    @tool(timeout=None)
    async def stubborn() -> str:
        """Take long to tidy up."""
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)
        return "x"

    agent = Agent(ScriptedModel([call("stubborn")]), **grouped(tools=[stubborn], trace=tmp_path, **OPTIONS))
    task = asyncio.create_task(agent.run("x", run_id="run"))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = kinds(tmp_path / "run.jsonl")
    assert found[-3:] == ["tool-call-completed", "kernel-state-snapshot", "run-completed"]


async def test_no_agent_starts_after_the_end(tmp_path: Path):
    """Not one either whose adapter took its time to say what it costs."""

    class Slow(ScriptedModel):
        async def prices(self) -> Prices | None:
            await asyncio.sleep(0.05)
            return Prices(input_usd=0, output_usd=0)

    @tool(read_only=True)
    async def fails() -> str:
        """Fail."""
        raise ValueError

    child = Agent(Slow([text("x")]), **grouped(name="child", **OPTIONS))
    turn = calls(call("child", task="Go."), call("fails"))
    agent = Agent(
        ScriptedModel([turn]), **grouped(tools=[child, fails], compose=[circuit_breaker(1)], trace=tmp_path, **OPTIONS)
    )
    result = await agent.run("x", run_id="run")
    assert result.terminated_by == "circuit_breaker"
    assert "agent-started" not in kinds(tmp_path / "run.jsonl")


def test_a_limit_that_passed_while_nobody_could_look(tmp_path: Path):
    """Code that holds the interpreter is late, and its result is not used; nothing starts after it."""

    @tool
    def holds() -> str:
        """Hold the interpreter."""
        re.match(r"(a+)+$", "a" * 25 + "b")
        return "late"

    for number in range(sample(4, 1)):
        agent = Agent(
            ScriptedModel([call("look", key="a"), call("holds"), text("never")]),
            **grouped(tools=[look, holds], compose=[timeout_after(0.5)], trace=tmp_path, **OPTIONS),
        )
        result = agent.run_sync("x", run_id=f"run-{number}")
        assert (result.terminated_by, result.output) == ("timeout_after", "found a")


async def test_an_async_tool_that_holds_up_the_loop_is_too_late(tmp_path: Path):
    """Its own limit counts though nobody could end it."""

    @tool(timeout=0.05)
    async def blocks() -> str:
        """Block the loop."""
        time.sleep(0.15)  # noqa: ASYNC251 - it holds up the loop
        return "late"

    agent = Agent(ScriptedModel([call("blocks"), text("done")]), **grouped(tools=[blocks], trace=tmp_path, **OPTIONS))
    result = await agent.run("x", run_id="run")
    observed = [step.content for step in result.steps if step.type == "observation"]
    assert (result.output, "did not finish within" in observed[0]) == ("done", True)


def test_a_hook_that_was_left_behind_is_named(tmp_path: Path):
    """Whoever reads the trace finds what hung."""

    def block(harness: Any) -> None:
        harness.before("think", lambda _: time.sleep(1), name="slow one")

    agent = Agent(
        ScriptedModel([text("x")]), **grouped(compose=[timeout_after(0.05), block], trace=tmp_path, **OPTIONS)
    )
    agent.run_sync("x", run_id="run")
    failed: Any = next(r.event for r in load_recording(tmp_path / "run.jsonl").records if r.kind == "hook-failed")
    assert (failed.hook, failed.where) == ("slow one", "before think")
    assert failed.error == "it had not come back when the run ended"


def test_what_a_kill_file_says_is_plain(tmp_path: Path):
    """Control characters of it reach no result."""
    (tmp_path / "STOP").write_bytes(b"\xff\x1b[31m\x00 enough\r\n")
    agent = Agent(ScriptedModel([text("x")]), **grouped(compose=[kill_file(tmp_path / "STOP")], trace=None, **OPTIONS))
    because = agent.run_sync("x").terminated_because
    assert because is not None
    assert because.isprintable()
    assert "enough" in because


def test_a_clock_that_passes_the_limit_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch):
    """It is read once for each look: a limit that passes just then is found at the next, and not forgotten."""
    fired: list[str] = []
    monkeypatch.setattr(clock, "interrupt", lambda _session, switch, _answer: fired.append(switch))
    waiting: list[Any] = []
    monkeypatch.setattr(watching.watch, "after", lambda _seconds, action: waiting.append(action))
    session: Any = None
    guard = clock.Clocked(session, "timeout_after", 1.0, "stop", "1 s has passed")
    times = iter([0.0, 0.999, 1.001, 1.002])
    guard.now = lambda: next(times)
    guard.start()
    while waiting and not fired:
        waiting.pop(0)()
    assert fired == ["timeout_after"]
