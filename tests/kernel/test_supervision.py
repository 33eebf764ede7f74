"""Code that hangs anywhere in a run does not keep the run from ending at its limit, nor the trace from being closed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, ToolContext, load_recording, tool
from playhead.compose import killswitches as ks
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from tests.compose.killswitches import oracle
from tests.kernel import isolated_tools
from tests.kernel.hung import BOUND_S, LIMIT_S, Hang, HungModel, hanging, hung_agent, timed
from tests.kernel.runs import data
from tests.kernel.strategies.looking import lookup
from tests.options import grouped
from tests.proving import bound, sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPTIONS: dict[str, Any] = {"rationale": False, "meta_tools": ()}
BODIES = [
    *(("model", kind) for kind in ("wait", "block", "spin", "read", "swallow")),
    *(("async tool", kind) for kind in ("wait", "block", "spin", "read", "swallow")),
    *(("sync tool", kind) for kind in ("block", "spin", "read")),
]
HOOKS = ["before observe", "after act", "llm.response", "tap message.tool-result", "tool.result", "lifecycle.completed"]
OBSERVED = ["llm-requested", "tool-call-completed", "message-added", "killswitch-fired", "run-completed"]
PLACES = [
    *BODIES,
    *((f"hook {hook}", kind) for hook in HOOKS for kind in ("wait", "block", "spin", "swallow")),
    *(("hook required answer.final", kind) for kind in ("wait", "block", "swallow")),
    *(("approver", kind) for kind in ("wait", "block", "swallow")),
    *((f"observer {kind}", "block") for kind in OBSERVED),
]
"""Where code hangs, and how."""
SYNC = [(where, kind, switch) for where, kind in PLACES for switch in ("timeout_after", "watchdog", "kill_file")]
LEAVES_THE_LOOP = [each for each in SYNC if each[0] == "sync tool" or each[1] in ("wait", "swallow")]
FEW_SYNC = [
    ("model", "swallow", "timeout_after"),
    ("model", "block", "kill_file"),
    ("async tool", "spin", "watchdog"),
    ("sync tool", "read", "timeout_after"),
    ("hook before observe", "block", "timeout_after"),
    ("hook tool.result", "swallow", "timeout_after"),
    ("hook required answer.final", "swallow", "timeout_after"),
    ("approver", "block", "timeout_after"),
    ("observer tool-call-completed", "block", "timeout_after"),
    ("observer run-completed", "block", "timeout_after"),
]
FEW_ASYNC = [
    ("model", "swallow", "watchdog"),
    ("async tool", "wait", "kill_file"),
    ("sync tool", "read", "timeout_after"),
    ("approver", "swallow", "timeout_after"),
]


def kill_file(folder: Path, hang: Hang) -> Any:
    """Return a switch whose file appears as soon as the code hangs."""
    file = folder / "kill"

    def pull() -> None:
        if hang.started.wait(30):
            file.touch()

    threading.Thread(target=pull, daemon=True).start()
    return ks.kill_file(file)


SWITCHES: dict[str, Callable[[Path, Hang], Any]] = {
    "timeout_after": lambda _, __: ks.timeout_after(LIMIT_S),
    "watchdog": lambda _, __: ks.watchdog(LIMIT_S),
    "kill_file": kill_file,
}


def whole(path: Path) -> Any:
    """Return a recording that is closed and sound, and names one cause of each end."""
    recording = load_recording(path)
    oracle.check_whole(recording)
    oracle.check_causes(recording)
    return recording


def check(result: Any, folder: Path, where: str, kind: str, switch: str, hang: Hang) -> None:
    """The result is the best there was; the trace is closed, says what was left behind, and changes no more."""
    assert (result.terminated_by, result.terminated_source) == (switch, f"killswitch:{switch}")
    assert (result.status, result.success, result.trace_complete) == ("done", False, True)
    assert hang.started.is_set()
    recording = whole(folder / "run.jsonl")
    kinds = [record.kind for record in recording.records]
    left: Any = [record.event for record in recording.records if record.kind in ("llm-failed", "tool-call-completed")]
    if where in ("model", "async tool", "sync tool", "approver"):
        assert result.output == "found a"
    if where == "model":
        assert (left[-1].kind, left[-1].cancelled, left[-1].error.type) == ("llm-failed", True, "Cancelled")
    elif where in ("async tool", "sync tool"):
        assert (left[-1].kind, left[-1].ended, left[-1].ok) == ("tool-call-completed", "cancelled", False)
        assert left[-1].abandoned is (kind != "wait")
    elif where == "approver":
        assert "approval-requested" in kinds
        assert "approval-decided" not in kinds
    elif where.startswith("hook required"):
        assert (result.output, "final-answer" in kinds) == (None, False)
    elif where.startswith("hook") and kind != "wait":
        failed: Any = [record.event for record in recording.records if record.kind == "hook-failed"]
        assert [each.error for each in failed] == ["it had not returned when the run ended"]
    before = recording.path.read_bytes()
    hang.released.set()
    assert recording.path.read_bytes() == before


async def ends_at_its_limit(folder: Path, how: str, where: str, kind: str, switch: str) -> float:
    """Run an agent that hangs, check its end, and return how many seconds after its limit it came."""
    with hanging() as hang:
        agent = hung_agent(where, kind, hang, folder, SWITCHES[switch](folder, hang))
        if how == "run":
            began = time.monotonic()
            result: Any = await agent.run("Do it.", run_id="run")
            took_s = time.monotonic() - began
        else:
            took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        check(result, folder, where, kind, switch, hang)
    return took_s - LIMIT_S


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "where", "kind", "switch"),
    [
        *(("run_sync", *each) for each in sample(SYNC, FEW_SYNC)),
        *(("run", *each) for each in sample(LEAVES_THE_LOOP, FEW_ASYNC)),
    ],
)
async def test_a_run_ends_at_its_limit(tmp_path: Path, how: str, where: str, kind: str, switch: str):
    """`run_sync` returns within the limit + 0.25 s; `await run` does while the caller's loop is free.

    A measurement that another process held up is repeated, twice at most.
    """
    late_s = []
    for trial in ("first", "second", "third"):
        (folder := tmp_path / trial).mkdir()
        late_s.append(await ends_at_its_limit(folder, how, where, kind, switch))
        if late_s[-1] < BOUND_S:
            return
    pytest.fail(f"its ends came {late_s} s after the limit")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
@pytest.mark.slow
def test_an_isolated_tool_is_killed(tmp_path: Path):
    """The result comes within 0.5 s, and no process of the tool is left, one that ignores SIGTERM included."""
    pids, kill, killed = tmp_path / "pids", tmp_path / "kill", []

    def pull() -> None:
        while not pids.exists():
            time.sleep(0.005)
        killed.append(time.monotonic())
        kill.touch()

    threading.Thread(target=pull, daemon=True).start()
    turns = [call("lookup", key="a"), call("hang", path=str(pids)), text("never")]
    tools, blocks = [lookup, isolated_tools.hang], [ks.kill_file(kill)]
    agent = Agent(ScriptedModel(turns), **grouped(tools=tools, trace=tmp_path, compose=blocks, **OPTIONS))
    result = agent.run_sync("Do it.", run_id="run")
    assert time.monotonic() - killed[0] < bound(0.55)
    assert (result.output, result.terminated_by) == ("found a", "kill_file")
    whole(tmp_path / "run.jsonl")
    for pid in json.loads(pids.read_text()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# --- agents below, and bodies that ask the model ----------------------------------------------------------------------


@pytest.mark.slow
async def test_the_limit_of_a_sub_agent_ends_only_that_agent(tmp_path: Path):
    """Its caller continues with the best there was; what returns late changes nothing, and the run is reproduced."""
    with hanging() as hang:
        below = Agent(
            HungModel(hang.swallow),
            **grouped(name="below", tools=[lookup], compose=[ks.timeout_after(LIMIT_S)], **OPTIONS),
        )

        @tool
        async def release() -> str:
            """Let the hung model return, late."""
            hang.released.set()
            await anyio.sleep(0.02)
            return "released"

        turns = [call("below", task="Hang."), call("release"), text("done")]
        agent = Agent(ScriptedModel(turns), **grouped(tools=[below, release], trace=tmp_path, **OPTIONS))
        result = await agent.run("Do it.", run_id="run")
    assert (result.output, result.terminated_by) == ("done", "end_turn")
    assert [step.content for step in result.steps if step.type == "observation"] == ["found a", "released"]
    recording = whole(tmp_path / "run.jsonl")
    owner = recording.owners["root/below@0.0"]
    assert (owner.completed.terminated_by, owner.completed.output) == ("timeout_after", "found a")
    last = max(record.seq for record in recording.records if record.owner.startswith("root/below"))
    assert [record.seq for record in recording.records if record.kind == "agent-completed"] == [last]
    again = await reproduce(recording)
    assert (again.divergences, again.cut_short) == ((), False)


async def test_an_abandoned_body_ends_its_model_requests(tmp_path: Path):
    """A tool call that times out while its body waits for a model leaves no request without an end in the trace."""
    with hanging() as hang:

        class Model(ScriptedModel):
            async def complete(self, request: Any) -> Any:
                if request.messages[-1].content == "Hang.":
                    await hang.swallow()
                return await super().complete(request)

        @tool(timeout=0.02)
        async def ask(context: ToolContext) -> str:
            """Ask a model that hangs."""
            return (await context.model.ask("Hang.")).text

        agent = Agent(
            Model([call("ask"), text("done"), text("late")]),
            **grouped(tools=[ask], trace=tmp_path, compose=[ks.budget_limit(max_tokens=99_999)], **OPTIONS),
        )
        result = await agent.run("Do it.", run_id="run")
        assert result.output == "done"
        (failed,) = [record.event for record in whole(tmp_path / "run.jsonl").records if record.kind == "llm-failed"]
        assert data(failed) == {
            "request": 0,
            "error": {"type": "Cancelled", "message": "the run was cancelled while the model was asked"},
            "cancelled": True,
            "cost_usd": 0.0,
        }


# --- rare meetings ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("slow_at", ["llm-requested", "tool-call-started"])
def test_nothing_starts_after_the_end_however_slow_redaction_is(tmp_path: Path, slow_at: str):
    """A slow redaction rule of the user delays no end, and no request or call starts after the end."""
    for number in range(sample(12, 3)):

        def slow(content: str) -> str:
            if "slow" in content:
                time.sleep(0.03)
            return content

        key, stop = ("slow", "quick") if slow_at == "tool-call-started" else ("a", "slow")
        agent = Agent(
            ScriptedModel([call("lookup", key=key)] * 9),
            **grouped(
                tools=[lookup],
                compose=[ks.timeout_after(0.02 + number * 0.004)],
                redact=[slow],
                parameters={"stop": stop},
                trace=tmp_path,
                **OPTIONS,
            ),
        )
        timed(agent.run_sync, "Do it.", run_id=f"run-{number}")
        recording = whole(tmp_path / f"run-{number}.jsonl")
        asked = [record for record in recording.records if record.kind == "llm-requested"]
        assert len(agent.model.requests) == len(asked)  # type: ignore[attr-defined]


async def test_a_second_cancellation_leaves_a_closed_trace(tmp_path: Path):
    """A caller that cancels again while the run cleans up does not wait, and the trace is closed."""
    with hanging() as hang:
        agent = hung_agent("async tool", "swallow", hang, tmp_path)
        task = asyncio.create_task(agent.run("Do it.", run_id="run"))
        await anyio.to_thread.run_sync(hang.started.wait)
        task.cancel()
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        whole(tmp_path / "run.jsonl")
