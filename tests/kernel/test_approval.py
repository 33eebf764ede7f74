"""A tool that requires approval runs only after an explicit yes, in time, for exactly these arguments."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, Approval, ApprovalRequest, ToolContext, tool
from playhead.compose.killswitches import require_approval_for
from playhead.replay import reproduce
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.types import Rationale
from playhead.trace.values import content_hash
from tests.kernel.hung import hanging
from tests.kernel.runs import Ran, data, make_agent, record, record_agent
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Cashier:
    """A tool that requires approval, and what it paid."""

    def __init__(self) -> None:
        self.paid: list[Any] = []

    def tool(self) -> Any:
        """Return the tool."""

        @tool(requires_approval=True, risk="high", read_only=True)
        async def pay(amount: Any, to: str = "bob") -> str:
            """Pay."""
            self.paid.append((amount, to))
            return f"paid {amount}"

        return pay


async def decided(folder: Path, approver: Any, **arguments: Any) -> tuple[Ran, list[Any]]:
    """Return the run of one call that requires approval, and what was paid."""
    cashier = Cashier()
    turns = [call("pay", **(arguments or {"amount": 5})), text("done")]
    run = await record(folder, turns, cashier.tool(), approver=approver)
    assert run.result.output == "done"
    assert (await reproduce(run.recording)).identical
    return run, cashier.paid


REFUSALS: list[tuple[Any, dict[str, Any], str]] = [
    (False, {"why": "denied"}, "denied"),
    (Approval(approved=False, why="too much", by="ann"), {"why": "too much", "by": "ann"}, "too much"),
    ("yes", {"why": "the approver returned str, not an approval"}, ""),
    (Approval(approved="yes", why="ok"), {"why": "ok"}, "ok"),  # type: ignore[arg-type]
    (Approval(approved=False, why="torn \ud800"), {"why": "torn \ufffd"}, "torn \ufffd"),
]


@pytest.mark.parametrize(("answer", "decision", "said"), REFUSALS, ids=lambda value: repr(value)[:30])
async def test_a_denial_is_recorded_and_told_to_the_model(
    tmp_path: Path, answer: Any, decision: dict[str, Any], said: str
):
    """Anything but True or an `Approval` of True is a denial: the body does not run, and the run continues."""
    run, paid = await decided(tmp_path, lambda _request: answer)
    assert paid == []
    assert [data(event) for event in run.events("approval-decided")] == [
        {"call_id": "call_0_0", "approved": False, **decision}
    ]
    message = f"pay was not approved: {said or decision['why']}"
    completed = data(run.events("tool-call-completed")[0])
    assert (completed["ended"], completed["error"]) == ("denied", {"type": "ApprovalDenied", "message": message})
    assert run.model.requests[1].messages[-1].content == f"error: {message}"


async def test_what_the_approver_sees(tmp_path: Path):
    """The approver sees the tool, exactly the arguments that would run, the risk, who calls and the stated reason."""
    seen: list[ApprovalRequest] = []
    cashier = Cashier()
    reason = '<rationale call="1">{"why": "bob waits", "confidence": 0.5}</rationale>'

    def approve(request: ApprovalRequest) -> bool:
        seen.append(request)
        return True

    await record(
        tmp_path, [calls(call("pay", amount=2**60), text=reason), text("done")], cashier.tool(), approver=approve
    )
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


# --- arguments stay what was approved ---------------------------------------------------------------------------------


@pytest.mark.parametrize("changed_at", ["tool-call-started", "approval-requested", "approval-decided"])
async def test_a_subscriber_cannot_change_the_arguments(tmp_path: Path, changed_at: str):
    """A call does not run when something has written into its arguments after they were hashed."""
    cashier = Cashier()
    held: list[Any] = []
    agent = make_agent(tmp_path, [call("pay", amount=5), text("done")], cashier.tool(), approver=lambda _: True)
    agent.subscribe("tool-call-started", lambda record: held.append(record.event.args))  # type: ignore[attr-defined]
    agent.subscribe(changed_at, lambda _: held[0].update(amount=1_000_000))
    run = await record_agent(agent, tmp_path)
    assert cashier.paid == []
    assert data(run.events("tool-call-completed")[0])["error"] == {
        "type": "ArgumentsChanged",
        "message": "the arguments of pay are not those that were approved: "
        "something (a subscriber, a hook) has written into them since",
    }


# --- time -------------------------------------------------------------------------------------------------------------


async def test_an_approval_after_the_end_pays_nothing(tmp_path: Path):
    """Approval that comes after the end of the run is too late."""
    cashier = Cashier()
    with hanging() as hang:
        agent = make_agent(tmp_path, [call("pay", amount=5)], cashier.tool(), approver=lambda _: bool(hang.block()))
        handle = agent.start("Pay.", run_id="run")
        await anyio.to_thread.run_sync(hang.started.wait)
        handle.terminate()
        assert (await handle).terminated_by == "terminated"
    await anyio.sleep(0.01)
    assert cashier.paid == []


@pytest.mark.parametrize("kind", ["block", "wait", "swallow"])
async def test_late_approval_is_not_used(tmp_path: Path, kind: str):
    """An approver that has not answered in time has denied, one that swallows its cancellation too."""
    cashier = Cashier()
    with hanging() as hang:
        answered = getattr(hang, kind)

        async def in_loop(_request: ApprovalRequest) -> bool:
            return bool(await answered())

        def in_thread(_request: ApprovalRequest) -> bool:
            return bool(answered())

        switch = require_approval_for("pay", in_thread if kind == "block" else in_loop, timeout=0.03)
        turns = [call("pay", amount=5), text("done")]
        run = await record(tmp_path, turns, cashier.tool(), approver=lambda _: True, compose=[switch])
        hang.released.set()
        await anyio.sleep(0.01)
    assert cashier.paid == []
    assert [(event.approved, event.why) for event in run.events("approval-decided")] == [
        (True, None),
        (False, "the approver did not answer within 0.03 s"),
    ]


# --- every answer beside every other ----------------------------------------------------------------------------------


class Fickle(Approval):
    """Denies first, and approves when it is read again."""

    why = by = None

    def __init__(self) -> None:
        """Take nothing."""

    @property
    def approved(self) -> Any:
        read = self.__dict__.setdefault("read", [])
        read.append(True)
        return len(read) > 1


def broken(_request: ApprovalRequest) -> Any:
    """Raise."""
    raise RuntimeError("nobody home")


async def broken_later(_request: ApprovalRequest) -> Any:
    """Raise in the loop."""
    await asyncio.sleep(0)
    raise KeyError("nobody home")


async def cancelled(_request: ApprovalRequest) -> Any:
    """Raise a cancellation that nobody asked for."""
    raise asyncio.CancelledError


def writes(request: ApprovalRequest) -> bool:
    """Approve, and try to change the arguments."""
    request.arguments["to"] = "mallory"
    request.arguments["amount"]["place"] = "elsewhere"
    return True


NO: list[Any] = [
    lambda _: False, lambda _: None, lambda _: 1, lambda _: {"approved": True}, lambda _: Approval(approved=False),
    lambda _: Approval(approved="true"), lambda _: Fickle(), broken, broken_later, cancelled,  # type: ignore[arg-type]
]  # fmt: skip
YES: list[Any] = [lambda _: True, lambda _: Approval(approved=True, why="ok"), writes]


def answering(answers: list[Any]) -> Callable[[ApprovalRequest], Any]:
    """Return an approver that gives each call its own answer."""

    async def approve(request: ApprovalRequest) -> Any:
        answer = answers[request.arguments["amount"]["place"]](request)
        return await answer if asyncio.iscoroutine(answer) else answer

    return approve


@pytest.mark.slow
async def test_no_body_runs_without_approval_of_its_own_call():
    """In turns of random answers side by side a body runs if, and only if, exactly its call was approved.

    It runs with the arguments that were shown; what the approver writes into them changes nothing.
    """
    chance = random.Random(4)
    for _ in range(sample(520, 60)):
        answers = [chance.choice(NO if chance.random() < 0.6 else YES) for _ in range(chance.randint(2, 4))]
        cashier = Cashier()
        turn = calls(*(call("pay", amount={"place": place}) for place in range(len(answers))))
        agent = make_agent(None, [turn, text("done")], cashier.tool(), approver=answering(answers))
        assert (await agent.run("Pay.")).output == "done"
        approved = [place for place, answer in enumerate(answers) if answer in YES]
        assert sorted(cashier.paid, key=str) == [({"place": place}, "bob") for place in approved], answers


async def test_a_sub_agent_has_its_own_approver(tmp_path: Path):
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
