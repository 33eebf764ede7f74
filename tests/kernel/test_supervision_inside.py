"""What hangs inside an agent besides its model and tools: hooks, approvers, observers, agents below."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, ToolContext, load_recording, tool
from playhead.compose import killswitches as ks
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, text
from tests.compose.killswitches import oracle
from tests.kernel import isolated_tools
from tests.kernel.hung import BOUND_S, LIMIT_S, TRIES, HungModel, hanging, lookup, timed, timed_await
from tests.kernel.runs import data
from tests.options import grouped
from tests.proving import PROVE, sample

if TYPE_CHECKING:
    from pathlib import Path

SWITCH = ("timeout_after", "killswitch:timeout_after")
OPTIONS: dict[str, Any] = {"rationale": False, "meta_tools": ()}


def agent_with(folder: Path, *blocks: Any, turns: Any = None, **options: Any) -> Agent:
    """Return an agent that looks up `a` and answers, within the limit."""
    turns = turns or [call("lookup", key="a"), text("done")]
    compose = [ks.timeout_after(LIMIT_S), *blocks]
    defaults: dict[str, Any] = {"tools": [lookup], "trace": folder, "compose": compose, **OPTIONS}
    return Agent(ScriptedModel(turns), **grouped(**{**defaults, **options}))


def whole(path: Path) -> Any:
    """Return a recording that is closed and sound, and says one cause."""
    recording = load_recording(path)
    oracle.check_whole(recording)
    oracle.check_causes(recording)
    return recording


@pytest.mark.parametrize("kind", sample(["wait", "block", "spin", "swallow"], ["block", "swallow"]))
@pytest.mark.parametrize(
    "place",
    sample(
        ["before observe", "after act", "llm.response", "tap", "tool.result", "lifecycle.completed"],
        ["before observe", "tool.result"],
    ),
)
def test_a_hook_that_hangs(tmp_path: Path, place: str, kind: str):
    """A hook that hangs costs the run its answer, and not more time than the limit allows."""
    with hanging() as hang:

        async def hook(*_: Any) -> None:
            if kind in ("wait", "swallow"):
                await getattr(hang, kind)()
            else:
                getattr(hang, kind)()

        def block(harness: Any) -> None:
            match place.split():
                case ["before", phase]:
                    harness.before(phase, hook, timeout_s=60)
                case ["after", phase]:
                    harness.after(phase, hook, timeout_s=60)
                case ["tap"]:
                    harness.tap("message.tool-result", hook, timeout_s=60)
                case [tag]:
                    harness.on(tag, hook, timeout_s=60)

        took_s, result = timed(lambda: agent_with(tmp_path, block).run_sync("Do it.", run_id="run"))
        assert (result.terminated_by, result.terminated_source) == SWITCH
        assert took_s < LIMIT_S + BOUND_S
        whole(tmp_path / "run.jsonl")


@pytest.mark.parametrize("kind", sample(["wait", "block", "swallow"], ["swallow"]))
def test_a_required_hook_that_hangs(tmp_path: Path, kind: str):
    """What has to be looked at before it leaves does not leave when the hook that looks hangs."""
    with hanging() as hang:
        seen: list[Any] = []

        async def look(answer: Any, _context: Any) -> None:
            seen.append(answer)
            if kind == "block":
                hang.block()
            else:
                await getattr(hang, kind)()

        agent = agent_with(tmp_path, lambda harness: harness.on("answer.final", look, required=True, timeout_s=60))
        took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        assert (seen[0], result.output) == ("done", None)
        assert took_s < LIMIT_S + BOUND_S
        recording = whole(tmp_path / "run.jsonl")
        assert recording.ending.output is None
        assert [record for record in recording.records if record.kind == "final-answer"] == []


@pytest.mark.parametrize("how", ["run_sync", "run"])
@pytest.mark.parametrize("kind", sample(["wait", "block", "swallow"], ["swallow"]))
async def test_an_approver_that_hangs(tmp_path: Path, kind: str, how: str):
    """Nobody answers: the body does not run, and the run ends at its limit."""
    ran: list[str] = []

    @tool(requires_approval=True)
    async def pay(key: str) -> str:
        """Pay."""
        ran.append(key)
        return key

    with hanging() as hang:
        approver = hang.block if kind == "block" else getattr(hang, kind)
        agent = agent_with(
            tmp_path,
            turns=[call("lookup", key="a"), call("pay", key="b"), text("never")],
            tools=[lookup, pay],
            approver=(lambda _: approver()) if kind == "block" else _asking(approver),
        )
        if how == "run":
            took_s, result = await timed_await(agent.run("Do it.", run_id="run"))
        else:
            took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        assert (result.output, result.terminated_by, ran) == ("found a", "timeout_after", [])
        assert took_s < LIMIT_S + BOUND_S
        whole(tmp_path / "run.jsonl")
        hang.released.set()
        await anyio.sleep(0.01)
        assert ran == []


def _asking(function: Any) -> Any:
    async def approve(_request: Any) -> bool:
        await function()
        return True

    return approve


@pytest.mark.parametrize(
    "kind",
    sample(
        [
            "llm-requested",
            "llm-responded",
            "tool-call-started",
            "tool-call-completed",
            "message-added",
            "budget-reserved",
        ],
        ["llm-requested", "tool-call-completed"],
    ),
)
def test_an_observer_that_hangs(tmp_path: Path, kind: str):
    """A subscriber that never comes back holds up the loop, and not the end of the run."""
    with hanging() as hang:
        agent = agent_with(tmp_path, ks.budget_limit(max_tokens=99_999))
        agent.subscribe(kind, hang.hold)
        took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        assert (result.terminated_by, result.terminated_source) == SWITCH
        assert took_s < LIMIT_S + BOUND_S
        whole(tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    "kind", sample(["killswitch-fired", "run-completed", "tool-call-completed"], ["run-completed"])
)
def test_an_observer_of_the_end_that_hangs(tmp_path: Path, kind: str):
    """Whoever hangs in hearing of the end keeps neither this run nor another one from its end."""
    with hanging() as hang:
        turns = [call("hung"), text("never")]
        agent = agent_with(tmp_path, turns=turns, tools=[tool(name="hung", timeout=None)(hang.block)])
        agent.subscribe(kind, hang.hold)
        took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        assert (result.terminated_by, result.terminated_source) == SWITCH
        assert took_s < LIMIT_S + BOUND_S
        other = agent_with(tmp_path, turns=turns, tools=[tool(name="hung", timeout=None)(hang.block)])
        took_s, result = timed(other.run_sync, "Do it.", run_id="other")
        assert (result.terminated_by, result.terminated_source) == SWITCH
        assert took_s < LIMIT_S + BOUND_S


@pytest.mark.parametrize("kind", sample(["wait", "swallow"], ["swallow"]))
@pytest.mark.parametrize("how", sample(["run_sync", "run"], ["run"]))
async def test_only_the_agent_below_ends(tmp_path: Path, kind: str, how: str):
    """The limit of an agent below ends that one alone: the agent above goes on, and what comes late changes nothing."""
    for trial in range(TRIES):
        with hanging() as hang:
            folder = tmp_path / str(trial)
            below = Agent(
                HungModel(getattr(hang, kind)),
                **grouped(name="below", tools=[lookup], compose=[ks.timeout_after(LIMIT_S)], **OPTIONS),
            )

            @tool
            async def let_go() -> str:
                """Let the other come back, late."""
                hang.released.set()
                await anyio.sleep(0.02)
                return "let go"

            turns = [call("below", task="Hang."), call("let_go"), text("done")]
            agent = Agent(ScriptedModel(turns), **grouped(tools=[below, let_go], trace=folder, **OPTIONS))
            if how == "run":
                took_s, result = await timed_await(agent.run("Do it.", run_id="run"))
            else:
                took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
            if took_s > LIMIT_S + BOUND_S and trial < TRIES - 1:
                continue
            assert (result.output, result.terminated_by) == ("done", "end_turn")
            assert [step.content for step in result.steps if step.type == "observation"] == ["found a", "let go"]
            assert took_s < LIMIT_S + BOUND_S
            recording = whole(folder / "run.jsonl")
            owner = recording.owners["root/below@0.0"]
            assert (owner.completed.terminated_by, owner.completed.output) == ("timeout_after", "found a")
            last = max(record.seq for record in recording.records if record.owner.startswith("root/below"))
            ends = [record.seq for record in recording.records if record.kind == "agent-completed"]
            assert [last] == ends
            return


async def test_reproducing_a_run_of_which_only_an_agent_below_ended(tmp_path: Path):
    """What ended only an agent below ends only that one in a replay."""
    options: dict[str, Any] = {"tools": [lookup], "compose": [ks.timeout_after(0.05)], **OPTIONS}
    below = Agent(HungModel(anyio.sleep_forever), **grouped(name="below", **options))
    turns = [call("below", task="Hang."), text("done")]
    await Agent(ScriptedModel(turns), **grouped(tools=[below], trace=tmp_path, **OPTIONS)).run("Do it.", run_id="run")
    again = await reproduce(whole(tmp_path / "run.jsonl"))
    assert (again.divergences, again.cut_short) == ((), False)


async def test_a_body_that_was_left_behind_with_an_open_request(tmp_path: Path):
    """A call that is given up at its own limit takes the requests of its body with it: each has an end in the trace."""
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
        recording = whole(tmp_path / "run.jsonl")
        (failed,) = [record.event for record in recording.records if record.kind == "llm-failed"]
        assert data(failed) == {
            "request": 0,
            "error": {"type": "Cancelled", "message": "the run was cancelled while the model was asked"},
            "cancelled": True,
            "cost_usd": 0.0,
        }


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
def test_an_isolated_tool(tmp_path: Path):
    """Its processes are killed, those that ignore SIGTERM among them: the result is there within the limit + 0.5 s.

    On a busy machine the best of three measurements counts.
    """
    took: list[float] = []
    for trial in range(TRIES):
        pids = tmp_path / f"pids-{trial}"
        agent = agent_with(
            tmp_path / str(trial),
            turns=[call("lookup", key="a"), call("hang", path=str(pids)), text("never")],
            tools=[lookup, isolated_tools.hang],
            compose=[ks.timeout_after(sample(1.0, 3.0))],
        )
        took_s, result = timed(agent.run_sync, "Do it.", run_id="run")
        assert (result.output, result.terminated_by) == ("found a", "timeout_after")
        whole(tmp_path / str(trial) / "run.jsonl")
        took.append(took_s)
        if (took_s < 1.5 or not PROVE) and pids.exists():
            for pid in json.loads(pids.read_text()):
                with pytest.raises(ProcessLookupError):
                    os.kill(pid, 0)
            return
    pytest.fail(f"it took {took} s")
