"""Handles: to await, to read, to pause, to stop and to end a run."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import RunHandle, load_recording, tool
from playhead.agent.streaming import StreamCancelled, StreamCompleted, collect
from playhead.compose import killswitches as ks
from playhead.diagnose.integrity import check_trace
from playhead.errors import ModelError, UsageError
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.types import Usage
from tests.kernel.hung import LIMIT_S, HungModel, hanging
from tests.kernel.runs import data, make_agent
from tests.kernel.strategies.looking import lookup
from tests.proving import sample
from tests.streams import names

if TYPE_CHECKING:
    from pathlib import Path


LOOKS = [call("lookup", key="a"), call("lookup", key="b"), call("lookup", key="c")]


class Gate:
    """A tool that waits until it is let go."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.open = anyio.Event()

    @property
    def tool(self) -> Any:
        """The tool."""

        @tool(read_only=True)
        async def gate() -> str:
            """Wait."""
            self.reached.set()
            await self.open.wait()
            return "passed"

        return gate


def events_of(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return the recorded events of these kinds, of a run that has ended."""
    recording = load_recording(folder / "run.jsonl")
    assert check_trace(recording.path).ok
    return [{"owner": each.owner, **data(each.event)} for each in recording.records if each.kind in kinds]


async def reproduced(folder: Path) -> None:
    """The recording alone gives the run back."""
    again = await reproduce(folder / "run.jsonl")
    assert again.identical, again.divergences


async def until(condition: Any) -> None:
    """Wait until something is so."""
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait for
            await anyio.sleep(0.001)


class TestItsEnd:
    async def test_awaiting_it_is_running(self, tmp_path: Path):
        """It gives the result that `run` would, and says how it went."""
        handle = make_agent(tmp_path, [*LOOKS[:1], text("42")], lookup).start("Do it.", run_id="run")
        assert isinstance(handle, RunHandle)
        assert (handle.status, handle.result, handle.run_id) == ("running", None, "run")
        with pytest.raises(UsageError, match="write `await handle`"):
            handle.wait()
        result = await handle
        assert (result.output, result.terminated_by, handle.status) == ("42", "end_turn", "completed")
        assert handle.result is result
        assert await handle is result
        await reproduced(tmp_path)

    async def test_it_raises_as_run_does(self, tmp_path: Path):
        """A model that fails is an error, which carries what was reached; the handle has that, too."""
        handle = make_agent(tmp_path, [LOOKS[0], error("no such model")], lookup).start("Do it.", run_id="run")
        with pytest.raises(ModelError, match="no such model"):
            await handle
        assert handle.status == "failed"
        assert handle.result is not None
        assert (handle.result.output, handle.result.terminated_by) == ("found a", "llm_error")

    async def test_bad_arguments_raise_at_the_start(self, tmp_path: Path):
        """A bad argument raises where the run is started, and nothing is written."""
        agent = make_agent(tmp_path, [text("42")])
        for bad in ({"density": "some"}, {"run_id": "../x"}):
            with pytest.raises(UsageError):
                agent.start("Do it.", **bad)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="a task is text"):
            agent.start(7)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="agents run in an asyncio event loop"):
            await anyio.to_thread.run_sync(agent.start, "Do it.")
        assert not any(tmp_path.iterdir())  # noqa: ASYNC240 - it is empty


class TestItsBlock:
    async def test_left_early(self, tmp_path: Path):
        """The run is ended with the block, says so, and leaves no task."""
        before = asyncio.all_tasks()
        gate = Gate()
        agent = make_agent(tmp_path, [LOOKS[0], call("gate")], lookup, gate.tool)
        async with agent.start("Do it.", run_id="run") as handle:
            await gate.reached.wait()
        assert (handle.status, asyncio.all_tasks()) == ("terminated", before)
        assert handle.result is not None
        assert (handle.result.output, handle.result.status) == ("found a", "failed")
        (fired,) = events_of(tmp_path, "killswitch-fired")
        assert fired == {
            "owner": "root",
            "switch": "terminate",
            "reason": "its `async with` block was left before it had ended",
            "on_trigger": "terminate",
            "at": "outside",
            "terminated_by": "terminated",
            "ends": "root",
        }
        await reproduced(tmp_path)


class TestPause:
    async def test_pause_and_resume(self, tmp_path: Path):
        """A paused run waits before its next phase, and continues as if it had not; the trace records both."""
        gate = Gate()
        agent = make_agent(tmp_path, [call("gate"), LOOKS[0], text("42")], lookup, gate.tool)
        handle = agent.start("Do it.", run_id="run")
        await gate.reached.wait()
        assert handle.pause("lunch")
        assert not handle.pause()
        gate.open.set()
        await until(lambda: handle.status == "paused")
        await anyio.sleep(0.01)
        before: str = handle.status
        assert before == "paused"
        assert handle.resume("back")
        assert not handle.resume()
        assert [name for name in names(await collect(handle)) if name.startswith("Run")] == ["RunPaused", "RunResumed"]
        assert (await handle).output == "42"
        assert events_of(tmp_path, "run-paused", "run-resumed") == [
            {"owner": "root", "reason": "lunch"},
            {"owner": "root", "reason": "back"},
        ]
        assert not handle.pause()
        assert not handle.resume()
        await reproduced(tmp_path)

    @pytest.mark.parametrize("name", ["timeout_after", "watchdog"])
    async def test_clocks_go_on(self, tmp_path: Path, name: str):
        """A deadline ends a paused run, and so does a watchdog: nothing happens while it is paused."""
        handle = make_agent(tmp_path, [text("42")], compose=[getattr(ks, name)(0.05)]).start("Do it.", run_id="run")
        handle.pause()
        result = await handle
        assert (result.terminated_by, handle.status) == (name, "completed")
        await reproduced(tmp_path)


class TestStop:
    async def test_an_answer_from_what_is_known(self, tmp_path: Path):
        """The turn ends with its calls; then one request without tools makes the output."""
        gate = Gate()
        model = ScriptedModel([calls(call("gate"), LOOKS[0]), text("as far as I know: a")])
        handle = make_agent(tmp_path, model, lookup, gate.tool).start("Do it.", run_id="run")
        await gate.reached.wait()
        assert handle.stop("enough")
        assert not handle.stop()
        gate.open.set()
        result = await handle
        assert (result.output, result.status, result.success) == ("as far as I know: a", "done", False)
        assert (result.terminated_by, result.terminated_source, result.terminated_because) == (
            "stopped",
            "caller",
            "enough",
        )
        assert (handle.status, result.iterations) == ("stopped", 1)
        assert model.requests[-1].tools == ()
        contents = [message.content for message in model.requests[-1].messages]
        assert contents[-3:-1] == ["passed", "found a"]
        assert str(contents[-1]).startswith("Stop here.")
        assert [each.get("purpose") for each in events_of(tmp_path, "llm-requested")] == [None, "synthesis"]
        await reproduced(tmp_path)

    async def test_without_an_answer(self, tmp_path: Path):
        """The best there was stays the output, and the result says why."""
        gate = Gate()
        turns = [calls(call("gate"), LOOKS[0]), error("no such model")]
        handle = make_agent(tmp_path, turns, lookup, gate.tool).start("Do it.", run_id="run")
        await gate.reached.wait()
        handle.stop("enough")
        gate.open.set()
        result = await handle
        assert (result.output, result.terminated_by, result.status) == ("found a", "stopped", "done")
        assert result.terminated_because == "enough (no answer could be made: no such model)"
        await reproduced(tmp_path)

    async def test_a_budget_guards_the_question(self, tmp_path: Path):
        """It is a request like any other: one that the ledger does not let pass is not sent."""
        spent = Usage(input_tokens=1_300, output_tokens=30)
        gate, model = Gate(), ScriptedModel([calls(LOOKS[0], call("gate"), usage=spent), text("never")])
        switch = ks.budget_limit(max_tokens=1_400, output_cap=50)
        handle = make_agent(tmp_path, model, lookup, gate.tool, compose=[switch]).start("Do it.", run_id="run")
        await gate.reached.wait()
        handle.stop()
        gate.open.set()
        result = await handle
        assert (result.terminated_by, result.output, len(model.requests)) == ("budget_limit", "passed", 1)
        await reproduced(tmp_path)

    async def test_agents_below_stop_first(self, tmp_path: Path):
        """Each sub-agent answers from what it knows, and the caller makes its own answer from that."""
        gate = Gate()
        below = make_agent(None, [call("gate"), text("half of it")], gate.tool, name="below")
        model = ScriptedModel([call("below", task="Go."), text("half, they say")])
        handle = make_agent(tmp_path, model, below).start("Do it.", run_id="run")
        await gate.reached.wait()
        handle.stop("enough")
        gate.open.set()
        assert (await handle).output == "half, they say"
        ends = events_of(tmp_path, "agent-completed", "run-completed")
        assert [(each["owner"], each["terminated_by"]) for each in ends] == [
            ("root/below@0.0", "stopped"),
            ("root", "stopped"),
        ]
        await reproduced(tmp_path)


class TestTerminate:
    async def test_at_once(self, tmp_path: Path):
        """Requests and calls in flight are cancelled, nothing starts any more, and the best output is kept."""
        gate = Gate()
        model = ScriptedModel([LOOKS[0], call("gate"), text("never")])
        handle = make_agent(tmp_path, model, lookup, gate.tool).start("Do it.", run_id="run")
        await gate.reached.wait()
        assert handle.terminate("no more")
        assert not handle.terminate()
        result = await handle
        assert (result.output, result.status, result.error) == ("found a", "failed", "no more")
        assert (result.terminated_by, result.terminated_source) == ("terminated", "killswitch:terminate")
        assert (handle.status, len(model.requests)) == ("terminated", 2)
        assert not handle.stop()
        last = (await collect(handle))[-1]
        assert isinstance(last, StreamCancelled)
        assert (last.reason, last.metadata["terminated_by"]) == ("no more", "terminated")
        await reproduced(tmp_path)


class TestFromAnotherThread:
    async def test_steered(self, tmp_path: Path):
        """Every wish may come from a thread that has no loop; it may wait for the result, too."""
        gate = Gate()
        model = ScriptedModel([call("gate"), text("so far")])
        handle = make_agent(tmp_path, model, lookup, gate.tool).start("Do it.", run_id="run")
        loop, seen = asyncio.get_running_loop(), []

        def steer() -> None:
            assert handle.pause("from a thread")
            loop.call_soon_threadsafe(gate.open.set)
            while handle.status != "paused":
                threading.Event().wait(0.001)
            assert handle.stop("enough")
            seen.append(handle.wait(10))

        await gate.reached.wait()
        await anyio.to_thread.run_sync(steer)
        assert seen == [await handle]
        assert (seen[0].output, seen[0].terminated_by) == ("so far", "stopped")
        await reproduced(tmp_path)

    async def test_read_and_awaited_in_another_loop(self, tmp_path: Path):
        """Events and result reach a loop of another thread."""
        handle = make_agent(tmp_path, [LOOKS[0], text("42")], lookup).start("Do it.")

        async def read() -> Any:
            return await collect(handle), await handle

        events, result = await anyio.to_thread.run_sync(lambda: anyio.run(read))
        assert isinstance(events[-1], StreamCompleted)
        assert result is await handle

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["block", "swallow"])
    def test_while_the_loop_is_blocked(self, tmp_path: Path, kind: str):
        """A waiting thread gets the result in time, though the run's own loop does not turn."""
        handles: queue.SimpleQueue[RunHandle] = queue.SimpleQueue()
        with hanging() as hang:
            model = HungModel(hang.asynchronously(kind))
            agent = make_agent(tmp_path, model, lookup, compose=[ks.timeout_after(LIMIT_S)])

            async def main() -> None:
                handles.put(agent.start("Do it.", run_id="run"))
                await anyio.to_thread.run_sync(hang.released.wait, 10)

            thread = threading.Thread(target=lambda: asyncio.run(main()))
            thread.start()
            handle = handles.get()
            result = handle.wait(5)
            assert (result.output, result.terminated_by, handle.status) == ("found a", "timeout_after", "completed")
            assert names(anyio.run(collect, handle))[-1] == "StreamCompleted"
            hang.released.set()
            thread.join(5)
            assert not thread.is_alive()


class TestAtEveryMoment:
    """A run with calls beside each other and an agent below, steered when its nth event is recorded."""

    @staticmethod
    async def steered(folder: Path, at: int, steer: Any) -> RunHandle | None:
        """Return the handle of the run, which is over and reproduced; None when it had no such event."""
        below = make_agent(None, [LOOKS[0], text("from below")], lookup, name="below")
        turns = [calls(LOOKS[0], call("below", task="Go."), LOOKS[1]), LOOKS[2], *[text("42")] * 3]
        agent, reached = make_agent(folder, turns, lookup, below, rationale=True), []

        def hear(record: Any) -> None:
            if record.seq == at:
                reached.append(steer(handle))

        agent.subscribe(None, hear)
        handle = agent.start("Do it.", run_id="run")
        await handle
        assert check_trace(folder / "run.jsonl").ok
        await reproduced(folder)
        return handle if reached else None

    @staticmethod
    def pause(handle: RunHandle) -> bool:
        """Pause a run for a moment."""
        asyncio.get_running_loop().call_later(0.002, handle.resume)
        return handle.pause()

    # The script's first turn is no answer: stopped there, a run has none, or the best result.
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("steer", "statuses", "outputs"),
        [
            (lambda handle: handle.stop("now"), {"stopped", "completed"}, {"42", "found c", "found b", None}),
            (lambda handle: handle.terminate("now"), {"terminated", "completed"}, None),
            (pause, {"completed"}, {"42"}),
        ],
        ids=["stopped", "terminated", "paused"],
    )
    async def test_steered(self, tmp_path: Path, steer: Any, statuses: set[str], outputs: set[Any] | None):
        """Whenever it is stopped, ended or paused, a run ends as it should, and its file gives it back."""
        found: list[RunHandle] = []
        for at in range(0, 1000, sample(1, 4)):
            handle = await self.steered(tmp_path / str(at), at, steer)
            if handle is None:
                break
            found.append(handle)
        assert len(found) > sample(20, 5)
        assert {handle.status for handle in found} <= statuses
        assert outputs is None or {getattr(handle.result, "output", None) for handle in found} <= outputs


async def test_a_replay_stops_where_the_run_was_stopped(tmp_path: Path):
    """A replay with something changed keeps the circumstances, and with them the stop."""
    agent = make_agent(tmp_path, [*LOOKS[:1], text("so far: a")], lookup)
    handle = agent.start("Do it.", run_id="run")

    def stop(_: Any) -> None:
        handle.stop("enough")

    agent.subscribe("tool-call-completed", stop)
    await handle
    other = make_agent(tmp_path, [LOOKS[0], text("a, then")], lookup)
    again = await replay(tmp_path / "run.jsonl", {"system_prompt": "Be brief."}, agent=other, trace=None)
    assert (again.run.output, again.run.terminated_by, again.stopped) == ("a, then", "stopped", None)
