"""Each rule where it has to speak, and where it has to be silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_rules import RULES
from playhead.trace import events as e
from playhead.trace.events import (
    FinalAnswer,
    LlmRequested,
    MessageAdded,
    MessageRef,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
)
from playhead.trace.events.model import ErrorInfo
from playhead.trace.types import Rationale, ToolSpec
from tests.diagnose.recordings import made

if TYPE_CHECKING:
    from playhead.trace.events import EventBase

TOOLS = ToolsDefined(
    first_id=0,
    tools=(
        ToolSpec(name="read", read_only=True),
        ToolSpec(name="write"),
        ToolSpec(name="send_mail"),
        ToolSpec(name="helper", kind="agent"),
        ToolSpec(name="final-answer", kind="meta"),
    ),
)


class Script:
    """Events of one agent, written call by call."""

    def __init__(self) -> None:
        self.events: list[EventBase] = [TOOLS]
        self._calls = 0
        self._turn = -1

    def turn(self) -> Script:
        """Ask the model again."""
        self._turn += 1
        self.events.append(LlmRequested(request=self._turn, model="m", messages=()))
        return self

    def call(
        self,
        tool: str = "read",
        arguments: Any = None,
        result: Any = "fine",
        error: str | None = None,
        why: str | None = None,
    ) -> Script:
        """Let the model call a tool that answers at once; `why` is its reason."""
        self._calls += 1
        arguments = arguments if arguments is not None else {"key": self._calls}
        call: dict[str, Any] = {"call_id": f"c{self._calls}", "tool": tool, "position": 0}
        ended: Any = "denied" if error == "ApprovalDenied" else None
        failure = ErrorInfo(type=error, message="no") if error else None
        reason = Rationale(why=why) if why else None
        self.events += [
            ToolCallStarted(**call, args=arguments, args_hash=repr(arguments), rationale=reason, request=self._turn),
            ToolCallCompleted(**call, ok=error is None, ended=ended, result=None if error else result, error=failure),
            MessageAdded(id=0, role="tool", ref=MessageRef(call=call["call_id"])),
        ]
        return self

    def answer(self, output: Any = "done", **more: Any) -> Script:
        """Let the model answer."""
        self.events.append(FinalAnswer(output=output, **more))
        return self

    def asked(self, text: str) -> Script:
        """Let the user write."""
        self.events.append(MessageAdded(id=1, role="user", content=text))
        return self

    def found(self) -> list[tuple[str, str, str]]:
        """Return rule, severity and text of the flags, but for those about the answer's lack of tools."""
        return [(flag.rule, flag.severity, flag.text) for flag in build_debrief(made(*self.events)).flags]


def run() -> Script:
    """Return a script in its first turn."""
    return Script().turn()


SAME = {"key": "a"}
SPEAKS: dict[str, tuple[Script, str, str]] = {
    "repeated-after-success: a read": (
        run().call(arguments=SAME, why="I need it").turn().call(arguments=SAME, why="I need it"),
        "info",
        'read(key="a") had succeeded before and was called again, 1 time',
    ),
    "repeated-after-success: a side effect": (
        run().call("write", SAME).turn().call("write", SAME),
        "high",
        'write(key="a") had succeeded before and was called again, 1 time (it is not declared read-only)',
    ),
    "ungrounded-numbers: one": (
        run().call(result="4,180 feet").answer("1,300 metres"),
        "warning",
        "the answer holds 1,300; the trace does not show it before, and nothing that it shows gives it in one step",
    ),
    "ungrounded-numbers: a number that only a sub-agent said": (
        run().call("helper", {"task": "?"}, result="It is 365.").answer("365 metres", confidence="high"),
        "warning",
        (
            "the answer, for which it stated high confidence, holds 365; the trace does not show it before, and nothing that it "
            "shows gives it in one step"
        ),
    ),
    "unsupported-claim: of a tool that failed": (
        run().call("send_mail", {"to": "Ann"}, error="E").answer("I have sent the mail to Ann."),
        "high",
        'the answer says "I have sent the mail to Ann."; send_mail failed (no)',
    ),
    "unsupported-claim: of a tool that was never called, whatever the task is about": (
        run().asked("Look into the complaint.").call().answer("I have sent a mail to Ann."),
        "high",
        'the answer says "I have sent a mail to Ann."; no call of send_mail succeeded',
    ),
    "empty-result: of two calls, one as JSON in a text": (
        run()
        .call(arguments={"q": "Zed"}, result={"q": "Zed", "rows": [], "total": 0})
        .call(arguments=SAME, result="[]"),
        "info",
        'read(q="Zed") found nothing',
    ),
    "unseen-argument: a number": (
        run()
        .asked("Refund order 107 of a@x.example.")
        .call("write", {"order": 107, "amount": 701, "days": 3, "to": "B@x.example"}),
        "warning",
        'write(order=107, amount=701, days=3, to="B@x.example") has 701, b@x.example, which neither the task nor a result holds before',
    ),
    "names-another: the task": (
        run()
        .asked("Refund order mira-1, which was 107.")
        .call(result="jo-2: 114")
        .call("write", {"order": "jo-2", "amount": 114}),
        "info",
        'write(order="jo-2", amount=114) is called and the task names mira-1',
    ),
    "names-another: order and amount of the reason": (
        run().call(result="jo-2: 114").call("write", {"order": "jo-2", "amount": 114}, why="Refund 107 for mira-1."),
        "warning",
        'write(order="jo-2", amount=114) is called for a reason that names 107, mira-1',
    ),
}
SILENT: dict[str, Script] = {
    "another argument": run().call(arguments=SAME).turn().call(arguments={"key": "b"}),
    "another result": run().call(arguments=SAME).turn().call(arguments=SAME, result="new"),
    "a reason of its own": run().call(arguments=SAME, why="to know").turn().call(arguments=SAME, why="to check it again"),
    "the same words for different calls": run().call(why="I need it").turn().call("write", why="I need it"),
    "a failure that was said": run().call("write", error="E").answer("That did not work."),
    "an answer without a call": run().answer("Hello!"),
    "a write between two reads": run().call(arguments=SAME).call("write").turn().call(arguments=SAME),
    "numbers that were seen": run().call(result="4,180 feet, 1274.064 m").answer("4180 feet, about 1,274 metres"),
    "a text that was asked for": run().asked("Draft a note that I am ill.").call().answer("I have sent you a mail."),
    "numbers of arguments that were shown": run().call(result="24 at 2.5").call("write", {"a": 24, "b": "2.5", "c": 60}),
    "arguments of a read": run().call(arguments={"limit": 5000}),
    "a reason that names a part": run().call(result=404).call("write", {"order": 404}, why="Order 404, as policy p9 says"),
    "a figure of nothing": run().call(result={"exists": False}).call(result=0),
    "one call that worked": run().call(error="E").call("write").answer(),
}  # fmt: skip


