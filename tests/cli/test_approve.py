"""`approvals`, `approve`, `deny` and `run --approve`: exactly the call that is shown is answered, and only once."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead.compose.approvers import PROMPT
from playhead.compose.inbox import Inbox, PendingApproval
from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.replay import load_recording
from playhead.trace.control import FOLDER, Control
from playhead.trace.events import ApprovalDecided
from tests.cli.command_line import objects, playhead
from tests.cli.conftest import saying
from tests.cli.other_processes import begin
from tests.cli.recorded import EVIL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import ChatServer

TOOLS = """
from pathlib import Path
from playhead import tool

@tool(requires_approval=True, risk="high")
def pay(amount: int) -> str:
    "Pay."
    with Path("paid").open("a") as file:
        file.write(f"{amount};")
    return "paid"
"""
HASH = "ab" * 32


def pending(**fields: Any) -> PendingApproval:
    """Return a call that waits."""
    given = {
        "call_id": "call_0_0", "owner": "root", "tool": "pay", "arguments": {"amount": 5}, "args_hash": HASH,
        "risk": "high", "why": "bob waits",
    }  # fmt: skip
    return PendingApproval(**{**given, **fields})


@pytest.fixture
def inbox(folder: Path) -> Iterator[Inbox]:
    """The inbox of the run `mine`, which goes on."""
    recorder = begin(folder / "mine.jsonl")
    control = OwnControl.create(folder / "mine.jsonl")
    yield Inbox(control)
    control.close()
    recorder.seal()


SHOWN = f"""\
pay wants to run: risk high, asked by root
  {{
    "amount": 5
  }}
  hash    {HASH}
  reason  bob waits
