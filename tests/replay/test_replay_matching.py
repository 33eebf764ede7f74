"""Each call gets the answer that was recorded for it: for its owner, its place and the state it was given in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Agent, Approval, Context, ToolContext, tool
from playhead.replay import MissedCall, replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import ApprovalDecided, ReplayServed
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


# --- what there is no recording of ----------------------------------------------------------------------------------


async def test_a_miss_names_the_nearest_recorded_call() -> None:
    """What was asked, what was recorded instead, and what differs; or that it has been served."""
    get = ("get", {"key": "a"})
    recording = await record_store({"Do it.": [(get,)]})
    other = await replay(recording, {"model": ScriptsModel({"Do it.": [(("get", {"key": "b"}),)]})}, trace=None)
    seq = next(iter(recording.root.calls.values())).seq
    assert other.stopped == (
        'replay_stopped: root calls get({"key": "b"}) in turn 0, place 0; the nearest recorded call is get '
        f'(event {seq}): arguments {{"key": "a"}}'
    )
    again = await replay(recording, {"model": ScriptsModel({"Do it.": [(get,), (get,)]})}, trace=None)
    assert again.stopped == (
        f'replay_stopped: root calls get({{"key": "a"}}) in turn 1, place 0; it was recorded (event {seq}), '
        "and it has been served already or is another call's"
    )
    assert (again.verdict, again.grounded) == ("inconclusive", 0.5)
    assert isinstance(again.run.steps, tuple)
    lenient = await replay(
        recording, {"model": ScriptsModel({"Do it.": [(get,), (get,)]})}, on_missing="lenient", trace=None
    )
    assert (dict(lenient.rungs), lenient.stopped, lenient.run.status) == (
        {"exact": 1, "synthetic-error": 1},
        None,
        "done",
    )


async def test_a_function_answers_what_was_not_recorded(tmp_path: Path) -> None:
    """It is told the call and why; sync or async; what it raises is a failed call, and its side effects count."""
    get, put = ("get", {"key": "a"}), ("put", {"key": "b", "value": 2})
    recording = await record_store({"Do it.": [(get,), (get,)]})
    model = ScriptsModel({"Do it.": [(put,), (get,)]})
    missed: list[MissedCall] = []

    async def simulate(call: MissedCall) -> Any:
        await anyio.lowlevel.checkpoint()
        missed.append(call)
        if call.tool == "put":
            return {"put": call.arguments["value"]}
        raise ValueError("no idea")

    result = await replay(recording, {"model": model}, on_missing=simulate, trace=tmp_path)
    assert root_rungs(result) == [("put", "simulated", {"put": 2}), ("get", "simulated", "ValueError")]
    assert [(each.tool, each.owner, each.iteration, each.position, each.stale) for each in missed] == [
        ("put", "root", 0, 0, None),
        ("get", "root", 1, 0, ["get", "a", 0, 0]),
    ]
    assert "in another state of the world" in missed[1].why
    assert (await reproduce(result.recording)).identical
    sync = await replay(recording, {"model": model}, on_missing=lambda call: call.tool, trace=None)
    assert root_rungs(sync) == [("put", "simulated", "put"), ("get", "simulated", "get")]


async def test_recorded_failures_come_back_as_failures(tmp_path: Path) -> None:
    """A body that raised, a time-out, a refusal: what the model was told then, it is told again."""

    @tool(read_only=True, timeout=0.3)
    async def fail(how: str) -> str:
        """Fail."""
        if how == "slow":
            await anyio.sleep(1)
        raise ValueError(how)

    turns = [calls(call("fail", how="a"), call("fail", how="slow"), call("fail")), text("done")]
    ran = await record(tmp_path, turns, fail)
    result = await replay(ran.recording, {"model": ScriptedModel(turns)}, trace=tmp_path)
    assert [each[2] for each in root_rungs(result)] == ["ValueError", "Timeout", "InvalidArguments"]
    assert result.verdict == "same"
    assert [step.content for step in result.run.steps] == [step.content for step in ran.result.steps]
    assert (await reproduce(result.recording)).identical


# --- approvals ------------------------------------------------------------------------------------------------------


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def sensible(request: Any) -> Approval:
    """Approve what is small."""
    return Approval(approved=request.arguments["amount"] < 10, why="by size", by="ann")


async def test_approvals_answer_as_they_did(tmp_path: Path) -> None:
    """The decision on the same call is served, wherever the call stands now; what was denied is denied again."""
    turns = [call("pay", amount=5), call("pay", amount=50), text("done")]
    recording = (await record(tmp_path, turns, pay, approver=sensible)).recording
    result = await replay(
        recording, {"model": ScriptedModel([turns[1], turns[0], text("done")])}, on_missing="lenient", trace=tmp_path
    )
    decided = [each.event for each in result.recording.records if isinstance(each.event, ApprovalDecided)]
    said = [(each.approved, each.why, each.by) for each in decided]
    assert said == [(False, "by size", "ann"), (True, "by size", "ann")]
    assert dict(result.rungs) == {"reordered": 1}  # a denial is no answer of the tool's
    assert [each[2] for each in root_rungs(result)] == ["ApprovalDenied", "paid 5"]
    assert (await reproduce(result.recording)).identical


@pytest.mark.parametrize(
    ("policy", "given", "rungs"),
    [
        ("strict", {}, {}),
        ("lenient", {}, {"synthetic-error": 1}),
        (lambda _: "paid, or so", {}, {"simulated": 1}),
        ("strict", {"tool_results": {"pay": "paid"}}, {"override": 1}),
    ],
)
async def test_nobody_is_asked_for_a_call_that_does_not_run(
    policy: Any, given: Any, rungs: Any, tmp_path: Path
) -> None:
    """For one that was not recorded, or is overridden, the replay approves by itself; the replay's recording reproduces."""
    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], pay, approver=sensible)).recording
    model = ScriptedModel([call("pay", amount=70), text("done")])
    result = await replay(recording, {"model": model, **given}, on_missing=policy, trace=tmp_path)
    assert dict(result.rungs) == rungs
    asked_for = [record.event for record in result.recording.records if record.kind == "approval-decided"]
    assert [each.by for each in asked_for if isinstance(each, ApprovalDecided)] == ["replay"] * len(rungs)
    again = await reproduce(result.recording)
    assert (again.identical, again.cut_short) == (True, rungs == {}), again.divergences
