"""Tool calls: their two events, result or error, order, and cache."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import TickingClock, call, calls, text
from playhead.trace.values import content_hash, from_json
from tests.kernel.runs import Ran, data, record

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_call_is_two_events(tmp_path: Path):
    """The first is written before the body starts, the second after it ended."""
    during: list[str] = []

    @tool
    def look(key: str) -> dict[str, Any]:
        """Look."""
        during.extend((tmp_path / "run.jsonl").read_text().splitlines())
        return {"key": key, "height": 8848}

    run = await record(tmp_path, [call("look", key="Everest"), text("8848")], look)
    started, completed = run.events("tool-call-started", "tool-call-completed")
    assert data(started) == {
        "call_id": "call_0_0",
        "tool": "look",
        "position": 0,
        "args": {"key": "Everest"},
        "args_hash": content_hash({"key": "Everest"}),
        "request": 0,
    }
    assert data(completed) == {
        "call_id": "call_0_0",
        "tool": "look",
        "position": 0,
        "ok": True,
        "result": {"key": "Everest", "height": 8848},
    }
    assert '"kind":"tool-call-started"' in during[-1]
    assert [record.iteration for record in run.recording.records if "tool-call" in record.kind] == [0, 0]
    assert run.steps() == [
        ("action", "look", '{"key": "Everest"}'),
        ("observation", "look", '{"key": "Everest", "height": 8848}'),
    ]


class Unspeakable(Exception):  # noqa: N818 - a tool may raise anything
    def __str__(self) -> str:
        raise RuntimeError("no words")


RAISED: list[tuple[BaseException, str, str]] = [
    (KeyError("a"), "KeyError", "'a'"),
    (ValueError(), "ValueError", "ValueError"),
    (ValueError("\ud800"), "ValueError", "\ufffd"),
    (Unspeakable(), "Unspeakable", "Unspeakable"),
    (SystemExit(3), "SystemExit", "3"),
    (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup", "two (2 sub-exceptions)"),
    (asyncio.CancelledError(), "CancelledError", "CancelledError"),
]


@pytest.mark.parametrize("kind", ["sync", "async", "awaitable"])
async def test_every_way_to_fail(tmp_path: Path, kind: str):
    """Any exception of a body is a failed call that the model is told of, and the run continues."""

    def fail(place: int) -> str:
        raise RAISED[place][0]

    async def fail_async(place: int) -> str:
        return fail(place)

    def fail_awaited(place: int) -> Any:
        return fail_async(place)

    made = tool(name="fail")({"sync": fail, "async": fail_async, "awaitable": fail_awaited}[kind])
    turn = calls(*(call("fail", place=place) for place in range(len(RAISED))))
    run = await record(tmp_path, [turn, text("done")], made)
    assert run.result.output == "done"
    assert [(event.ok, event.error.type, event.error.message) for event in run.events("tool-call-completed")] == [
        (False, *said) for _, *said in RAISED
    ]


@pytest.mark.parametrize(("name", "guess"), [("lokup", " Did you mean 'lookup'?"), ("zzz", "")])
async def test_an_unknown_tool(tmp_path: Path, name: str, guess: str):
    """The model is told the known tools and the nearest one."""

    @tool
    def lookup() -> None:
        """Look."""

    @tool
    def write() -> None:
        """Write."""

    run = await record(tmp_path, [call(name), text("done")], lookup, write, repair=False)
    (completed,) = run.events("tool-call-completed")
    assert data(completed)["error"] == {
        "type": "UnknownTool",
        "message": f"there is no tool {name!r}.{guess} Known: lookup, write.",
    }


async def test_results_that_json_cannot_hold(tmp_path: Path):
    """They are tagged: exactly where possible, else marked lossy."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    exact = [None, b"\xff\x00", {1, 2}, {"a": {1: "x", "1": "y"}}, float("nan"), 2**70, {"$type": "int"}]
    lossy = [cycle, deep, (each for each in "ab"), Hostile()]

    @tool
    def give(place: int) -> Any:
        """Give it."""
        return [*exact, *lossy][place]

    turn = calls(*(call("give", place=place) for place in range(len(exact) + len(lossy))))
    run = await record(tmp_path, [turn, text("done")], give)
    results = [event.result for event in run.events("tool-call-completed")]
    assert run.result.output == "done"
    assert repr([from_json(each) for each in results[: len(exact)]]) == repr(exact)
    found, *others = results[len(exact) :]
    assert found == [{"$type": "cycle", "lossy": True}]
    depth, inner = 0, others[0]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert (depth, inner) == (100, {"$type": "too-deep", "depth": 100, "lossy": True})
    assert (others[1]["$type"], others[1]["class"]) == ("object", "builtins.generator")
    assert others[2]["repr"] == "<RuntimeError>"
    assert (await reproduce(run.recording)).identical