"""


def test_what_waits(inbox: Inbox):
    """Everything about each call of all runs that go on, or of one."""
    nothing = playhead("approvals")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no call waits for an answer\n")
    inbox.ask(pending())
    inbox.ask(pending(owner="root/child@0.0", redacted=True))
    for arguments in ([], ["mine"], ["latest"]):
        result = playhead("approvals", *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        first, second = re.sub(r"asked \d+ s", "asked 0 s", result.stdout).split("\n\n")
        assert f"{first}\n" == f"run mine  call call_0_0  asked 0 s ago\n{SHOWN}"
        assert second.startswith("run mine  call root/child@0.0/call_0_0  asked 0 s ago\npay wants to run: ")
        assert "(secrets are left out of what is shown)" in second


def test_a_yes(inbox: Inbox):
    """Exactly what was approved is shown, and the run gets it; a second answer is refused."""
    asked = inbox.ask(pending())
    assert objects(playhead("approvals", "--json")) == [{"run_id": "mine", "call": "call_0_0", **asked.model_dump()}]
    result = playhead("approve", "mine", "call", "--why", "fine")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.partition("\n")[2] == f"{SHOWN}approved; the run goes on as soon as it has read this\n"
    answer = inbox.take_answer(asked)
    assert answer is not None
    assert (answer.approved, answer.why, bool(answer.by)) == (True, "fine", True)
    again = playhead("deny", "mine", "call_0_0", "--why", "no")
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr == (
        "playhead: no call 'call_0_0' waits: it has been answered, given up, or never asked. Known: none.\n"
    )


def test_a_no(inbox: Inbox):
    """It needs a reason, which the run gets."""
    asked = inbox.ask(pending())
    assert playhead("deny", "mine", "call_0_0").exit_code == 2
    result = playhead("deny", "mine", "call_0_0", "--why", "too much", "--json")
    (said,) = objects(result)
    assert result.exit_code == 0
    assert (said["approved"], said["answer"], said["arguments"]) == (False, "too much", {"amount": 5})
    answer = inbox.take_answer(asked)
    assert answer is not None
    assert (answer.approved, answer.why) == (False, "too much")


def test_which_call_is_meant(inbox: Inbox):
    """Nothing is answered by guessing."""
    owners = {"root": ["call_0_0", "call_0_1"], "root/child@0.0": ["call_0_0"], "root/third@0.2": ["call_7_0"]}
    calls = [inbox.ask(pending(owner=owner, call_id=name)) for owner, names in owners.items() for name in names]
    for name, message in {
        "call_0": "3 calls wait that 'call_0' may mean; name one: call_0_0, call_0_1, root/child@0.0/call_0_0",
        "cal_0_1": "no call 'cal_0_1' waits: it has been answered, given up, or never asked. Did you mean 'call_0_1'?",
    }.items():
        result = playhead("approve", "mine", name)
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert message in result.stderr
    assert [inbox.take_answer(each) for each in calls] == [None] * 4
    assert playhead("approve", "mine", "call_0_0").exit_code == 0  # that of the root, by its whole name
    assert playhead("approve", "mine", "root/child@0.0/call_0_0").exit_code == 0
    assert [each is not None for each in map(inbox.take_answer, calls)] == [True, False, True, False]


@pytest.mark.parametrize(
    "hostile", [{"asked_us": -(10**400)}, {"asked_us": 10**400}, {"arguments": json.loads("[" * 900 + "]" * 900)}]
)
def test_a_hostile_request_hides_no_other(inbox: Inbox, hostile: dict[str, Any]):
    """It is left out, and the calls awaiting approval are shown and can be answered."""
    asked = inbox.ask(pending())
    content = json.dumps({**asked.model_dump(), "call_id": EVIL, **hostile}).encode()
    (inbox.control.folder / f"{hashlib.sha256(content).hexdigest()}.request.json").write_bytes(content)
    for command in (["approvals"], ["approvals", "mine"], ["approvals", "--json"], ["approve", "mine", "call_0_0"]):
        result = playhead(*command)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "call_0_0" in result.stdout


# --- run --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def paying(chat: ChatServer, home: Path) -> list[str]:
    """A run whose model wants to pay."""
    (home / "my_tools.py").write_text(TOOLS)
    chat.answers[:] = [saying("", pay={"amount": 5}), saying("Done.")]
    return [
        "run", "Pay bob.", "--model", "ollama/m", "--api-base", chat.address, "--tools", "my_tools:pay", "--run-id", "mine",
        "--no-rationale",
    ]  # fmt: skip


def test_nobody_to_ask(paying: list[str], home: Path):
    """Off a terminal a call that requires approval is denied, and the model is told how that could change."""
    playhead(*paying)
    completed = load_recording("mine").root.calls["call_0_0"].completed
    assert completed is not None
    assert completed.error is not None
    assert completed.error.message == (
        "pay was not approved: playhead run asks nobody about pay; --approve ask does on a terminal, --approve inbox anywhere"
    )
    assert not (home / "paid").exists()
    result = playhead(*paying, "--approve", "ask")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "playhead: --approve ask has nobody to ask: stdin is not a terminal; --approve inbox lets another process decide\n"
    )


def test_another_process_decides(paying: list[str], home: Path):
    """The run says which call waits and what to type, and goes on as it is told."""
    folder = home / "my traces"

    def answer() -> None:
        late = time.monotonic() + 20
        while not (found := Control.of(folder / "mine.jsonl")) or not Inbox(found).pending():
            assert time.monotonic() < late
            time.sleep(0.005)
        Inbox(found).answer(Inbox(found).pending()[0], approved=True, why="so it is", by="ann")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    result = playhead(*paying, "--approve", "inbox", "--trace-dir", folder)
    thread.join()
    assert result.exit_code == 0
    typed = f"playhead approve mine call_0_0 --trace-dir '{folder}'  (or deny … --why TEXT)\n"
    assert f"pay waits for approval: {typed}" in result.stderr
    assert (home / "paid").read_text() == "5;"
    events = [record.event for record in load_recording(folder / "mine.jsonl").records]
    (decided,) = [event for event in events if isinstance(event, ApprovalDecided)]
    assert (decided.approved, decided.why, decided.by) == (True, "so it is", "ann")
    assert not (folder / FOLDER).exists()


@pytest.mark.slow
def test_somebody_at_the_terminal_decides(paying: list[str], home: Path):
    """On a terminal whoever sits there is asked; the status line stands aside until it is answered."""
    controller, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "100"}
    command = subprocess.Popen([sys.executable, "-m", "playhead", *paying], stdin=side, stdout=side, stderr=side, env=environment)  # fmt: skip
    os.close(side)
    shown = b""
    answered = quiet = False
    try:
        while chunk := read(controller, 30):
            shown += chunk
            if not answered and PROMPT.encode() in shown:
                answered, quiet = True, not read(controller, 0.3)  # three times as long as the status line stands still
                os.write(controller, b"y\n")
    except OSError:  # Linux says so when the other side is closed
        pass
    finally:
        command.wait(timeout=30)
        os.close(controller)
    text = shown.decode()
    assert (answered, quiet, command.returncode) == (True, True, 0), text
    question = text.replace("\r\n", "\n").partition("pay wants to run")[2].partition(PROMPT)
    assert question[0].startswith(': risk high, asked by root\n  {\n    "amount": 5\n  }\n  hash    ')
    assert question[2].startswith("y\n")
    assert (home / "paid").exists()


def read(controller: int, seconds: float) -> bytes:
    """Return what is shown next, nothing when nothing is for so long."""
    return os.read(controller, 65536) if select.select([controller], [], [], seconds)[0] else b""
