"""Asking somebody: at a terminal, or another process. Whoever is not there has not said yes."""

from __future__ import annotations

import io
import os
import pty
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import Approval, ApprovalRequest
from playhead.compose import approvers
from playhead.compose.approvers import PROMPT, ask_in_terminal, file_inbox
from playhead.compose.inbox import Inbox
from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def request(**fields: Any) -> ApprovalRequest:
    """Return a call that waits."""
    given = {
        "tool": "pay", "arguments": {"amount": 5, "to": "bob"}, "risk": "high", "run_id": "run", "owner": "root",
        "rationale": Rationale(why="bob waits", confidence=0.5), "call_id": "call_0_0", "args_hash": "ab" * 32,
    }  # fmt: skip
    return ApprovalRequest(**{**given, **fields})


async def until(there: Callable[[], Any]) -> None:
    """Wait for what another task or thread does."""
    while not there():  # noqa: ASYNC110 - it may be another thread
        await anyio.sleep(0.002)


# --- the terminal -----------------------------------------------------------------------------------------------------


class Sitting:
    """Somebody at a terminal: what is shown to him, and what he types."""

    def __init__(self, controller: int, shown: io.StringIO) -> None:
        self.controller = controller
        self.shown = shown

    def type(self, typed: bytes) -> None:
        """Type."""
        os.write(self.controller, typed)

    async def answer(self, *answers: bytes) -> None:
        """Answer one question after the other, each as soon as it is shown."""
        for number, typed in enumerate(answers, 1):
            await until(lambda number=number: self.shown.getvalue().count(PROMPT) >= number)  # type: ignore[misc]
            self.type(typed)


class Shown(io.StringIO):
    """Stands for stderr on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sitting]:
    """Somebody sits at the terminal of this process."""
    controller, side = pty.openpty()
    monkeypatch.setattr(approvers, "POLL_S", 0.005)
    shown = Shown()
    with open(side, encoding="utf-8", closefd=True) as stdin:  # noqa: PTH123 - a file that is open
        # In place of the module `sys`: pytest puts its own streams there between a fixture and its test.
        monkeypatch.setattr(approvers, "sys", SimpleNamespace(stdin=stdin, stderr=shown))
        yield Sitting(controller, shown)
    os.close(controller)


async def asked(somebody: Sitting, *answers: bytes, **fields: Any) -> Approval:
    """Return how a call is decided on when these lines are typed."""
    decision: list[Any] = []

    async def ask() -> None:
        decision.append(await ask_in_terminal()(request(**fields)))  # type: ignore[misc]  # it is async

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await somebody.answer(*answers)
    return decision[0]


@pytest.mark.parametrize(
    ("typed", "approved", "why"),
    [
        (b"y\n", True, None), (b"YES\n", True, None), (b"  yes \n", True, None),
        (b"\n", False, None), (b"N\n", False, None), (b"n too much\n", False, "too much"), (b"No: ask ann\n", False, "ask ann"),
        (b"yes please\n", False, "yes please"), (b"ye\n", False, "ye"), (b"\xff\xfe\n", False, "\ufffd\ufffd"),
    ],
)  # fmt: skip
async def test_an_answer_at_the_terminal(somebody: Sitting, typed: bytes, approved: bool, why: str | None):
    """The question shows all of the call; y and yes approve, any other reply denies the call and is recorded as the reason."""
    assert await asked(somebody, typed) == Approval(approved=approved, why=why, by="terminal")
    assert somebody.shown.getvalue().split("\n") == [
        "pay wants to run: risk high, asked by root",
        "  {",
        '    "amount": 5,',
        '    "to": "bob"',
        "  }",
        f"  hash    {'ab' * 32}",
        "  reason  bob waits",
        PROMPT,
    ]


async def test_the_end_of_the_input_denies(somebody: Sitting):
    """Ctrl-D denies the call, and the prompt's line is ended."""
    no = Approval(approved=False, why="no answer: the input ended", by="terminal")
    assert await asked(somebody, b"\x04") == no
    assert await asked(somebody, b"\x04", b"y\x04\x04") == no  # a y that was not entered
    assert somebody.shown.getvalue().endswith(f"{PROMPT}\n")


