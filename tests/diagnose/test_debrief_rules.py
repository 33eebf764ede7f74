"""Each rule where it has to speak, and where it has to be silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_rules import RULES
from playhead.trace.events import (
    FinalAnswer,
    LlmRequested,
    MessageAdded,
    MessageRef,
    RationaleMissing,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
)
from playhead.trace.events.model import ErrorInfo
from playhead.trace.types import Alternative, Rationale, ToolSpec
from tests.diagnose.recordings import made

if TYPE_CHECKING:
    from playhead.trace.events import EventBase

TOOLS = ToolsDefined(
    first_id=0,
    tools=(
        ToolSpec(name="read", read_only=True),
        ToolSpec(name="write"),
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
        self, tool: str = "read", arguments: Any = None, result: Any = "fine", error: str | None = None, **more: Any
    ) -> Script:
        """Let the model call a tool that answers at once; `why`, `refs`, `confidence`, `alternatives` are its reason."""
        self.start(tool, arguments, **more)
        return self.end(tool, result, error)

    def start(self, tool: str = "read", arguments: Any = None, **more: Any) -> Script:
        """Let the model call a tool."""
        self._calls += 1
        arguments = arguments if arguments is not None else {"key": self._calls}
        why = more.pop("why", "to know" if more else None)
        self.events.append(
            ToolCallStarted(
                call_id=f"c{self._calls}", tool=tool, position=0, args=arguments, args_hash=repr(arguments),
                rationale=Rationale(why=why, **more) if why else None, request=self._turn,
            )
        )  # fmt: skip
        return self

    def end(
        self, tool: str = "read", result: Any = "fine", error: str | None = None, number: int | None = None
    ) -> Script:
        """Let a call end and its result join the thread."""
        call_id = f"c{number or self._calls}"
        ended: Any = "denied" if error == "ApprovalDenied" else None
        self.events += [
            ToolCallCompleted(
                call_id=call_id, tool=tool, position=0, ok=error is None, ended=ended,
                result=None if error else result, error=ErrorInfo(type=error, message="no") if error else None,
            ),
            MessageAdded(id=0, role="tool", ref=MessageRef(call=call_id)),
        ]  # fmt: skip
        return self

    def answer(self, output: Any = "done", **more: Any) -> Script:
        """Let the model answer."""
        self.events.append(FinalAnswer(output=output, **more))
        return self

    def add(self, event: EventBase) -> Script:
        """Add any other event."""
        self.events.append(event)
        return self

    def found(self) -> list[tuple[str, str, str]]:
        """Return rule, severity and text of the flags, but for those about the answer's lack of tools."""
        return [(flag.rule, flag.severity, flag.text) for flag in build_debrief(made(*self.events)).flags]


def run() -> Script:
    """Return a script in its first turn."""
    return Script().turn()


def rejecting(option: str) -> dict[str, Any]:
    """Return a reason that rejects an option."""
    return {"alternatives": (Alternative(option=option, rejected_because="slow"),)}


SAME = {"key": "a"}
SPEAKS: dict[str, tuple[Script, str, str]] = {
    "repeated-after-success: a read": (
        run().call(arguments=SAME, why="I need it").turn().call(arguments=SAME, why="I need it"),
        "info",
        'read(key="a") had succeeded before and was called again, for the same reason: "I need it"',
    ),
    "repeated-after-success: a side effect": (
        run().call("write", SAME).turn().call("write", SAME),
        "high",
        'write(key="a") had succeeded before and was called again (it is not declared read-only)',
    ),
    "repeated-after-failure: failed": (
        run().call(arguments=SAME, error="E").call(arguments=SAME, error="E").call(arguments=SAME, error="E"),
        "info",
        'read(key="a") was asked for 3 times; failed each time',
    ),
    "repeated-after-failure: denied": (
        run().call("write", SAME, error="ApprovalDenied").call("write", SAME, error="ApprovalDenied"),
        "warning",
        'write(key="a") was asked for 2 times; denied each time',
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
    "reason-contradicts-call: another order": (
        run().call("write", {"order": "405"}, why="pay order 404"),
        "warning",
        "the reason for write says 404; the call has order='405'",
    ),
    "reason-missing: one of two": (
        run().call(why="x").call().add(RationaleMissing(path="native", call_id="c2", tool="read")),
        "info",
        "1 of 2 calls gave no reason",
    ),
}
SILENT: dict[str, Script] = {
    "a result that was there": run().call().turn().call(refs=("obs:1",)),
    "counted from 0": run().call().turn().call(refs=("obs:0",)),
    "a reference of no known form": run().call(refs=("scratch:goal", "the task", "obs:x", "")),
    "a call that was there": run().call().turn().call(refs=("call:c1", "c1")),
    "the same tool with other arguments": run().call(**rejecting("read")).call(),
    "another argument": run().call(arguments=SAME).turn().call(arguments={"key": "b"}),
    "another result": run().call(arguments=SAME).turn().call(arguments=SAME, result="new"),
    "a reason of its own": run().call(arguments=SAME, why="to know").turn().call(arguments=SAME, why="to check it again"),
    "sure, and wrong": run().call(confidence=1.0, error="E"),
    "the same words for different calls": run().call(why="I need it").turn().call("write", why="I need it"),
    "a failure that was said": run().call("write", error="E").answer("That did not work."),
    "an answer without a call": run().answer("Hello!"),
    "a write between two reads": run().call(arguments=SAME).call("write").turn().call(arguments=SAME),
    "two failures": run().call(arguments=SAME, error="E").call(arguments=SAME, error="E").call(),
    "failures that ended in a success": run().call(arguments=SAME, error="E").call(arguments=SAME, error="E").call(arguments=SAME),
    "numbers that were seen": run().call(result="4,180 feet, 1274.064 m").answer("4180 feet, about 1,274 metres"),
    "a number of the arguments": run().call("write", {"x": 0.3048}).answer("0.3048"),
    "small and listed numbers": run().call().answer("1. There are 3 of 12.\n2. No more."),
    "one call that worked": run().call(error="E").call("write").answer(),
    "no answer, no claim": run().call(error="E"),
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
    twice = run().call("write", SAME, **rejecting("read")).call().turn().call("write", SAME)
    debrief = build_debrief(made(*twice.events))
    assert [(flag.rule, flag.severity, flag.seqs) for flag in debrief.flags] == [
        ("repeated-after-success", "high", (3, 10)),
    ]
