from __future__ import annotations

import errno
import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, tool
from playhead.diagnose.integrity import check_trace
from playhead.errors import TraceWriteError
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.recorder import Recorder
from playhead.trace.writer import Written
from tests.kernel.runs import make_agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead import RunResult


class FullDisk:
    """`os.write`, until the disk is full: for ever, or for one write."""

    def __init__(self, at: int, *, lasting: bool) -> None:
        self.at = at
        self.lasting = lasting
        self.count = 0
        self.refused = 0
        self.real = os.write

    def __call__(self, descriptor: int, content: Any) -> int:
        if b'"pid"' in bytes(content):  # the control folder's, which is no part of the trace
            return self.real(descriptor, content)
        self.count += 1
        if self.count == self.at or (self.lasting and self.count > self.at):
            self.refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.real(descriptor, content)


class Till:
    """A tool with a side effect, and how often it had it."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def tool(self) -> Any:
        """Return the tool."""

        @tool
        async def pay(to: str) -> str:
            """Pay."""
            self.paid.append(to)
            return f"paid {to}"

        return pay


TURNS = [call("pay", to="ann"), calls(call("pay", to="bob"), call("pay", to="eve")), text("done")]


def every_write(monkeypatch: pytest.MonkeyPatch, *, lasting: bool) -> Iterator[tuple[int, FullDisk]]:
    """Yield a disk that is full from the first write on, then one from the second on, and so on until it is never."""
    for at in itertools.count(1):
        disk = FullDisk(at, lasting=lasting)
        with monkeypatch.context() as patch:
            patch.setattr("playhead.trace.blobs.os.write", disk)
            yield at, disk
        if not disk.refused:
            assert at > 20
            return


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
async def test_a_disk_that_fills_costs_events_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool, caplog: pytest.LogCaptureFixture
):
    """If any write fails, the result is right, and result and file say what is missing."""
    for at, disk in every_write(monkeypatch, lasting=lasting):
        till = Till()
        result = await make_agent(tmp_path, TURNS, till.tool()).run("Pay.", run_id=f"run-{at}")
        assert (result.output, result.usage.total_tokens, till.paid) == ("done", 17, ["ann", "bob", "eve"])
        assert result.trace_complete == (disk.refused == 0)
        assert_said(result, disk)
    assert all("events were not recorded: [Errno 28] No space left on device" in line for line in caplog.messages)
    assert len(caplog.messages) == at - 1


def assert_said(result: RunResult, disk: FullDisk) -> None:
    """Check that the trace of a run on a full disk does not pretend to be whole."""
    if disk.refused and disk.at == 1:
        assert result.trace_path is None  # without its first line there is no trace
        return
    assert result.trace_path is not None
    lines = result.trace_path.read_bytes().splitlines()
    last = json.loads(lines[-1]) if lines else {}
    check = check_trace(result.trace_path)
    if not disk.refused:
        assert (check.verdict, last["data"]["lost_events"]) == ("ok", 0)
    elif last["kind"] == "run-completed":
        assert (check.verdict, check.lost, last["data"]["lost_events"]) == ("lost-events", 1, 1)
    else:
        assert (check.verdict, check.events) == ("open", disk.at - 1)


@pytest.mark.slow
async def test_stop_at_a_lost_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With `PLAYHEAD_ON_TRACE_ERROR=stop`, no tool body runs after any lost event."""
    monkeypatch.setenv("PLAYHEAD_ON_TRACE_ERROR", "stop")
    for at, disk in every_write(monkeypatch, lasting=True):
        till = Till()
        stopped = False
        try:
            result = await make_agent(tmp_path, TURNS, till.tool()).run("Pay.", run_id=f"run-{at}")
        except TraceWriteError as error:
            stopped = str(error).endswith("could not be written to the trace: [Errno 28] No space left on device")
        path = tmp_path / f"run-{at}.jsonl"
        assert path.exists() == (at > 1)
        assert len(till.paid) == (path.read_text() if path.exists() else "").count('"kind":"tool-call-started"')
        assert stopped or (result.output, result.trace_complete) == ("done", disk.refused == 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llm-requested", "tool-call-started"])
async def test_a_loss_below_the_root_stops_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """A lost event of a sub-agent stops the whole run before a tool's body runs."""
    monkeypatch.setenv("PLAYHEAD_ON_TRACE_ERROR", "stop")
    till = Till()
    ends: list[Any] = []
    below = ScriptedModel([call("pay", to="child"), text("paid")])
    child = Agent(below, name="child", tools=[till.tool()])
    agent = make_agent(tmp_path, [call("child", task="Pay."), text("done")], child)
    agent.subscribe("run-completed", lambda record: ends.append(record.event))
    lost: list[Any] = []
    real = Recorder.write

    def write(recorder: Recorder, prepared: Any) -> Written:
        if (prepared.event.kind, prepared.owner) != (kind, "root/child@0.0") or lost:
            return real(recorder, prepared)
        lost.append(prepared)
        return Written(-1, 0, "", ok=False)

    monkeypatch.setattr(Recorder, "write", write)
    with pytest.raises(TraceWriteError, match=f"^{kind} could not be written to the trace"):
        await agent.run("Do it.")
    assert (till.paid, len(below.requests)) == ([], kind == "tool-call-started")
    assert [(event.status, event.terminated_by) for event in ends] == [("failed", "trace_error")]