# --- cache ------------------------------------------------------------------------------------------------------------


async def cached(folder: Path, *keys: Any, **declared: Any) -> tuple[Ran, list[Any]]:
    """Call a cacheable tool with these arguments, one turn each, and return how often its body ran."""
    ran: list[Any] = []

    @tool(read_only=True, cache=True, **declared)
    async def remember(key: Any, more: int = 0) -> list[Any]:
        """Remember."""
        ran.append(key)
        if key == "bad":
            raise ValueError("bad")
        return [key, len(ran)]

    turns = [call("remember", **(key if isinstance(key, dict) else {"key": key})) for key in keys]
    return await record(folder, [*turns, text("done")], remember, max_iterations=20), ran


async def test_a_repeated_call_is_cached(tmp_path: Path):
    """Equal arguments get the same result without another run, and the trace says so."""
    run, ran = await cached(tmp_path, "a", "b", "a", {"key": {"x": 1, "y": 2}}, {"key": {"y": 2, "x": 1}})
    assert ran == ["a", "b", {"x": 1, "y": 2}]
    completed = run.events("tool-call-completed")
    assert [(event.result[1], event.cached) for event in completed] == [
        (1, False),
        (2, False),
        (1, True),
        (3, False),
        (3, True),
    ]


# --- threads ----------------------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """Tools that record which of them run at the same time."""

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
    ("names", "limit", "together"),
    [
        ("abcd", 3, [("a",), ("a", "b"), ("a", "b", "c"), ("d",)]),
        ("ab", 1, [("a",), ("b",)]),
        ("AB", 3, [("A",), ("B",)]),
        ("abCde", 3, [("a",), ("a", "b"), ("C",), ("d",), ("d", "e")]),
    ],
)
async def test_which_calls_run_in_parallel(tmp_path: Path, names: str, limit: int, together: list[tuple[str, ...]]):
    """Neighbouring read-only calls run in parallel, up to the limit; one with side effects runs alone, in its place."""
    watch = Watch()
    run = await record(tmp_path, [turn_of(names), text("done")], *watch.tools(), max_parallel=limit)
    assert watch.seen == together
    assert [message.content for message in run.model.requests[1].messages[3:]] == list(names)


async def test_results_join_in_the_order_of_the_calls(tmp_path: Path):
    """Results join the thread and the steps in the order of the calls, in whichever order these finish."""
    watch = Watch()
    turn = calls(*(call("read", name=name, turns=9 - 3 * number) for number, name in enumerate("abc")))
    run = await record(tmp_path, [turn, text("done")], *watch.tools())
    assert [event.result for event in run.events("tool-call-completed")] == ["c", "b", "a"]
    assert [event.position for event in run.events("tool-call-completed")] == [2, 1, 0]
    assert [event.ref.call for event in run.events("message-added")[3:6]] == ["call_0_0", "call_0_1", "call_0_2"]
    assert [content for kind, _, content in run.steps() if kind == "observation"] == ["a", "b", "c"]


async def test_a_cache_expires(tmp_path: Path):
    """A result is cached for its seconds by the run's clock; the recording is reproduced."""
    ran: list[str] = []
    clock = TickingClock()

    @tool(read_only=True, cache=10)
    async def look(key: str) -> str:
        """Look."""
        ran.append(key)
        return key

    @tool
    async def wait(seconds: int) -> str:
        """Let time pass."""
        clock._now_us += seconds * 1_000_000
        return "waited"

    turns = [
        call("look", key="a"),
        call("wait", seconds=5),
        call("look", key="a"),
        call("wait", seconds=6),
        call("look", key="a"),
    ]
    run = await record(tmp_path, [*turns, text("done")], look, wait, clock=lambda: clock)
    looked = [event.cached for event in run.events("tool-call-completed") if event.tool == "look"]
    assert (ran, looked) == (["a", "a"], [False, True, False])
    assert (await reproduce(run.recording)).identical