@pytest.mark.parametrize("name", SPEAKS)
def test_speaks(name: str):
    """The rule finds it, as grave as it is and in words that claim no more than the trace shows."""
    script, severity, text = SPEAKS[name]
    assert (name.partition(":")[0], severity, text) in script.found()


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str):
    """No rule finds anything."""
    assert SILENT[name].found() == []


def test_every_rule_is_tested():
    """Each rule of the table has a case where it speaks."""
    assert {name.partition(":")[0] for name in SPEAKS} == set(RULES)


def test_flags_name_their_events():
    """A flag leads to the events; the gravest comes first."""
    twice = run().call("write", SAME, why="x").call(why="x").turn().call("write", SAME)
    debrief = build_debrief(made(*twice.events))
    assert [(flag.rule, flag.severity, flag.seqs) for flag in debrief.flags] == [
        ("repeated-after-success", "high", (10,))
    ]


FAILED: list[tuple[str, Any]] = [
    ("read", {"error": "503", "customer": None}),
    ("read", '{"isError": true, "content": "quota"}'),
    ("read", {"status": 404, "body": ""}),
    ("read", "Traceback (most recent call last): …"),
    ("write", {"status": "declined"}),
    ("write", {"delivered": False}),
]
FINE: list[tuple[str, Any]] = [
    ("read", {"error": None, "rows": [1]}),
    ("read", {"errors": 240, "requests": 1200}),
    ("read", {"status": "failed", "build": "b-77"}),
    ("read", {"locked": False}),
    ("write", {"sent": 3, "failed": 0}),
    ("read", "Errors are listed below."[7:]),
]


@pytest.mark.parametrize(("tool", "result"), [*FAILED, *FINE])
def test_results_that_report_a_failure(tool: str, result: Any):
    """They are among the errors, and where to look first names their events; what a read found failed is no failure."""
    debrief = build_debrief(made(*run().call(tool, result=result).answer("That did not work.").events))
    assert [(each.where, each.type) for each in debrief.errors] == [(f"tool:{tool}", "reported")] * (
        (tool, result) in FAILED
    )
    assert [each.places[0].seq for each in debrief.findings if each.label == "failure"] == [
        each.seq for each in debrief.errors
    ]


@pytest.mark.parametrize("result", [None, "", [], {"rows": [], "total": 0}, "No results found.", "[]"])
def test_reads_that_found_nothing(result: Any):
    """One flag for all such calls, with their results' events."""
    flags = build_debrief(made(*run().call(result=result).call(result=[0]).call(result=result).events)).flags
    assert [(flag.rule, flag.severity, len(flag.seqs)) for flag in flags] == [("empty-result", "info", 2)]


def test_one_fault_is_one_finding():
    """A sub-agent's error, which its caller and the run repeat, is one line with every place; a loop is one, too."""
    error = ErrorInfo(type="AuthError", message="401 invalid credentials")
    failed = e.LlmFailed(request=0, error=error, latency_ms=1.0)
    end = e.RunCompleted(
        status="failed", terminated_by="llm_error", terminated_source="kernel", error="model: 401 invalid credentials"
    )
    debrief = build_debrief(
        made(
            ("root/helper@0.0", failed),
            failed,
            *run().call(arguments=SAME).call(arguments=SAME).call(arguments=SAME).events,
            end=end,
        )
    )
    found = [
        (each.severity, each.label, each.what, each.count, [place.seq for place in each.places])
        for each in debrief.findings
    ]
    again = 'read(key="a") had succeeded before and was called again, 2 times'
    assert found == [
        ("high", "failure", "model: AuthError", 2, [1, 2, 14]),
        ("info", "repeated after success", again, 1, [8, 11]),
    ]
