"""What was never recorded, what failed, what had to be approved: served as it was, or not at all, and never in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Approval, tool
from playhead.replay import MissedCall, replay, reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import ApprovalDecided
from tests.kernel.runs import record
from tests.replay.stores import ScriptsModel, record_store, root_rungs

if TYPE_CHECKING:
    from pathlib import Path

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
        f'replay_stopped: root calls get({{"key": "a"}}) in turn 1, place 0; it was recorded once (event {seq}), '
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


@pytest.mark.parametrize("policy", ["strict", "lenient", lambda _: "paid, or so"])
async def test_nobody_is_asked_for_a_call_that_was_not_recorded(policy: Any, tmp_path: Path) -> None:
    """The replay says so itself, and the replay's recording reproduces."""
    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], pay, approver=sensible)).recording
    model = ScriptedModel([call("pay", amount=7), text("done")])
    result = await replay(recording, {"model": model}, on_missing=policy, trace=tmp_path)
    asked_for = [record.event for record in result.recording.records if record.kind == "approval-decided"]
    assert [each.by for each in asked_for if isinstance(each, ApprovalDecided)] == ["replay"] * (policy != "strict")
    again = await reproduce(result.recording)
    assert (again.identical, again.cut_short) == (True, policy == "strict"), again.divergences


async def test_an_overridden_call_needs_no_approval(tmp_path: Path) -> None:
    """Nothing runs, so nobody has to say yes."""
    recording = (await record(tmp_path, [call("pay", amount=5), text("done")], pay, approver=sensible)).recording
    model = ScriptedModel([call("pay", amount=50), text("done")])
    result = await replay(recording, {"model": model, "tool_results": {"pay": "paid"}}, trace=tmp_path)
    assert root_rungs(result) == [("pay", "override", "paid")]
    assert (await reproduce(result.recording)).identical
