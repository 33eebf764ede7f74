"""Healing as it is by default: what the port of tools, plans, resumed runs and redacted recordings do with broken calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent, Approval, load_recording, resume, tool
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from tests.kernel.plan.steps import plan, tool_step, verdict
from tests.kernel.runs import data, record_agent
from tests.replay.resumed_shop import dead, script

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
    """Return an agent that heals, which is the default."""
    fixed: dict[str, Any] = {"clock": TickingClock, "retry_delay_s": 0, "rationale": False, "meta_tools": ()}
    return Agent(ScriptedModel(turns), tools=tools or (look, store), trace=folder, **{**fixed, **options})


def stages(ran: Any) -> list[tuple[str, str]]:
    """Return what was put right, by call."""
    return [(each.call_id, each.stage) for each in ran.events("tool-call-healed")]


async def test_it_is_on_by_default(tmp_path: Path):
    """The header says so, and a misspelt call runs; the recording is reproduced from the file alone."""
    ran = await record_agent(agent_of(tmp_path, [call("Look", key="a", count="2"), text("done")]), tmp_path)
    assert (ran.recording.header.agent.healing, DONE) == (True, [("look", "a", 2)])
    assert stages(ran) == [("call_0_0", "name"), ("call_0_0", "types")]
    assert (await reproduce(ran.recording.path)).identical


async def test_a_misspelt_name_does_not_get_around_approval(tmp_path: Path):
    """Approval is that of the tool which is meant: who denies it is asked about the call as it would run."""
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


async def test_hooks_change_the_healed_call(tmp_path: Path):
    """What a hook makes of a healed call runs; the result is not said to be understood as something else."""
    seen: list[Any] = []

    def block(harness: Harness) -> None:
        def other(asked: Any, _: Any) -> Any:
            seen.append((asked.name, dict(asked.arguments)))
            return asked.model_copy(update={"arguments": {"key": "b"}})

        harness.on("tool.call", other, name="other")

    ran = await record_agent(agent_of(tmp_path, [call("LOOK", Key="a"), text("done")], compose=[block]), tmp_path)
    (completed,) = ran.events("tool-call-completed")
    assert (seen, DONE, completed.understood) == ([("look", {"key": "a"})], [("look", "b", 1)], None)
    assert (await reproduce(ran.recording.path, agent=agent_of(None, [], compose=[block]))).identical


async def test_calls_beside_each_other_are_healed_before_they_are_sorted(tmp_path: Path):
    """Read-only calls still run together, one with side effects alone, each in its place."""
    turns = [calls(call("look", key="a"), call("Store", key="b", number="3"), call("lok", key="c")), text("done")]
    ran = await record_agent(agent_of(tmp_path, turns), tmp_path)
    assert [each[0] for each in DONE] == ["look", "store", "look"]
    assert [each.ok for each in ran.events("tool-call-completed")] == [True, True, True]
    assert (await reproduce(ran.recording.path)).identical


async def test_a_plan_names_a_tool_that_is_not_there(tmp_path: Path):
    """A plan is mended by the model, which is told what is wrong; the arguments of its calls are put right as any other's."""
    turns = [
        plan(tool_step("lok", args={"key": "a"})),
        plan(tool_step("look", args={"key": "a", "count": "2"})),
        verdict(),
        text("done"),
    ]
    agent = agent_of(tmp_path, turns, strategy="plan-execute-reflect")
    ran = await record_agent(agent, tmp_path)
    assert ["Did you mean 'look'?" in each.error for each in ran.events("structured-output-failed")] == [True]
    assert (DONE, ran.result.output) == ([("look", "a", 2)], "done")
    assert (await reproduce(ran.recording.path)).identical


@pytest.mark.parametrize("last", ["tool-call-healed", "tool-call-started", "tool-call-completed"])
async def test_a_run_with_a_healed_call_is_resumed(tmp_path: Path, last: str):
    """Wherever it died: the call is put right again as it was, and what had ended is not done twice."""
    turns = script(call("Look", key="a", count="2"), text("done"))
    path = await dead(tmp_path, agent_of(tmp_path, turns), last)
    DONE.clear()
    result: Any = await resume(agent_of(None, turns), path)
    done = [] if last == "tool-call-completed" else [("look", "a", 2)]
    assert (DONE, result.output) == (done, "done")
    again = load_recording(result.trace_path)
    healed: list[Any] = [each.event for each in again.records if each.kind == "tool-call-healed"]
    assert [each.stage for each in healed] == ["name", "types"]
    assert (await reproduce(result.trace_path)).identical


async def test_what_is_redacted_is_not_told_by_healing(tmp_path: Path):
    """No event of healing holds what the redaction takes out, and the recording is reproduced with what is left."""

    def mask(words: str) -> str:
        return words.replace("8848", "[height]")

    turns = [call("Look", Key="at 8848", count="2"), text("done")]
    ran = await record_agent(agent_of(tmp_path, turns, redact=[mask]), tmp_path)
    assert DONE == [("look", "at 8848", 2)]
    assert "8848" not in ran.recording.path.read_text(encoding="utf-8")
    assert [stage for _, stage in stages(ran)] == ["name", "parameters", "types"]
    assert (await reproduce(ran.recording.path)).identical


async def test_a_redacted_value_that_was_put_right(tmp_path: Path):
    """A number in text that is redacted cannot be read again: it is not said that such a recording is reproduced."""

    def mask(words: str) -> str:
        return words.replace("8848", "[height]")

    turns = [call("look", key="a", count="8848"), text("done")]
    ran = await record_agent(agent_of(tmp_path, turns, redact=[mask]), tmp_path)
    assert DONE == [("look", "a", 8848)]
    again = await reproduce(ran.recording.path)
    assert (again.identical, again.redacted) == (False, True)
