"""What a run does is told while it does it: lines, and on a terminal a status line below them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from playhead import Agent
from playhead.cli.progress import Progress
from playhead.diagnose.terminal import escape
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, text
from playhead.trace import events as e
from playhead.trace.header import AgentHeader
from playhead.trace.line import Record
from playhead.trace.types import Rationale, Usage
from tests.cli.recorded import EVIL, record_hostile_run
from tests.cli.terminals import written_to_a_terminal
from tests.proving import bound

if TYPE_CHECKING:
    from pathlib import Path

STARTED = e.RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="p/m", max_iterations=10), task="go")
ASKED = e.LlmRequested(request=0, model="p/m", messages=((0, 1),))
USAGE = Usage(input_tokens=20, output_tokens=10)
ANSWERED = e.LlmResponded(request=0, text="I look.", usage=USAGE, cost_usd=0.25, latency_ms=1200)
ENDED = e.RunCompleted(
    status="done", terminated_by="end_turn", terminated_source="kernel", iterations=1, duration_ms=1200, cost_usd=0.25
)


def began(call_id: str, name: str = "lookup", **fields: Any) -> e.ToolCallStarted:
    """Return the start of a call."""
    return e.ToolCallStarted(call_id=call_id, tool=name, position=0, args={"key": "a"}, args_hash="0", **fields)


def ended(call_id: str, name: str = "lookup", **fields: Any) -> e.ToolCallCompleted:
    """Return the end of a call that took 1.2 seconds."""
    return e.ToolCallCompleted(
        **{"call_id": call_id, "tool": name, "position": 0, "ok": True, "duration_ms": 1200, **fields}
    )


def records(*events: e.EventBase | tuple[str, e.EventBase]) -> list[Record]:
    """Return events as records of turn 0, one a second; a pair names the owner."""
    pairs = [each if isinstance(each, tuple) else ("root", each) for each in events]
    return [
        Record(seq, seq * 1_000_000, owner, None if seq == 0 else 0, event, "")
        for seq, (owner, event) in enumerate(pairs)
    ]


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def kept(self) -> list[str]:
        """Return the lines that stay."""
        return [line.rpartition("\r")[2] for line in self.getvalue().split("\n")][:-1]

    def drawn(self) -> list[str]:
        """Return the status lines that were drawn below them."""
        return [frame for frame in self.getvalue().rpartition("\n")[2].split("\r") if frame.strip()]


def progress_on(terminal: Terminal, width: int = 60) -> Progress:
    """Return a progress that is shown on a terminal."""
    return Progress(
        Console(file=terminal, force_terminal=True, width=width, color_system=None, markup=False, highlight=False)
    )


def test_what_is_awaited_and_the_figures() -> None:
    """The model, the tools that run at once, who has to approve; turn, tokens, and a cost once one is known."""
    progress = progress_on(Terminal())
    seen = []
    for record in records(
        STARTED, ASKED, ANSWERED, began("1"), began("3", "calculator"), ended("1"),
        e.ApprovalRequested(call_id="3", tool="calculator", args_hash="0"),
        e.ApprovalDecided(call_id="3", approved=True),
        ended("3", "calculator"), e.LlmRetried(request=1, attempt=1, delay_s=2),
        ENDED,
    ):  # fmt: skip
        progress(record)
        seen.append(progress.status().partition("s  ")[2])
    figures = "turn 1/10  30 tokens  $0.2500"
    assert seen == [
        "0 tokens  working",
        "turn 1/10  0 tokens  waiting for p/m",
        f"{figures}  working",
        f"{figures}  running lookup",
        f"{figures}  running calculator, running lookup",
        f"{figures}  running calculator",
        f"{figures}  waiting for approval of calculator, running calculator",
        f"{figures}  running calculator",
        f"{figures}  working",
        f"{figures}  waiting 2s to try again",
        f"{figures}  working",
    ]


def test_the_lines_that_stay() -> None:
    """Answers, calls with their reason, failures, what a replay did otherwise, and the end with its cost."""
    terminal = Terminal()
    with progress_on(terminal, 100) as progress:
        for record in records(
            STARTED, ASKED, ANSWERED, began("1", rationale=Rationale(why="the task asks", confidence=0.9)), ended("1"),
            ("root/researcher@0.1", began("2")),
            ("root/researcher@0.1", ended("2", ok=False, error=e.ErrorInfo(type="LookupError", message="nothing"))),
            e.ReplayDiverged(what="another call", expected=None, actual=None, where="call 1"),
            ENDED,
        ):  # fmt: skip
            progress(record)
    assert terminal.kept() == [
        "    2.0s  model  1.2 s, 20+10 tokens: I look.",
        '    3.0s  call   lookup(key="a")',
        "                 └ the task asks",
        '    5.0s  call   researcher@0.1 lookup(key="a")',
        "    6.0s  error  researcher@0.1 lookup failed: LookupError: nothing",
        "    7.0s  replay what=another call, where=call 1",
        "    8.0s  end    done: end_turn, 1 turn in 1.2 s, tokens not known, cost $0.2500",
    ]


def test_the_status_line_is_drawn_again_and_taken_away() -> None:
    """It fits the width, moves, and leaves nothing behind."""
    terminal = Terminal()
    with progress_on(terminal, 40) as progress:
        for record in records(STARTED, ASKED, ANSWERED, began("1", "x" * 100)):
            progress(record)
        while len(drawn := terminal.drawn()) < 2:
            time.sleep(0.001)
    assert {len(frame) for frame in drawn} == {39}
    assert len(set(drawn)) == len(drawn)
    assert terminal.getvalue().endswith(f"\r{' ' * 39}\r")
    assert "\x1b" not in terminal.getvalue()


def test_what_others_print_meanwhile_does_not_tear_the_line() -> None:
    """Whole lines, made safe; a progress bar's last word; and what was begun at the end."""
    terminal = Terminal()
    with progress_on(terminal):
        print("one\x1b[2J")  # noqa: T201 - as a tool would
        print("10%\r50%\r90%", file=sys.stderr)  # noqa: T201 - the same
        sys.stdout.write("rest")
        assert sys.stdout.writable()
    assert terminal.kept() == ["one\\x1b[2J", "90%", "rest"]


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_run() -> None:
    """Lines wait, and the run goes on; when the terminal takes them again, all of them are shown."""
    stopped, gate = threading.Event(), threading.Event()

    class Stuck(Terminal):
        def write(self, content: str) -> int:
            stopped.set()
            gate.wait(30)
            return super().write(content)

    terminal = Stuck()
    with Progress(Console(file=terminal, width=60, color_system=None, force_terminal=False)):
        print("first")  # noqa: T201 - as a tool would
        assert stopped.wait(10)
        started = time.perf_counter()
        for number in range(2500):
            print(f"line {number}")  # noqa: T201 - the same
        assert time.perf_counter() - started < bound(1)
        gate.set()
    assert terminal.kept() == ["first", *(f"line {number}" for number in range(2500))]


