"""Approvers that take their time, and every way in which a call must not run: 500 and more combinations."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Approval, ApprovalRequest, tool
from playhead.kernel.approval import decide
from playhead.kernel.lifecycle.bodies import GRACE_S
from playhead.testing import call, calls, text
from playhead.trace.asked import PendingApproval, answer_to
from playhead.trace.control import Control
from playhead.trace.control_files import write_new
from tests.kernel.hung import TRIES
from tests.kernel.runs import data, make_agent, record
from tests.proving import bound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LATE_S = 0.03
LATE = {"approved": False, "why": "the approver did not answer within 0.03 s"}


async def decision(approver: Any, timeout_s: float | None = None) -> dict[str, Any]:
    """Return how an approver decides on a call."""
    request = ApprovalRequest("pay", {"amount": 5}, "low", "run", "root", None, call_id="call_1", args_hash="ab")
    return await decide(request, approver, timeout_s)


# --- time -------------------------------------------------------------------------------------------------------------


async def test_a_blocking_approver_holds_up_nothing():
    """It runs in a thread that does not keep the process alive: the loop turns, and the answer counts when it comes."""
    go, where = threading.Event(), []

    def approve(_request: ApprovalRequest) -> bool:
        where.append(threading.current_thread())
        return go.wait(10)

    async with anyio.create_task_group() as group:

        async def ask() -> None:
            assert await decision(approve) == {"approved": True}

        group.start_soon(ask)
        await anyio.sleep(0.01)
        go.set()
    assert where[0].daemon
    assert where[0] is not threading.main_thread()


def returned(approver: Any, request: ApprovalRequest) -> Any:
    """Return what an approver returns: a function that is not async itself."""
    return approver(request)


@pytest.mark.parametrize("kind", ["thread", "async", "awaitable of a thread"])
async def test_a_late_yes_is_never_used(kind: str):
    """Who has not answered in time has denied; what he says afterwards is nobody's any more."""
    said: list[str] = []

    def in_a_thread(_request: ApprovalRequest) -> bool:
        time.sleep(4 * LATE_S)
        said.append("yes")
        return True

    async def in_the_loop(_request: ApprovalRequest) -> bool:
        await anyio.sleep(4 * LATE_S)
        return True

    approver: Any = {
        "thread": in_a_thread, "async": in_the_loop, "awaitable of a thread": partial(returned, in_the_loop),
    }[kind]  # fmt: skip
    assert await decision(approver, LATE_S) == LATE
    await anyio.sleep(5 * LATE_S)
    assert said == (["yes"] if kind == "thread" else [])


async def test_an_approver_that_swallows_its_cancellation_is_left_behind():
    """It holds up the call no longer than the moment that others have to put things in order.

    On a busy machine the best of three measurements counts.
    """
    over = asyncio.Event()

    async def approve(_request: ApprovalRequest) -> bool:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return True

    took_s = []
    for _ in range(TRIES):
        began = time.perf_counter()
        assert await decision(approve, LATE_S) == LATE
        took_s.append(time.perf_counter() - began)
    assert min(took_s) < bound(LATE_S + GRACE_S + 0.2)
    over.set()
    await anyio.sleep(0.01)


FOREVER = """
import asyncio, sys, time
from playhead import Agent, tool
from playhead.compose.killswitches import require_approval_for
from playhead.testing import ScriptedModel, call, text

@tool(requires_approval=True)
def act() -> str:
    "Act."
    return "ran"

async def stubborn(request):
    while True:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            pass

agent = Agent(
    ScriptedModel([call("act"), text("done")]), tools=[act], trace=sys.argv[1],
    compose=[require_approval_for("act", stubborn, timeout=0.05)],
)
print(asyncio.run(agent.run("Do it.")).output, flush=True)
"""