async def test_earlier_input_does_not_answer_the_question(somebody: Sitting):
    """Input typed before the question was shown never approves it."""
    somebody.type(b"y\ny\n")
    await anyio.sleep(0.01)
    assert await asked(somebody, b"no\n") == Approval(approved=False, why=None, by="terminal")


async def test_questions_are_asked_one_after_the_other(somebody: Sitting):
    """Parallel calls: each question gets its own answer before the next one is shown."""
    approve: Any = ask_in_terminal()
    decisions: dict[int, Approval] = {}

    async def ask(amount: int) -> None:
        decisions[amount] = await approve(request(arguments={"amount": amount}))

    async with anyio.create_task_group() as group:
        for amount in range(4):
            group.start_soon(ask, amount)
        await somebody.answer(b"y\n", b"n first\n", b"yes\n", b"n last\n")
    assert [decisions[amount].approved for amount in range(4)] == [True, False, True, False]
    assert [decisions[amount].why for amount in (1, 3)] == ["first", "last"]
    assert re.findall(r'"amount": (\d)', somebody.shown.getvalue()) == ["0", "1", "2", "3"]


async def test_hostile_text_is_escaped(somebody: Sitting):
    """No control character reaches the terminal, and nothing looks like another line or prompt."""
    evil = "\x1b[2J\r\u202e\n" + PROMPT
    decision = await asked(
        somebody, b"n\n", tool=evil, owner=evil, risk=evil, rationale=Rationale(why=evil), arguments={evil: [evil]}
    )
    assert not decision.approved
    shown = somebody.shown.getvalue()
    assert not any(ord(character) < 32 and character != "\n" for character in shown)
    assert "\u202e" not in shown
    assert len(shown.split("\n")) == 9
    assert [line for line in shown.split("\n") if line.startswith(PROMPT)] == [PROMPT]


async def test_long_arguments_are_cut(somebody: Sitting):
    """The question says how many characters of the arguments it does not show."""
    await asked(somebody, b"n\n", arguments={"text": "x" * 10_000, "more": list(range(500))}, rationale=None)
    *_, cut, _hash, reason, _prompt = somebody.shown.getvalue().split("\n")
    assert cut.startswith("  … cut: ")
    assert cut.endswith(" characters of the arguments are not shown")
    assert reason == "  reason  the model gave none"
    assert len(somebody.shown.getvalue()) < 6_000


@pytest.mark.parametrize("name", ["stdin", "stderr"])
@pytest.mark.parametrize("kind", ["pipe", "closed", "none"])
async def test_without_a_terminal(somebody: Sitting, monkeypatch: pytest.MonkeyPatch, name: str, kind: str):
    """Without a terminal the call is denied, and the decision says why."""
    stream: Any = io.StringIO("y\n") if kind != "none" else None
    if kind == "closed":
        stream.close()
    monkeypatch.setattr(f"playhead.compose.approvers.sys.{name}", stream)
    decision = await ask_in_terminal()(request())  # type: ignore[misc]  # it is async
    assert decision == Approval(approved=False, why=f"nobody could be asked: {name} is not a terminal", by="terminal")


# --- another process --------------------------------------------------------------------------------------------------


async def test_another_process_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It sees the call, without secrets, and its answer decides; afterwards nothing waits."""
    monkeypatch.setattr(approvers, "POLL_S", 0.005)
    control = OwnControl.create(tmp_path / "run.jsonl")
    inbox, decisions = Inbox(control), list[Approval]()

    async def ask() -> None:
        asked = request(control=control, redact=lambda value: {"key": "?"} if isinstance(value, dict) else value)
        decisions.append(await file_inbox()(asked))  # type: ignore[misc]  # it is async

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until(inbox.pending)
        (pending,) = inbox.pending()
        told = (pending.tool, pending.arguments, pending.redacted, pending.call_id, pending.why)
        assert told == ("pay", {"key": "?"}, True, "call_0_0", "bob waits")
        assert inbox.answer(pending, approved=False, why="so it is", by="ann")
    assert (decisions, inbox.pending()) == ([Approval(approved=False, why="so it is", by="ann")], [])
    control.close()