def test_a_terminal_that_is_gone_does_not_hurt_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The run has its result; nobody is there to be told."""

    class Gone(Terminal):
        def write(self, content: str) -> int:
            raise OSError(5, "Input/output error")

    agent = Agent(ScriptedModel([text("done")]), trace=None)
    progress = progress_on(Gone())
    agent.subscribe(None, progress)
    with progress:
        assert agent.run_sync("go").output == "done"
    assert capsys.readouterr().err == ""


def test_a_hostile_run_on_a_terminal(home: Path) -> None:
    """Not one control of the run's reaches it, in lines or in the status line."""
    terminal = Terminal()
    hostile = [*load_recording(record_hostile_run(home)).records]
    hostile += [
        Record(90, 90, f"root/{EVIL}@0.0", 0, began(EVIL, EVIL, rationale=Rationale(why=EVIL)), ""),
        Record(91, 91, f"root/{EVIL}@0.0", 0, e.LlmRequested(request=0, model=EVIL, messages=()), ""),
    ]
    with progress_on(terminal, 200) as progress:
        for record in hostile:
            progress(record)
        while not terminal.drawn():
            time.sleep(0.001)
    shown = terminal.getvalue()
    assert escape(shown, keep="\n\r") == shown
    assert "click\\x1b]8" in shown.rpartition("\n")[2]


AGENT = """
import time
from playhead import Agent, Execution, tool
from playhead.cli.progress import Progress, following
from playhead.testing import ScriptedModel, call, calls, error, text

@tool(read_only=True)
def lookup(key: str) -> str:
    "Look up."
    print("noise")
    time.sleep(0.15)  # as long as a status line takes to be drawn
    return key

turns = [calls(call("lookup", key="a"), call("lookup", key="b")), error("busy", retryable=True), text("done")]
agent = Agent(ScriptedModel(turns), tools=[lookup], trace=None, execution=Execution(retry_delay_s=0.01))
progress = Progress()
with following(progress, None, as_json=False):
    agent.subscribe(None, progress)
    agent.run_sync("go")
print("answer")
"""
LABELS = ["model", "call", "call", "model", "retry", "model", "end"]


def labels_of(shown: str) -> list[str]:
    """Return the labels of the lines that stay, without the colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.replace("\r\n", "\n"))
    kept = [line.rpartition("\r")[2] for line in plain.split("\n")]
    return [line[10:].split(" ")[0] for line in kept if re.match(r" +\d+\.\ds  ", line)]


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True], ids=["colour", "NO_COLOR"])
def test_a_real_terminal(plain: bool) -> None:
    """Colours of ours, a status line, lines that stay, and the answer after them; NO_COLOR has no escape sequence."""
    environment = {"COLUMNS": "80", "NO_COLOR": "1" if plain else ""}
    shown = written_to_a_terminal([sys.executable, "-c", AGENT], **environment).decode()
    assert re.search(r"\r\d\.\ds  turn 1/10  [^\r]*running lookup", shown)
    assert labels_of(shown) == LABELS
    assert shown.endswith("\ranswer\r\n")
    assert ("\x1b[" in shown) is not plain


@pytest.mark.slow
def test_a_pipe_gets_plain_lines_even_when_colour_is_forced() -> None:
    """No carriage return; what a tool prints does not get among the output; the end says the cost."""
    environment = {**os.environ, "TERM": "xterm-256color", "FORCE_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", AGENT], capture_output=True, text=True, check=True, env=environment)
    assert ("\r" in done.stderr, labels_of(done.stderr), done.stdout) == (False, LABELS, "answer\n")
    assert re.sub(r"\x1b\[[0-9;]*m", "", done.stderr).endswith("cost $0\n")
