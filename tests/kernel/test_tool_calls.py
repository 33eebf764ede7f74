from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import tool
from playhead.replay import reproduce
from playhead.testing import call, calls, text
from playhead.trace.values import content_hash, from_json
from tests.kernel.runs import Ran, data, record

if TYPE_CHECKING:
    from pathlib import Path


async def outcome_of(folder: Path, function: Any, **arguments: Any) -> dict[str, Any]:
    """Return how one call of a tool ended, but for its place."""
    run = await record(folder, [call(function.spec.name, **arguments), text("done")], function)
    assert run.result.output == "done"
    (completed,) = run.events("tool-call-completed")
    return {name: value for name, value in data(completed).items() if name not in ("call_id", "tool", "position")}


async def test_a_call_is_two_facts(tmp_path: Path):
    """A call is recorded before its body starts and after it ended, with everything that was asked and came back."""
    during: list[str] = []

    @tool
    def look(key: str) -> dict[str, Any]:
        """Look."""
        during.extend((tmp_path / "run.jsonl").read_text().splitlines())
        return {"key": key, "height": 8848}

    run = await record(tmp_path, [call("look", key="Everest"), text("8848")], look)
    started, completed = run.events("tool-call-started", "tool-call-completed")
    assert started.model_dump() == {
        "kind": "tool-call-started",
        "call_id": "call_0_0",
        "tool": "look",
        "position": 0,
        "args": {"key": "Everest"},
        "args_hash": content_hash({"key": "Everest"}),
        "args_fingerprint": None,
        "rationale": None,
        "source": "native",
        "request": 0,
        "span": None,
        "step": None,
    }
    assert completed.model_dump() == {
        "kind": "tool-call-completed",
        "call_id": "call_0_0",
        "tool": "look",
        "position": 0,
        "ok": True,
        "result": {"key": "Everest", "height": 8848},
        "error": None,
        "duration_ms": 1.0,
        "cached": False,
        "abandoned": False,
        "ended": None,
        "rung": None,
        "understood": None,
    }
    assert '"kind":"tool-call-started"' in during[-1]
    assert [record.iteration for record in run.recording.records if "tool-call" in record.kind] == [0, 0]
    assert run.steps() == [
        ("action", "look", '{"key": "Everest"}'),
        ("observation", "look", '{"key": "Everest", "height": 8848}'),
    ]


class Later:
    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "later"


async def _late() -> str:
    await anyio.lowlevel.checkpoint()
    return "from a coroutine"


async def _times(key: str, times: int) -> str:
    return key * times


async def _fails_late() -> str:
    raise ValueError("too late")


@tool
def sync(key: str) -> str:
    """Return."""
    return key


@tool
async def with_await(key: str) -> str:
    """Return after a while."""
    await anyio.lowlevel.checkpoint()
    return key


@tool
def coroutine(key: str) -> Any:
    """Return what has to be awaited."""
    return _late()


@tool
def awaitable(key: str) -> Any:
    """Return what can be awaited."""
    return Later()


@tool
def fails_later(key: str) -> Any:
    """Return what fails when awaited."""
    return _fails_late()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (sync, {"ok": True, "result": "a"}),
        (with_await, {"ok": True, "result": "a"}),
        (coroutine, {"ok": True, "result": "from a coroutine"}),
        (awaitable, {"ok": True, "result": "later"}),
        (fails_later, {"ok": False, "error": {"type": "ValueError", "message": "too late"}}),
        (tool(name="partly")(functools.partial(_times, times=2)), {"ok": True, "result": "aa"}),
    ],
    ids=lambda value: value.spec.name if hasattr(value, "spec") else "",
)
async def test_every_way_to_return(tmp_path: Path, function: Any, expected: dict[str, Any]):
    """A function, a coroutine function, a part of one, and what returns an awaitable all give their result."""
    assert await outcome_of(tmp_path, function, key="a") == expected


class Unspeakable(Exception):  # noqa: N818 - a tool may raise anything
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd(BaseException):
    pass


