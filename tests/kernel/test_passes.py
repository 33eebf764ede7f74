"""Passes: loops inside an agent's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import ToolContext, load_recording, tool
from playhead.kernel.passes import ask_once, fresh_thread, run_pass
from playhead.kernel.state import transition
from playhead.replay import reproduce
from playhead.testing import call, text
from tests.kernel.runs import data, make_agent

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
async def lookup(key: str) -> str:
    """Look up."""
    return f"found {key}"


@tool(read_only=True)
async def other(context: ToolContext) -> str:
    """Not offered in the pass."""
    return f"ran in turn {context.iteration}"


async def two_passes(state: Any, session: Any) -> Any:
    """Look something up in a pass with one tool, judge it, and answer in another pass without tools."""
    first = await fresh_thread(session, f"Gather: {session.task}")
    state, gathered = await run_pass(state, session, first, purpose="gather", max_iterations=2, tools=("lookup",))
    state, judged = await ask_once(state, session, await fresh_thread(session, "Judge it."), purpose="judge")
    second = await fresh_thread(session, f"Answer from {gathered.text}, {judged}")
    state, answer = await run_pass(state, session, second, purpose="answer", max_iterations=3, tools=())
    session.gate.notes["seen"] = [gathered, answer]
    session.terminate("end_turn", answer.output)
    return transition(state, output=answer.output)


async def test_a_pass_ends_alone_and_turns_count_on(tmp_path: Path, register: Any):
    """What ends a pass does not end the agent; turns, requests and calls of all passes are one recording, reproduced."""
    register("two", two_passes)
    turns = [call("lookup", key="a"), call("other"), text("good"), text("42")]
    agent = make_agent(tmp_path, turns, lookup, other, strategy="two")
    result = await agent.run("Do it.", run_id="run")
    assert (result.output, result.terminated_by, result.iterations) == ("42", "end_turn", 3)
    recording = load_recording(tmp_path / "run.jsonl")
    asked = [
        (data(each.event)["purpose"], each.iteration) for each in recording.records if each.kind == "llm-requested"
    ]
    assert asked == [("gather", 0), ("gather", 1), ("judge", 1), ("answer", 2)]
    completed = [data(each.event) for each in recording.records if each.kind == "tool-call-completed"]
    assert [(each["tool"], each["ok"]) for each in completed] == [("lookup", True), ("other", False)]
    assert completed[1]["error"]["type"] == "ToolNotOffered"
    assert (await reproduce(tmp_path / "run.jsonl")).identical


async def test_the_turns_of_the_agent_end_the_pass_too(tmp_path: Path, register: Any):
    """The agent's own limit holds over all passes together."""
    register("two", two_passes)
    agent = make_agent(tmp_path, [call("lookup", key="a")] * 9, lookup, other, strategy="two", max_iterations=1)
    result = await agent.run("Do it.", run_id="run")
    assert (result.output, result.terminated_by) == ("found a", "max_iterations")