def test_an_approver_that_is_left_behind_does_not_keep_the_program_from_ending(tmp_path: Path):
    """The end of the caller's loop neither waits for one that swallows every cancellation, nor complains of it."""
    command = [sys.executable, "-c", FOREVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            said = program.stdout.readline()
            began = time.monotonic()
            rest = program.communicate(timeout=10)
        finally:
            program.kill()
    assert (said, *rest, program.returncode) == ("done\n", "", "", 0)
    assert time.monotonic() - began < bound(1.5)


async def test_a_run_that_is_cancelled_does_not_wait_for_a_thread(tmp_path: Path):
    """A prompt that nobody answers does not keep a cancelled run."""
    go = threading.Event()

    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        raise AssertionError("nobody approved it")

    agent = make_agent(tmp_path, [call("pay")], pay, approver=lambda _request: go.wait(10))
    began = time.perf_counter()
    with anyio.move_on_after(LATE_S) as scope:
        await agent.run("Pay.", run_id="run")
    assert scope.cancelled_caught
    assert time.perf_counter() - began < bound(1)
    go.set()
    await anyio.sleep(0.01)


# --- answers ----------------------------------------------------------------------------------------------------------


class Truthy(Approval):
    """Says that it approves, with something that is not True."""

    why = by = None

    def __init__(self) -> None:
        """Take nothing."""

    @property
    def approved(self) -> Any:
        return "yes"


class Raising(Truthy):
    """Raises when it is looked at."""

    @property
    def approved(self) -> Any:
        raise RuntimeError("not for you")


class Fickle(Truthy):
    """Says no first, and yes whenever it is looked at again."""

    @property
    def approved(self) -> Any:
        looked = self.__dict__.setdefault("looked", [])
        looked.append(True)
        return len(looked) > 1


class Unspeakable(Truthy):
    """Approves for a reason that cannot be said."""

    approved = True

    @property
    def why(self) -> Any:  # type: ignore[override]
        class Reason:
            def __str__(self) -> str:
                raise ValueError

        return Reason()


class Says:
    approved = True

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Awaitable:
    """Waits in its own way, and then returns what is truthy."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return 1


def broken(_request: ApprovalRequest) -> Any:
    """Do as the name says."""
    raise RuntimeError("nobody home")


async def broken_later(_request: ApprovalRequest) -> Any:
    """Do as the name says."""
    await asyncio.sleep(0)
    raise KeyError("nobody home")


async def cancelled(_request: ApprovalRequest) -> Any:
    """Do as the name says."""
    raise asyncio.CancelledError


async def slow(_request: ApprovalRequest) -> Any:
    """Do as the name says."""
    await anyio.sleep(10)
    return True


def writes(request: ApprovalRequest) -> bool:
    """Approve, and try to change what runs."""
    request.arguments["key"] = "changed"
    request.arguments["more"]["deep"] = ["changed"]
    return True


class Making:
    """Makes an approval anew for each call."""

    def __init__(self, kind: type[Truthy]) -> None:
        self.kind = kind

    def __call__(self, _request: ApprovalRequest) -> Any:
        return self.kind()


class Stateful:
    """An approver with state, whose call is async."""

    async def __call__(self, _request: ApprovalRequest) -> Any:
        return [True]


NO: list[Any] = [
    lambda _: False, lambda _: None, lambda _: 1, lambda _: 1.0, lambda _: "yes", lambda _: "True", lambda _: b"y",
    lambda _: [True], lambda _: (True,), lambda _: {"approved": True}, lambda _: Says(), lambda _: Approval,
    lambda _: Approval(approved=False), lambda _: Approval(approved=1), lambda _: Approval(approved="true"),  # type: ignore[arg-type]
    lambda _: Approval(approved=Says()), Making(Truthy), Making(Raising), Making(Fickle), Making(Unspeakable),  # type: ignore[arg-type]
    lambda _: Awaitable(), lambda request: request, lambda _: (lambda: True),
    broken, broken_later, cancelled, slow, Stateful(),
]  # fmt: skip
YES: list[Any] = [lambda _: True, lambda _: Approval(approved=True, why="ok"), writes]


@dataclass
class Case:
    """A turn of calls side by side, and who answers for each."""

    number: int
    answers: list[tuple[Any, bool]]
    kind: str
    """How the approver is called: as it is, or from a coroutine."""


def cases(count: int) -> list[Case]:
    """Return turns in which every answer stands alone, in a thread and in the loop, and beside every kind of other."""
    chance = random.Random(4)
    every = [(answer, False) for answer in NO] + [(answer, True) for answer in YES]
    found = [Case(number, [each], kind) for kind in ("plain", "async") for number, each in enumerate(every)]
    while len(found) < count:
        answers = [
            chance.choice(every[:-3] if chance.random() < 0.6 else every[-3:]) for _ in range(chance.randint(2, 4))
        ]
        found.append(Case(len(found), answers, chance.choice(["plain", "async"])))
    return found


def answering(case: Case) -> Callable[[ApprovalRequest], Any]:
    """Return an approver that gives each call its own answer."""

    def plain(request: ApprovalRequest) -> Any:
        return case.answers[request.arguments["place"]][0](request)

    async def in_the_loop(request: ApprovalRequest) -> Any:
        answer = plain(request)
        return await answer if asyncio.iscoroutine(answer) else answer

    return plain if case.kind == "plain" else in_the_loop


async def test_no_body_runs_without_its_own_yes(monkeypatch: pytest.MonkeyPatch):
    """Over 500 turns of every answer there is: a body runs if, and only if, exactly its call was approved.

    And it runs with exactly the arguments that were shown, whatever the approver wrote into what it was shown.
    """
    ran: list[Any] = []

    @tool(requires_approval=True, read_only=True)
    async def pay(place: int, key: str, more: dict[str, Any]) -> str:
        """Pay."""
        ran.append((place, key, more))
        return "paid"

    async def within_a_moment(request: Any, approver: Any, _timeout_s: Any) -> dict[str, Any]:
        answer, _yes = case.answers[request.arguments["place"]]
        return await decide(request, approver, 0.02 if answer is slow else 10)

    monkeypatch.setattr("playhead.kernel.approval.decide", within_a_moment)
    combinations = 0
    for case in cases(520):
        ran.clear()
        arguments: list[dict[str, Any]] = [
            {"place": place, "key": f"{case.number}", "more": {"deep": [place]}} for place in range(len(case.answers))
        ]
        turn = calls(*(call("pay", **each) for each in arguments))
        agent = make_agent(None, [turn, text("done")], pay, approver=answering(case))
        result = await agent.run("Pay.")
        assert result.output == "done"
        expected = [(each["place"], each["key"], each["more"]) for each in arguments if case.answers[each["place"]][1]]
        assert sorted(ran, key=lambda each: each[0]) == expected, case
        combinations += 1
    assert combinations >= 500


async def test_an_answer_to_another_call_is_no_answer_to_this_one(tmp_path: Path):
    """Through the control folder too: only a file that names this call and these arguments lets it run."""
    ran: list[Any] = []
    canary = tmp_path / "canary"

    @tool(requires_approval=True, read_only=True)
    async def pay(place: int) -> str:
        """Pay."""
        ran.append(place)
        canary.write_text(str(place))
        return "paid"

    control = Control.create(tmp_path / "asked.jsonl")
    changes: list[dict[str, Any]] = [
        {"args_hash": "0" * 64}, {"call_id": "call_0_9"}, {"owner": "root/other@0.0"}, {"approved": 1},
        {"approved": "true"}, {"approved": None}, {"number": 99}, {"more": True}, {"why": 5},
    ]  # fmt: skip
    seen: list[PendingApproval] = []

    async def approve(request: ApprovalRequest) -> Approval:
        pending = control.ask(
            PendingApproval(
                call_id=request.call_id, owner=request.owner, tool=request.tool, arguments=request.arguments,
                args_hash=request.args_hash, risk=request.risk,
            )
        )  # fmt: skip
        seen.append(pending)
        exact = answer_to(pending, approved=True, why=None, by="ann")
        change: dict[str, Any] = (
            changes[request.arguments["place"]] if request.arguments["place"] < len(changes) else {}
        )
        write_new(control.folder / f"{pending.number}.answer.json", {**exact, **change})
        answer = control.take_answer(pending)
        assert answer is not None
        return Approval(answer.approved, answer.why, answer.by)

    turn = calls(*(call("pay", place=place) for place in range(len(changes))))
    run = await record(tmp_path, [turn, text("done")], pay, approver=approve)
    assert (ran, canary.exists()) == ([], False)
    decided = [data(event)["approved"] for event in run.events("approval-decided")]
    assert decided == [False] * len(changes)
    last = len(changes)
    agent = make_agent(None, [call("pay", place=last), text("done")], pay, approver=approve)
    await agent.run("Pay.")
    assert (ran, canary.read_text()) == ([last], str(last))
    control.close()
