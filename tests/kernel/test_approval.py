from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, Approval, ApprovalRequest, ToolContext, load_recording, tool
from playhead.errors import UsageError
from playhead.kernel.strategies.reactive import Reactive
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.types import Rationale
from playhead.trace.values import content_hash
from tests.kernel.runs import Ran, data, make_agent, record, record_agent

if TYPE_CHECKING:
    from pathlib import Path


class Cashier:
    """A tool that costs money, and what was paid with it."""

    def __init__(self) -> None:
        self.paid: list[Any] = []

    def tool(self, **declared: Any) -> Any:
        """Return the tool."""

        @tool(requires_approval=True, risk="high", **declared)
        async def pay(amount: Any, to: str = "bob") -> str:
            """Pay."""
            self.paid.append((amount, to))
            return f"paid {amount}"

        return pay


async def decided(folder: Path, approver: Any, **arguments: Any) -> tuple[Ran, list[Any]]:
    """Return the run of one call that needs approval, and what was paid."""
    cashier = Cashier()
    turns = [call("pay", **(arguments or {"amount": 5})), text("done")]
    run = await record(folder, turns, cashier.tool(), approver=approver)
    assert run.result.output == "done"
    assert (await reproduce(run.recording)).identical
    return run, cashier.paid


class Yes:
    approved = True

    def __bool__(self) -> bool:
        return True


REFUSALS: list[tuple[Any, dict[str, Any], str]] = [
    (False, {"why": "denied"}, "denied"),
    (Approval(approved=False), {}, "no reason given"),
    (Approval(approved=False, why="too much", by="ann"), {"why": "too much", "by": "ann"}, "too much"),
    (None, {"why": "the approver returned NoneType, not an approval"}, ""),
    ("yes", {"why": "the approver returned str, not an approval"}, ""),
    (1, {"why": "the approver returned int, not an approval"}, ""),
    ({"approved": True}, {"why": "the approver returned dict, not an approval"}, ""),
    (Yes(), {"why": "the approver returned Yes, not an approval"}, ""),
    (Approval(approved=1), {}, "no reason given"),  # type: ignore[arg-type]
    (Approval(approved="yes", why="ok"), {"why": "ok"}, "ok"),  # type: ignore[arg-type]
    (Approval(approved=False, why=5, by=object), {"why": "5", "by": "<class 'object'>"}, "5"),  # type: ignore[arg-type]
    (Approval(approved=False, why="torn \ud800"), {"why": "torn \ufffd"}, "torn \ufffd"),
]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("answer", "decision", "told"), REFUSALS, ids=lambda value: repr(value)[:30])
async def test_anything_but_a_yes_is_a_no(tmp_path: Path, kind: str, answer: Any, decision: dict[str, Any], told: str):
    """Whatever is not True or an `Approval` of True: the body never runs, the model is told, the run goes on."""

    async def approve_async(_request: ApprovalRequest) -> Any:
        await anyio.lowlevel.checkpoint()
        return answer

    run, paid = await decided(tmp_path, (lambda _request: answer) if kind == "sync" else approve_async)
    assert paid == []
    assert [data(event) for event in run.events("approval-decided")] == [
        {"call_id": "call_0_0", "approved": False, **decision}
    ]
    message = f"pay was not approved: {told or decision['why']}"
    completed = data(run.events("tool-call-completed")[0])
    assert (completed["ended"], completed["error"]) == ("denied", {"type": "ApprovalDenied", "message": message})
    assert run.model.requests[1].messages[-1].content == f"error: {message}"


@pytest.mark.parametrize(
    ("answer", "decision"), [(True, {}), (Approval(approved=True, why="ok", by="ann"), {"why": "ok", "by": "ann"})]
)
async def test_a_yes_lets_the_body_run(tmp_path: Path, answer: Any, decision: dict[str, Any]):
    """With an explicit yes the body runs once, after everything about the decision has been recorded."""
    run, paid = await decided(tmp_path, lambda _request: answer)
    assert paid == [(5, "bob")]
    shown = [event for event in run.events() if "approval" in event.kind or "tool-call" in event.kind
             or event.kind == "fact-recorded"]  # fmt: skip
    assert [(event.kind, data(event)) for event in shown[1:4]] == [
        ("approval-requested", {"call_id": "call_0_0", "tool": "pay", "args_hash": content_hash({"amount": 5})}),
        ("fact-recorded", {"name": "approval", "key": "call_0_0", "value": {"approved": True, **decision}}),
        ("approval-decided", {"call_id": "call_0_0", "approved": True, **decision}),
    ]
    assert [shown[0].kind, shown[4].kind] == ["tool-call-started", "tool-call-completed"]
    assert shown[0].args_hash == shown[1].args_hash


async def test_what_the_approver_sees(tmp_path: Path):
    """The approver sees the tool, exactly the arguments that would run, the risk, who asks and the stated reason."""
    seen: list[ApprovalRequest] = []
    cashier = Cashier()
    reason = '<rationale call="1">{"why": "bob waits", "confidence": 0.5}</rationale>'
    turn = calls(call("pay", amount=2**60), text=reason)

    def approve(request: ApprovalRequest) -> bool:
        seen.append(request)
        return True

    await record(tmp_path, [turn, text("done")], cashier.tool(), approver=approve)
    assert seen == [
        ApprovalRequest(
            tool="pay",
            arguments={"amount": 2**60},
            risk="high",
            run_id="run",
            owner="root",
            rationale=Rationale(why="bob waits", confidence=0.5),
            call_id="call_0_0",
            args_hash=content_hash({"amount": 2**60}),
        )
    ]
    assert cashier.paid == [(2**60, "bob")]


