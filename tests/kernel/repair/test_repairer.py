"""Repair in a run: approval, events, refusals, and runs without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Approval, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, TickingClock, Turn, call, text
from playhead.trace.types import ToolCall
from tests.kernel.runs import data, record_agent
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose import Harness

DONE: list[Any] = []
"""What the tools did."""


@tool(read_only=True)
def look(key: str, count: int = 1) -> str:
    """Look something up."""
    DONE.append(("look", key, count))
    return f"{key}: {count}"


@tool(requires_approval=True)
def erase(key: str) -> str:
    """Erase something."""
    DONE.append(("erase", key))
    return f"erased {key}"


@tool
def store(key: str, number: int) -> str:
    """Store a number."""
    DONE.append(("store", key, number))
    return "stored"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def agent_of(folder: Path | None, turns: Any, *tools: Any, **options: Any) -> Agent:
    """Return an agent that repairs, which is the default."""
    fixed: dict[str, Any] = {"clock": TickingClock, "retry_delay_s": 0, "rationale": False, "meta_tools": ()}
    return Agent(ScriptedModel(turns), **grouped(tools=tools or (look, store), trace=folder, **{**fixed, **options}))


async def test_a_misspelt_name_does_not_get_around_approval(tmp_path: Path):
    """The approver sees the repaired call, and its denial holds."""
    asked: list[Any] = []

    def deny(request: Any) -> Approval:
        asked.append((request.tool, request.arguments))
        return Approval(False, why="no")

    agent = agent_of(tmp_path, [call("Erase", Key="a"), text("done")], erase, approver=deny)
    ran = await record_agent(agent, tmp_path)
    assert (asked, DONE) == ([("erase", {"key": "a"})], [])
    assert [data(each)["approved"] for each in ran.events("approval-decided") if "approved" in data(each)] in (
        [],
        [False],
    )
    (requested,), (started,) = ran.events("approval-requested"), ran.events("tool-call-started")
    assert requested.args_hash == started.args_hash
    assert (await reproduce(ran.recording.path)).identical


async def test_each_stage_is_an_event_before_the_start(tmp_path: Path):
    """A repaired call runs; the trace holds each repair, and the thread the model's own words."""
    ran = await record_agent(agent_of(tmp_path, [call("Look", Key="a", count="2"), text("done")]), tmp_path)
    assert [(each.stage, each.before, each.after) for each in ran.events("tool-call-repaired")] == [
        ("name", "Look", "look"),
        ("arguments", {"Key": "a", "count": "2"}, {"key": "a", "count": 2}),
    ]
    assert ran.kinds().index("tool-call-repaired") < ran.kinds().index("tool-call-started")
    (completed,) = ran.events("tool-call-completed")
    assert completed.understood == 'look {"key": "a", "count": 2}'
    told = ran.model.requests[1].messages
    assert (told[-2].tool_calls[0].name, str(told[-1].content).splitlines()[0]) == (
        "Look", '(understood as look {"key": "a", "count": 2})',
    )  # fmt: skip


async def test_what_is_not_repaired_goes_back_with_all_faults(tmp_path: Path):
    """The refusal holds every fault and the parameters of the tool; hooks see it, and the run is reproduced."""
    told: list[str] = []

    def block(harness: Harness) -> None:
        harness.tap("nudge.repair-failed", lambda nudge, _: told.append(nudge), name="told")

    turns = [call("store", kee=[1], number="a few", dry_run=True), text("done")]
    ran = await record_agent(agent_of(tmp_path, turns, compose=[block]), tmp_path)
    why = (
        "the arguments of store cannot be read:\n- kee: there is no such parameter. Did you mean 'key'? Known: key, number.\n"
        "- dry_run: there is no such parameter. Known: key, number.\n- key: is missing; it has to be string\n"
        "- number: has to be integer; it is a few\nstore takes {key: string, number: integer}"
    )
    (completed,) = ran.events("tool-call-completed")
    assert (DONE, told, completed.error.type, completed.error.message) == ([], [why], "InvalidArguments", why)
    assert (await reproduce(ran.recording.path, agent=agent_of(None, [], compose=[block]))).identical


async def test_arguments_that_the_provider_cut_off_are_not_completed(tmp_path: Path):
    """Truncated arguments are refused, also where closing their brackets would complete them."""
    cut = ToolCall(id="", name="store", raw_arguments='{"key": "a", "number": 12, "key2": [1]')
    ran = await record_agent(agent_of(tmp_path, [Turn(calls=(cut,), finish_reason="length"), text("done")]), tmp_path)
    assert (DONE, [each.ok for each in ran.events("tool-call-completed")]) == ([], [False])
    whole = ToolCall(id="", name="look", raw_arguments='{"key": "a"')
    for finish_reason in ("length", "tool_calls"):
        folder = tmp_path / "whole" / finish_reason
        await record_agent(agent_of(folder, [Turn(calls=(whole,), finish_reason=finish_reason), text("done")]), folder)
        assert DONE == []
