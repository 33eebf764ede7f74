from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import tool
from playhead.errors import TraceWriteError
from playhead.testing import call, calls, text
from playhead.trace.recorder import Recorder
from tests.kernel.runs import make_agent, record

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Watch:
    """Tools that note which of them run at the same time."""

    running: list[str] = field(default_factory=list)
    seen: list[tuple[str, ...]] = field(default_factory=list)

    async def _run(self, name: str, turns: int) -> str:
        self.running.append(name)
        self.seen.append(tuple(self.running))
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        self.running.remove(name)
        return name

    def tools(self) -> list[Any]:
        """Return a tool that only reads and one that writes."""

        @tool(read_only=True)
        async def read(name: str, turns: int = 3) -> str:
            """Read."""
            return await self._run(name, turns)

        @tool
        async def write(name: str, turns: int = 3) -> str:
            """Write."""
            return await self._run(name, turns)

        return [read, write]


def turn_of(names: str) -> Any:
    """Return a turn with one call per letter: small ones read, capital ones write."""
    return calls(*(call("read" if name.islower() else "write", name=name) for name in names))


@pytest.mark.parametrize(
    ("names", "together"),
    [
        ("a", [("a",)]),
        ("abc", [("a",), ("a", "b"), ("a", "b", "c")]),
        ("AB", [("A",), ("B",)]),
        ("abCde", [("a",), ("a", "b"), ("C",), ("d",), ("d", "e")]),
        ("AbC", [("A",), ("b",), ("C",)]),
    ],
)
async def test_who_runs_beside_whom(tmp_path: Path, names: str, together: list[tuple[str, ...]]):
    """Read-only calls that stand side by side run at once; what may have a side effect runs alone, in its place."""
    watch = Watch()
    run = await record(tmp_path, [turn_of(names), text("done")], *watch.tools())
    assert watch.seen == together
    assert [message.content for message in run.model.requests[1].messages[3:]] == list(names)


@pytest.mark.parametrize(("limit", "most"), [(None, 3), (1, 1), (2, 2), (9, 8)])
async def test_how_many_run_at_once(tmp_path: Path, limit: int | None, most: int):
    """At most three read-only calls of a turn run at once, or as many as the agent says."""
    watch = Watch()
    options = {} if limit is None else {"max_parallel": limit}
    await record(tmp_path, [turn_of("abcdefgh"), text("done")], *watch.tools(), **options)
    assert max(map(len, watch.seen)) == most
    assert sorted(names[-1] for names in watch.seen) == list("abcdefgh")


async def test_results_join_in_asking_order(tmp_path: Path):
    """Whatever order calls finish in, their results join the thread and the steps in the order of asking."""
    watch = Watch()
    turn = calls(*(call("read", name=name, turns=9 - 3 * number) for number, name in enumerate("abc")))
    run = await record(tmp_path, [turn, text("done")], *watch.tools())
    assert [event.result for event in run.events("tool-call-completed")] == ["c", "b", "a"]
    assert [event.position for event in run.events("tool-call-completed")] == [2, 1, 0]
    assert [event.ref.call for event in run.events("message-added")[3:6]] == ["call_0_0", "call_0_1", "call_0_2"]
    assert [content for kind, _, content in run.steps() if kind == "observation"] == ["a", "b", "c"]


async def test_a_failure_beside_others_is_its_own(tmp_path: Path):
    """One of several calls that run at once fails: the others finish and keep their results."""

    @tool(read_only=True)
    async def read(name: str) -> str:
        """Read."""
        await anyio.sleep(0.001 if name == "a" else 0)
        if name == "b":
            raise ValueError(name)
        return name

    turn = calls(*(call("read", name=name) for name in "abc"))
    run = await record(tmp_path, [turn, text("done")], read)
    assert [step for step in run.steps() if step[0] == "observation"] == [
        ("observation", "read", "a"),
        ("observation", "read", "error: b"),
        ("observation", "read", "c"),
    ]


async def test_a_lost_event_beside_other_calls_does_not_cut_them_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """When the run has to stop at one of several calls, those that are under way end in order and are recorded."""
    monkeypatch.setenv("PLAYHEAD_ON_TRACE_ERROR", "stop")
    ended: list[str] = []
    recorded: list[str] = []
    original = Recorder.write

    def lose(self: Recorder, prepared: Any, iteration: int | None) -> bool:
        lost = prepared.event.kind == "tool-call-completed" and prepared.event.call_id == "call_0_1"
        return not lost and original(self, prepared, iteration)

    @tool(read_only=True)
    async def read(name: str) -> str:
        """Read."""
        await anyio.sleep(0 if name == "b" else 0.01)
        ended.append(name)
        return name

    monkeypatch.setattr(Recorder, "write", lose)
    agent = make_agent(tmp_path, [turn_of("abcdef")], read)
    agent.subscribe("tool-call-completed", lambda record: recorded.append(record.event.call_id))  # type: ignore[attr-defined]
    with pytest.raises(TraceWriteError, match="tool-call-completed could not be written"):
        await agent.run("Do it.")
    assert (ended, sorted(recorded)) == (["b", "a", "c"], ["call_0_0", "call_0_2"])