async def test_an_approver_cannot_change_the_arguments(tmp_path: Path):
    """What runs is what was hashed: an approver that writes into the arguments it is shown changes nothing."""

    def approve(request: ApprovalRequest) -> bool:
        request.arguments["amount"]["sum"] = 1_000_000
        request.arguments["to"] = "mallory"
        return True

    run, paid = await decided(tmp_path, approve, amount={"sum": 5})
    assert paid == [({"sum": 5}, "bob")]
    assert run.events("tool-call-started")[0].args == {"amount": {"sum": 5}}


@pytest.mark.parametrize("changed_at", ["tool-call-started", "approval-requested", "approval-decided"])
async def test_a_subscriber_cannot_change_the_arguments(tmp_path: Path, changed_at: str):
    """Whoever writes into the arguments of a recorded event after they were hashed keeps the call from running."""
    ran: list[str] = []

    @tool(requires_approval=True)
    def delete(path: str) -> str:
        """Delete."""
        ran.append(path)
        return path

    held: list[Any] = []
    agent = make_agent(tmp_path, [call("delete", path="/tmp/mine"), text("done")], delete, approver=lambda _: True)

    def hold(record: Any) -> None:
        held.append(record.event.args)

    agent.subscribe("tool-call-started", hold)
    agent.subscribe(changed_at, lambda _: held[0].update(path="/etc"))
    run = await record_agent(agent, tmp_path)
    (completed,) = run.events("tool-call-completed")
    assert ran == []
    assert data(completed)["error"] == {
        "type": "ArgumentsChanged",
        "message": "the arguments of delete are not those that were approved: "
        "something (a subscriber, a hook) has written into them since",
    }


async def test_a_run_that_ends_while_somebody_thinks_pays_nothing(tmp_path: Path, register: Any):
    """A yes that comes after the end is too late: the body does not run."""
    sessions: list[Any] = []
    cashier = Cashier()

    async def watched(state: Any, session: Any) -> Any:
        sessions.append(session)
        return await Reactive().run(state, session)

    def approve(_request: ApprovalRequest) -> bool:
        sessions[0].terminate("killed", source="switch")
        return True

    register("watched", watched)
    run = await record(tmp_path, [call("pay", amount=5)], cashier.tool(), approver=approve, strategy="watched")
    assert (cashier.paid, run.result.terminated_by) == ([], "killed")
    (completed,) = run.events("tool-call-completed")
    assert (completed.ok, completed.error.type) == (False, "Cancelled")


async def test_a_run_that_is_cancelled_while_somebody_thinks_pays_nothing(tmp_path: Path):
    """A cancellation is no answer: it goes on its way, and the body does not run."""
    cashier = Cashier()

    async def approve(_request: ApprovalRequest) -> bool:
        await anyio.sleep_forever()
        return True

    agent = make_agent(tmp_path, [call("pay", amount=5)], cashier.tool(), approver=approve)
    with anyio.move_on_after(0.01) as scope:
        await agent.run("Pay.", run_id="run")
    assert (scope.cancelled_caught, cashier.paid) == (True, [])
    recording = load_recording(tmp_path / "run.jsonl")
    assert recording.counts().get("approval-decided", 0) == 0
    assert recording.ending is not None
    assert recording.ending.terminated_by == "cancelled"


def test_an_agent_needs_somebody_to_ask():
    """An agent that has such a tool and nobody to ask is refused when it is made, not when it is too late."""
    with pytest.raises(
        UsageError, match=r"^a yes is required before pay may run; pass approver=, a function that decides on each"
    ):
        Agent(ScriptedModel([]), tools=[Cashier().tool()])


# --- below the root --------------------------------------------------------------------------------------------------


async def test_a_sub_agent_asks_its_own_approver(tmp_path: Path):
    """An agent keeps its approver when another agent calls it, in its own calls and in those of its tools' bodies."""
    cashier = Cashier()
    asked: list[tuple[str, str]] = []

    def strict(request: ApprovalRequest) -> bool:
        asked.append(("strict", request.owner))
        return False

    def lenient(request: ApprovalRequest) -> bool:
        asked.append(("lenient", request.owner))
        return True

    @tool
    async def indirectly(context: ToolContext) -> Any:
        """Pay by another way."""
        return await context.tools.call("pay", amount=7)

    child = Agent(
        ScriptedModel([calls(call("pay", amount=5), call("indirectly")), text("tried")]),
        name="child",
        tools=[cashier.tool(), indirectly],
        approver=strict,
    )
    turns = [calls(call("child", task="Pay."), call("pay", amount=1)), text("done")]
    await record(tmp_path, turns, child, cashier.tool(), approver=lenient)
    assert asked == [
        ("strict", "root/child@0.0"),
        ("strict", "root/child@0.0/indirectly@0.1"),
        ("lenient", "root"),
    ]
    assert cashier.paid == [(1, "bob")]
