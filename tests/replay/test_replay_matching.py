"""Each call gets the answer that was recorded for it: for its owner, its place and the state it was given in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from playhead import Agent, Context, ToolContext, tool
from playhead.replay import replay
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import ReplayServed
from tests.kernel.runs import record
from tests.replay.stores import ScriptsModel, record_store, root_rungs

if TYPE_CHECKING:
    from pathlib import Path


A, B, C = (("get", {"key": key}) for key in "abc")


async def rungs(then: list[Any], now: list[Any], **options: Any) -> list[tuple[str | None, Any]]:
    """Record these turns, replay those, and return how each call was answered, and from which recorded one (its `seq`)."""
    recording = await record_store({"Do it.": then})
    model = ScriptsModel({"Do it.": now})
    result = await replay(recording, {"model": model}, on_missing="lenient", trace=None, **options)
    places = {
        record.seq: place
        for place, record in enumerate(each for each in recording.records if each.kind == "tool-call-completed")
    }
    served = [each.event for each in result.recording.records if isinstance(each.event, ReplayServed)]
    return [(each.rung, places.get(each.source_seq or 0)) for each in served]


async def test_the_order_of_matching() -> None:
    """The exact call first, then the first of the same arguments, then by key; each once."""
    assert await rungs([(A, A), (B,)], [(A, A), (B,)]) == [("exact", 0), ("exact", 1), ("exact", 2)]
    assert await rungs([(A, A), (B,)], [(B, A)]) == [("reordered", 2), ("exact", 1)]
    assert await rungs([(A,), (B,), (A,)], [(B, A, A, A)]) == [
        ("reordered", 1),
        ("reordered", 0),
        ("reordered", 2),
        ("synthetic-error", None),
    ]
    noted = [("find", {"key": "a", "note": note}) for note in ("x", "y")]
    assert await rungs([(noted[0],)], [(noted[1],)]) == [("normalised", 0)]
    assert await rungs([(noted[0],)], [(("find", {"key": "b", "note": "x"}),)]) == [("synthetic-error", None)]
    assert await rungs([(A,)], [(C,)]) == [("synthetic-error", None)]


async def test_what_a_body_does_counts_for_the_call(tmp_path: Path) -> None:
    """A tool that is declared read-only and calls one that is not has a side effect; its body's calls are not matched."""

    @tool
    def act(key: str) -> str:
        """Act."""
        return key

    @tool(read_only=True)
    async def outer(key: str, context: ToolContext) -> Any:
        """Act through another tool."""
        return await context.tools.call("act", key=key)

    turns = [call("outer", key="a"), call("act", key="b"), text("done")]
    recording = (await record(tmp_path, turns, act, outer)).recording
    assert (await replay(recording, {"model": ScriptedModel(turns)}, trace=None)).verdict == "same"
    dropped = await replay(recording, {"model": ScriptedModel(turns[1:])}, on_missing="lenient", trace=None)
    assert root_rungs(dropped) == [("act", "stale", "b")]


async def test_a_result_beside_which_something_else_was_done_is_stale(tmp_path: Path) -> None:
    """When a side effect of another agent ran beside a read, nobody knows which came first: not served as sure."""

    @tool
    async def act(key: str) -> str:
        """Act slowly."""
        await anyio.sleep(0.01)
        return key

    @tool(read_only=True)
    async def read(key: str) -> str:
        """Read slowly."""
        await anyio.sleep(0.02)
        return key

    child = Agent(ScriptedModel([call("act", key="a"), text("found")]), name="child", tools=[act])
    turn = calls(call("read", key="a"), call("child", task="t"))
    turns = [turn, text("done")]
    recording = (await record(tmp_path, turns, read, child.as_tool(read_only=True))).recording
    both = ScriptedModel([turn, call("act", key="a"), text("found"), text("done")])
    result = await replay(recording, {"model": both}, on_missing="lenient", trace=None)
    assert root_rungs(result)[0] == ("read", "stale", "a")
    assert (await replay(recording, {"model": both}, trace=None)).stopped is not None


async def test_a_key_that_does_not_identify_the_answer_is_no_reason_to_choose(tmp_path: Path):
    """Two recorded calls that the key says are the same were answered differently: a third is not given either answer."""

    @tool(read_only=True, key=("city",))
    def weather(city: str, unit: str) -> str:
        """Tell the temperature."""
        return {"C": "20", "F": "68"}[unit]

    turns = [call("weather", city="Rome", unit="C"), call("weather", city="Rome", unit="F"), text("done")]
    agent = Agent(ScriptedModel(turns), tools=[weather], trace=tmp_path, context=Context(rationale=False))
    await agent.run("Go.", run_id="run")
    other = [call("weather", city="Rome", unit="K"), text("done")]
    outcome = await replay(tmp_path / "run.jsonl", {"model": ScriptedModel(other)}, on_missing="lenient", trace=None)
    assert outcome.verdict == "inconclusive"
    assert outcome.stopped is not None
    assert "its key (city)" in outcome.stopped