RAISED: list[tuple[BaseException, str, str]] = [
    (ValueError("no such key"), "ValueError", "no such key"),
    (KeyError("a"), "KeyError", "'a'"),
    (ValueError(), "ValueError", "ValueError"),
    (ValueError("\ud800"), "ValueError", "\ufffd"),
    (Unspeakable(), "Unspeakable", "Unspeakable"),
    (SystemExit(3), "SystemExit", "3"),
    (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup", "two (2 sub-exceptions)"),
    (TimeoutError(), "TimeoutError", "TimeoutError"),
    (asyncio.CancelledError(), "CancelledError", "CancelledError"),
    (RecursionError("deep"), "RecursionError", "deep"),
]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("raised", "name", "message"), RAISED, ids=lambda value: getattr(value, "__name__", None))
async def test_every_way_to_fail(tmp_path: Path, kind: str, raised: BaseException, name: str, message: str):
    """Whatever a body raises is a failed call that the model is told of; the run goes on."""

    def fail() -> str:
        """Fail."""
        raise raised

    async def fail_async() -> str:
        """Fail."""
        raise raised

    made = tool(name="fail")(fail if kind == "sync" else fail_async)
    assert await outcome_of(tmp_path, made) == {"ok": False, "error": {"type": name, "message": message}}


@pytest.mark.parametrize(
    ("name", "guess"),
    [("lokup", " Did you mean 'lookup'?"), ("Lookup", " Did you mean 'lookup'?"), ("zzz", ""), ("", "")],
)
async def test_an_unknown_tool(tmp_path: Path, name: str, guess: str):
    """A call of a tool that is not there is told what is, the nearest first."""

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


ODD_RESULTS: list[Any] = [
    None,
    b"\xff\x00",
    {1, 2},
    {"a": {1: "x", "1": "y"}},
    float("nan"),
    float("-inf"),
    2**70,
    "torn \ud800",
    [[], {}, ""],
    {"$type": "int"},
]


@pytest.mark.parametrize("result", ODD_RESULTS, ids=repr)
async def test_results_that_json_cannot_hold(tmp_path: Path, result: Any):
    """Such a result is tagged in the trace, comes back as it was, and the run goes on."""

    @tool
    def give() -> Any:
        """Give it."""
        return result

    got = await outcome_of(tmp_path, give)
    assert got["ok"]
    assert repr(from_json(got.get("result"))) == repr(result)


async def test_results_that_cannot_come_back(tmp_path: Path):
    """Cycles, depth without end, generators and objects that cannot be read are told as what they are."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    values = {"cycle": cycle, "deep": deep, "generator": (each for each in "ab"), "object": Hostile()}

    @tool
    def give(key: str) -> Any:
        """Give it."""
        return values[key]

    turn = calls(*(call("give", key=key) for key in values))
    run = await record(tmp_path, [turn, text("done")], give)
    results = [event.result for event in run.events("tool-call-completed")]
    assert run.result.output == "done"
    assert results[0] == [{"$type": "cycle", "lossy": True}]
    depth = 0
    inner = results[1]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert (depth, inner) == (100, {"$type": "too-deep", "depth": 100, "lossy": True})
    assert results[2]["$type"] == "object"
    assert results[2]["class"] == "builtins.generator"
    assert results[3]["repr"] == "<RuntimeError>"
    assert (await reproduce(run.recording)).identical


# --- cache -----------------------------------------------------------------------------------------------------------


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


async def test_a_repeated_call_is_answered_from_memory(tmp_path: Path):
    """Equal arguments, in whatever order, get the same result without another run, and the trace says so."""
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


async def test_other_arguments_and_failures_are_not_remembered(tmp_path: Path):
    """A failure is tried again; `1` and `"1"` and `True` are different arguments, as is a default written out."""
    _, ran = await cached(tmp_path, "bad", "bad", 1, "1", True, {"key": "a"}, {"key": "a", "more": 0})
    assert ran == ["bad", "bad", 1, "1", True, "a", "a"]


# --- threads ---------------------------------------------------------------------------------------------------------


async def test_a_sync_body_runs_beside_the_loop(tmp_path: Path):
    """A blocking body runs in a daemon thread, with the caller's context variables; an async one in the loop."""
    where: dict[str, Any] = {}
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("mine")

    @tool
    def blocking() -> None:
        """Block."""
        thread = threading.current_thread()
        where["blocking"] = (thread.daemon, thread.name, variable.get())

    @tool
    async def turning() -> None:
        """Turn."""
        where["turning"] = (threading.current_thread() is threading.main_thread(), variable.get())

    await record(tmp_path, [calls(call("blocking"), call("turning")), text("done")], blocking, turning)
    assert where == {"blocking": (True, "playhead-tool", "mine"), "turning": (True, "mine")}
