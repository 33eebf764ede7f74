"""Runs that killswitches ended, reproduced from the file alone: at the ports at the same place, from outside up to it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Context, load_recording, tool
from playhead.compose.killswitches import (
    Budget,
    budget_limit,
    circuit_breaker,
    kill_file,
    require_approval_for,
    stop_when,
    timeout_after,
    tool_limit,
    watchdog,
)
from playhead.replay import replay, reproduce
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.events import KillswitchFired
from playhead.trace.types import Usage
from tests.kernel.runs import make_agent, record
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording


@tool(read_only=True)
def look(key: str) -> str:
    """Look."""
    return f"found {key}"


@tool(read_only=True)
def fail(key: str) -> str:
    """Fail."""
    raise ValueError(key)


@tool(requires_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


@tool(timeout=None)
def hang() -> str:
    """Hang."""
    time.sleep(2)
    return "late"


LOOKS = [calls(call("look", key="a"), call("look", key="b")), call("look", key="c"), call("look", key="d")]
SPENDING = [replace(turn, usage=Usage(input_tokens=300, output_tokens=30)) for turn in LOOKS]
FAILS = [call("look", key="a"), calls(call("fail", key="a"), call("look", key="b")), call("fail", key="c"), text("x")]
PAYS = [call("pay", to="ann"), call("pay", to="bob"), text("done")]

AT_PORTS: dict[str, tuple[list[Any], list[Any], str, dict[str, Any]]] = {
    "tools, in a batch": (LOOKS, [tool_limit("*", 2, on_trigger="terminate")], "tool_limit", {}),
    "tools, refused": ([*LOOKS, text("done")], [tool_limit("look", 2, on_trigger="refuse")], "end_turn", {}),
    "tokens": (SPENDING, [budget_limit(max_tokens=1_000, output_cap=64)], "budget_limit", {}),
    "tools that fail": (FAILS, [circuit_breaker(2)], "circuit_breaker", {}),
    "a provider that fails": (
        [LOOKS[0], *[error("down", retryable=True)] * 9],
        [circuit_breaker(2)],
        "circuit_breaker",
        {"retries": 5},
    ),
    "approvals": (PAYS, [require_approval_for("pay", lambda request: "ann" in str(request.arguments))], "end_turn", {}),
    "a denial that stops": (
        PAYS,
        [require_approval_for("*", lambda _: False, on_trigger="stop")],
        "require_approval_for",
        {},
    ),
    "a predicate": (LOOKS, [stop_when(lambda context: context.iteration == 1 and "enough")], "stop_when", {}),
}


@pytest.mark.parametrize("name", AT_PORTS)
async def test_at_the_ports(tmp_path: Path, name: str):
    """What the switches did, and that they ended the run, comes out again where it was, without their code."""
    turns, compose, reason, options = AT_PORTS[name]
    tools = [look, fail, *([pay] if turns is PAYS else [])]
    run = await record(tmp_path, turns, *tools, compose=compose, **options)
    assert run.result.terminated_by == reason
    again = await reproduce(run.recording)
    assert (again.divergences, again.cut_short) == ((), False)
    agent = make_agent(None, [], *tools, compose=compose, **options)
    with_code = await reproduce(run.recording, agent=agent)
    assert (with_code.divergences, with_code.cut_short) == ((), False)


async def outside(folder: Path, *tools: Any, compose: Any, turns: Any = None, cancel: bool = False) -> Recording:
    """Record a run that something ends from outside."""
    turns = turns or [call("look", key="a"), calls(call("look", key="b"), call("look", key="c")), call("hang")]
    agent = make_agent(folder, turns, look, hang, *tools, compose=compose)
    with anyio.move_on_after(0.1 if cancel else None):
        await agent.run("Do it.", run_id="run")
    return load_recording(folder / "run.jsonl")


@pytest.mark.parametrize("by", ["timeout_after", "kill_file", "cancelled"])
async def test_from_outside(tmp_path: Path, by: str):
    """Up to the moment at which it was ended everything is the same; from there on there is nothing to compare."""
    switches = {
        "timeout_after": [timeout_after(0.1)],
        "kill_file": [kill_file(tmp_path / "stop"), lambda harness: harness.before("act", touch)],
        "cancelled": [],
    }

    async def touch(context: Any) -> None:
        if context.iteration == 2:
            (tmp_path / "stop").write_text("enough\n")

    recording = await outside(tmp_path, compose=switches[by], cancel=by == "cancelled")
    assert recording.ending is not None
    assert recording.ending.terminated_by == by
    again = await reproduce(recording)
    assert (again.divergences, again.cut_short) == ((), True)
    assert again.events > 10


async def test_a_replay_says_that_it_is_not_guarded(tmp_path: Path):
    """Without code a replay has only the killswitches about calls, and says so; with agent= it has them all."""
    turns = [call("look", key="a"), call("look", key="b"), text("done")]
    run = await record(tmp_path, turns, look, compose=[tool_limit("look", 5), budget_limit(max_tokens=90_000)])
    free = await replay(run.recording, {"model": ScriptedModel(turns)}, trace=None)
    (note,) = [note for note in free.notes if "brings the code" in note]
    assert "tool_limit" not in note
    assert "budget_limit (guard max_tokens=90000" in note
    agent = make_agent(None, ScriptedModel(turns), look, compose=[tool_limit("look", 1)])
    guarded = await replay(run.recording, agent=agent, trace=None)
    assert guarded.run.terminated_by == "tool_limit"


async def test_a_shared_budget(tmp_path: Path):
    """A run that a budget ended which other runs had used up is reproduced from its own file."""
    budget = Budget(max_tokens=2_000)
    turns = [SPENDING[1], text("done")]
    agent = make_agent(tmp_path, turns * 20, look, compose=[budget_limit(budget, output_cap=64)])
    for number in range(20):
        result = await agent.run("Do it.", run_id=f"run-{number}")
        if result.terminated_by == "budget_limit":
            break
    assert (result.terminated_by, number > 1) == ("budget_limit", True)
    assert result.trace_path is not None
    assert (await reproduce(result.trace_path)).divergences == ()


async def test_of_agents_beside_each_other_one_ended_from_outside(tmp_path: Path):
    """Those beside it, and the agent above, go on as they did; the one that was ended is ended at the same place."""

    class Slow(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            if request.number == 2:
                await anyio.sleep_forever()
            return await super().complete(request)

    looks = [
        calls(call("look", key="a"), call("look", key="b")),
        call("look", key="c"),
        call("look", key="d"),
        text("x"),
    ]
    options: dict[str, Any] = {"tools": [look], "rationale": False, "meta_tools": ()}
    slow = Agent(Slow(looks), **grouped(name="slow", compose=[timeout_after(0.1)], **options))
    quick = Agent(ScriptedModel(looks), **grouped(name="quick", **options))
    turns = [calls(call("slow", task="s"), call("quick", task="q")), call("look", key="r"), text("done")]
    run = await record(tmp_path, turns, look, slow, quick)
    assert run.result.output == "done"
    ended = {event.terminated_by for event in run.events("agent-completed")}
    assert ended == {"timeout_after", "end_turn"}
    again = await reproduce(run.recording)
    assert (again.divergences, again.cut_short) == ((), False)


async def test_an_agent_below_that_something_outside_ends_after_the_one_above_has_ended(tmp_path: Path):
    """It had not noticed yet: which of the two ended it is timing, so it is served as a whole."""
    below = Agent(
        ScriptedModel([call("look", key="a"), call("look", key="b")]),
        name="below",
        tools=[look],
        compose=[watchdog(0.1)],
        context=Context(rationale=False),
    )
    turns = [call("below", task="Go."), text("never")]
    above = make_agent(tmp_path, turns, below, compose=[tool_limit("look", 1)])
    # Whoever hears of it holds up the loop, until the watchdog has ended the agent below.
    above.subscribe("killswitch-fired", lambda record: time.sleep(0.2) if record.event.switch == "tool_limit" else None)  # type: ignore[attr-defined]
    await above.run("Do it.", run_id="run")
    recording = load_recording(tmp_path / "run.jsonl")
    fired = [record.event for record in recording.records if isinstance(record.event, KillswitchFired)]
    assert [(event.switch, event.ends) for event in fired] == [("tool_limit", "root"), ("watchdog", "root/below@0.0")]
    again = await reproduce(recording)
    assert (again.divergences, again.not_entered, again.raced) == ((), ("root/below@0.0",), ("root",))
