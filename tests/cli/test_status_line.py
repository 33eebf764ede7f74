"""What `run` tells while it works: on a terminal with a status line, in a pipe as plain lines; slow or hostile or not."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from playhead import Agent, Execution, tool
from playhead.cli.progress import Progress
from playhead.cli.screen import WAITING, Screen
from playhead.cli.standing import Standing, elapsed_text
from playhead.diagnose.terminal import Line, escape
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, TickingClock, call, error, text
from playhead.trace.events import (
    AgentCompleted,
    ApprovalDecided,
    ApprovalRequested,
    EmissionChanged,
    EventBase,
    HookFired,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    ReplayDiverged,
    RunCompleted,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.events.model import ErrorInfo
from playhead.trace.line import Record
from playhead.trace.types import AgentHeader, Rationale
from playhead.trace.usage import Usage
from tests.cli.recorded import EVIL, record_hostile_run

if TYPE_CHECKING:
    from pathlib import Path

STARTED = RunStarted(format="2.0", run_id="r", agent=AgentHeader(name="a", model="p/m"), task="go")
ASKED = LlmRequested(request=0, model="p/m", messages=((0, 1),))


def answered(cost_usd: float | None = 0.25) -> LlmResponded:
    """Return an answer of thirty tokens."""
    usage = Usage(input_tokens=20, output_tokens=10)
    return LlmResponded(request=0, text="I look.", usage=usage, cost_usd=cost_usd, latency_ms=1200)


def began(call_id: str, name: str = "lookup", position: int = 0, **fields: Any) -> ToolCallStarted:
    """Return the start of a call."""
    return ToolCallStarted(call_id=call_id, tool=name, position=position, args={"key": "a"}, args_hash="0", **fields)


def ended(call_id: str, name: str = "lookup", **fields: Any) -> ToolCallCompleted:
    """Return the end of a call that took 1.2 seconds."""
    return ToolCallCompleted(
        **{"call_id": call_id, "tool": name, "position": 0, "ok": True, "duration_ms": 1200, **fields}
    )


def records(*events: EventBase | tuple[str, EventBase]) -> list[Record]:
    """Return events as records of turn 0, one a second; a pair names the owner."""
    pairs = [each if isinstance(each, tuple) else ("root", each) for each in events]
    return [
        Record(seq, seq * 1_000_000, owner, None if seq == 0 else 0, event, "")
        for seq, (owner, event) in enumerate(pairs)
    ]


def standing(*events: EventBase | tuple[str, EventBase]) -> Standing:
    """Return where a run stands after these events."""
    fold = Standing()
    for record in records(*events):
        fold.add(record)
    return fold


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def kept(self) -> list[str]:
        """Return the lines that stay."""
        return [line.rpartition("\r")[2] for line in self.getvalue().split("\n")][:-1]


def on_a_terminal(told: list[Record], width: int = 60) -> list[str]:
    """Return the lines that stay on a terminal after a run."""
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=width, color_system=None, markup=False, highlight=False)
    with Progress(console) as progress:
        for record in told:
            progress(record)
    return terminal.kept()


def test_what_is_awaited() -> None:
    """The model, then the tools that run at once, by name and number, then nothing."""
    events: list[EventBase] = [STARTED]
    seen = []
    for event in (
        ASKED, answered(), began("1"), began("2", position=1), began("3", "calculator", 2), ended("1"),
        ended("2"), ended("3", "calculator"), LlmRetried(request=1, attempt=1, delay_s=2),
    ):  # fmt: skip
        events.append(event)
        seen.append(standing(*events).awaited())
    assert seen == [
        "waiting for p/m", "working", "running lookup", "running lookup x2", "running lookup x2, calculator",
        "running lookup, calculator", "running calculator", "working", "waiting 2s to try again",
    ]  # fmt: skip


def test_a_sub_agent_is_awaited_in_place_of_the_call_that_entered_it() -> None:
    """The innermost is said, and whose it is; what ended with the sub-agent is awaited no more."""
    below = "root/guide@0.0"
    inside: list[EventBase | tuple[str, EventBase]] = [STARTED, began("1", "guide"), (below, ASKED)]
    assert standing(*inside).awaited() == "guide@0.0 waiting for p/m"
    ending = AgentCompleted(status="done", terminated_by="end_turn", terminated_source="kernel")
    assert standing(*inside, (below, ending)).awaited() == "running guide"


def test_an_approval_and_a_failure_are_awaited_and_over() -> None:
    """Who asks for a yes says so; an attempt that failed is over."""
    asks = ApprovalRequested(call_id="1", tool="lookup", args_hash="0")
    assert standing(STARTED, began("1"), asks).awaited() == "waiting for a yes to lookup"
    assert (
        standing(STARTED, began("1"), asks, ApprovalDecided(call_id="1", approved=True)).awaited() == "running lookup"
    )
    failure = LlmFailed(request=0, error=ErrorInfo(type="Busy", message="busy"))
    assert standing(STARTED, ASKED, failure).awaited() == "working"


def test_the_figures_add_up() -> None:
    """Turn of the root, tokens of all, and a cost that is unknown once one price is."""
    fold = standing(STARTED, answered(), ("root/a@0.0", answered()))
    assert (fold.turn, fold.limit, fold.spent.usage.total_tokens, fold.spent.total().cost_usd) == (1, 10, 60, 0.5)
    assert standing(STARTED, answered(), answered(None), answered()).spent.total().cost_usd is None


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0.0s"), (3.21, "3.2s"), (59.9, "59.9s"), (125, "2m05s"), (-1, "0.0s"), (1e400, "?")]
)
def test_times_that_go_on(seconds: float, said: str) -> None:
    """Tenths, then minutes; nonsense is no error."""
    assert elapsed_text(seconds) == said


def test_the_lines_that_stay_on_a_terminal() -> None:
    """Answers, calls with their time and reason, failures with their error, hooks, and the end with its cost."""
    why = Rationale(why="to know", confidence=0.9)
    usage = Usage(input_tokens=20, output_tokens=10)
    told = records(
        STARTED, ASKED, answered(), began("1", rationale=why), began("2", position=1), ended("1"),
        ended("2", ok=False, error=ErrorInfo(type="LookupError", message="nothing there")),
        HookFired(hook="mine", phase="act", timing="before", action="stop", reason="enough"),
        EmissionChanged(tag="prompt.system", hook="mine", before="a", after="b"),
        RunCompleted(
            status="done", terminated_by="end_turn", terminated_source="kernel", usage=usage, cost_usd=0.25,
            iterations=1, duration_ms=9000,
        ),
    )  # fmt: skip
    assert on_a_terminal(told, width=80) == [
        "← 1.2 s, 20+10 tokens: I look.",
        '→ lookup(key="a") ✓ 1.2s',
        "  └ to know (0.9)",
        '→ lookup(key="a") ✗ LookupError: nothing there 1.2s',
        "! hook  mine, before act, asked to stop: enough",
        "! hook  prompt.system by mine: a → b",
        "✓ done: end_turn, 1 turn, 9.0s, 30 tokens, cost $0.2500",
        "",
    ]


def test_the_lines_of_a_replay() -> None:
    """Where a result came from, unless it is exact; and what the replay did otherwise, without the event's other words."""
    told = records(
        STARTED, began("1"), ended("1", rung="exact"), began("2"), ended("2", rung="stale"),
        ReplayDiverged(what="nothing recorded answers this", where="root, turn 0"),
    )  # fmt: skip
    assert on_a_terminal(told) == [
        '→ lookup(key="a") ✓ 1.2s',
        '→ lookup(key="a") [stale] ✓ 1.2s',
        "! replay  nothing recorded answers this",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Long arguments and long errors are cut; the mark and the time stay."""
    told = records(
        STARTED,
        began("1").model_copy(update={"args": {"key": "宽" * 300}}),
        ended("1"),
        began("2").model_copy(update={"args": {"key": "a" * 300}}),
        ended("2", ok=False, error=ErrorInfo(type="Error", message="b" * 300)),
    )
    good, bad = on_a_terminal(told, width)
    assert good.endswith(" ✓ 1.2s")
    assert " ✗ " in bad
    assert bad.endswith(" 1.2s")
    assert Console().measure(good).maximum <= width
    assert len(bad) <= width


def test_the_status_line_is_drawn_again_and_taken_away() -> None:
    """It says what is awaited and the figures, fits the width, moves, and leaves nothing behind."""
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=40, color_system=None)
    with Screen(console, lambda: ("running lookup x2, calculator, and more", "iter 1/10   3.2s   $0")):
        time.sleep(0.25)
    frames = terminal.getvalue().split("\r")
    drawn = [frame for frame in frames if frame.strip()]
    assert len(drawn) >= 2
    assert {frame[1:] for frame in drawn} == {" running look…   iter 1/10   3.2s   $0"}
    assert len({frame[0] for frame in drawn}) == len(drawn)
    assert terminal.getvalue().endswith(f"\r{' ' * 39}\r") or frames[-2:] == [" " * len(drawn[-1]), ""]
    assert "\x1b" not in terminal.getvalue()
    assert "\n" not in terminal.getvalue()


def test_what_others_print_meanwhile_does_not_tear_the_line() -> None:
    """Whole lines, made safe; a progress bar's last word; and what was begun at the end."""
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=60, color_system=None)
    with Screen(console, lambda: ("", "")):
        print("one\x1b[2J")  # noqa: T201 - as a tool would
        print("10%\r50%\r90%", file=sys.stderr)  # noqa: T201 - the same
        sys.stdout.write("rest")
        assert sys.stdout.writable()
    assert terminal.kept() == ["one\\x1b[2J", "90%", "rest"]


def test_a_question_stands_alone() -> None:
    """What came before it is shown above it, nothing is drawn while it stands, and what came meanwhile follows."""
    terminal = Terminal()
    screen = Screen(Console(file=terminal, width=60, color_system=None, force_terminal=True), lambda: ("busy", ""))
    with screen:
        for answered, end in ((True, "y\n"), (False, "")):
            screen.show(lambda: [Line("before")])
            over = screen.ask("Go?\nyes or no: ")
            while not terminal.getvalue().endswith("yes or no: "):
                time.sleep(0.001)
            shown = terminal.getvalue()
            screen.show(lambda: [Line("after")])
            time.sleep(0.25)
            assert terminal.getvalue() == shown
            terminal.write(end)
            over(answered)
    kept = [line for line in terminal.kept() if line]
    assert kept == ["before", "Go?", "yes or no: y", "after", "before", "Go?", "yes or no: ", "after"]


def test_a_question_does_not_outlive_the_run() -> None:
    """A run that ends while somebody is asked takes the question away."""
    terminal = Terminal()
    with Screen(Console(file=terminal, width=60, color_system=None), lambda: ("", "")) as screen:
        screen.ask("yes or no: ")
        screen.show(lambda: [Line("the end")])
    assert "the end" in terminal.kept()


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_run() -> None:
    """Two thousand lines wait, more are counted, and the run goes on; then it is said what is missing."""
    stopped, gate = threading.Event(), threading.Event()

    class Stuck(Terminal):
        def write(self, content: str) -> int:
            stopped.set()
            gate.wait(30)
            return super().write(content)

    terminal = Stuck()
    screen = Screen(Console(file=terminal, width=60, color_system=None), lambda: ("", ""))
    with screen:
        screen.show(lambda: [Line("first")])
        assert stopped.wait(10)
        started = time.perf_counter()
        for number in range(WAITING + 500):
            screen.show(lambda number=number: [Line(f"line {number}")])  # type: ignore[misc]
        assert time.perf_counter() - started < 1
        gate.set()
    lines = terminal.kept()
    assert screen.missing == 500
    assert (lines[0], len(lines)) == ("first", WAITING + 2)
    assert lines[-1] == "… 500 lines are missing: the terminal was too slow"


def test_a_terminal_that_is_gone_does_not_hurt_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The run has its result; nobody is there to be told."""

    class Gone(Terminal):
        def write(self, content: str) -> int:
            raise OSError(5, "Input/output error")

    agent = Agent(ScriptedModel([text("done")]), trace=None)
    progress = Progress(Console(file=Gone(), width=60))
    agent.subscribe(None, progress)
    with progress:
        assert agent.run_sync("go").output == "done"
    assert capsys.readouterr().err == ""


def test_a_hostile_run_on_a_terminal(home: Path) -> None:
    """Not one control of the run's reaches it, in lines or in the status line."""
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=80, color_system=None)
    hostile = [*load_recording(record_hostile_run(home)).records]
    hostile += [
        Record(90, 90, f"root/{EVIL}@0.0", 0, began(EVIL, EVIL, rationale=Rationale(why=EVIL)), ""),
        Record(91, 91, f"root/{EVIL}@0.0", 0, LlmRequested(request=0, model=EVIL, messages=()), ""),
    ]
    with Progress(console) as progress:
        for record in hostile:
            progress(record)
        time.sleep(0.15)
    shown = terminal.getvalue()
    assert escape(shown, keep="\n\r") == shown
    assert "click\\x1b]8" in shown.rpartition("\n")[2]


AGENT = """
import sys, time
from playhead import Agent, Execution, tool
from playhead.cli.main import _show_warnings
from playhead.cli.output import text_console
from playhead.cli.progress import Progress
from playhead.testing import ScriptedModel, call, calls, error, text

@tool(read_only=True)
def lookup(key: str) -> str:
    "Look up."
    print("noise")
    time.sleep(0.3)
    return key

turns = [calls(call("lookup", key="a"), call("lookup", key="b")), error("busy", retryable=True), text("done")]
agent = Agent(ScriptedModel(turns), tools=[lookup], trace=None, execution=Execution(retry_delay_s=0.01))
with Progress(text_console(stderr=True)) as progress:
    agent.subscribe(None, progress)
    agent.run_sync("go")
print("answer")
"""


def shown_by(program: str, **environment: str) -> str:
    """Return what a program writes to a terminal of eighty columns."""
    controller, side = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-c", program], stdin=side, stdout=side, stderr=side,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
    )  # fmt: skip
    os.close(side)
    output = b""
    try:
        while chunk := os.read(controller, 65536):
            output += chunk
    except OSError:  # Linux says so when the other side is closed
        pass
    command.wait(timeout=30)
    os.close(controller)
    return output.decode()


def test_a_real_terminal() -> None:
    """Colours of ours, a status line that names both calls, lines that stay, and the answer after them."""
    shown = shown_by(AGENT)
    assert re.search(r"\r\x1b\[36m.\x1b\[0m running lookup x2\x1b\[2m   iter 1/10   0\.\ds   ", shown)
    kept = [re.sub(r"\x1b\[[0-9;]*m", "", line).rpartition("\r")[2] for line in shown.replace("\r\n", "\n").split("\n")]
    assert [re.sub(r"\d+\.\d+ ?m?s", "T", line) for line in kept] == [
        "← calls lookup, lookup, T, 2+1 tokens",
        "noise",
        "noise",
        '→ lookup(key="a") ✓ T',
        '→ lookup(key="b") ✓ T',
        "! model  request 1: ModelUnavailableError (may pass later): busy",
        "! retry  request 1: attempt 2 after T",
        "← T, 5+2 tokens: done",
        "✓ done: end_turn, 2 turns, T, at least 10 tokens, cost $0",
        "",
        "answer",
        "",
    ]


def test_no_colour_and_dumb_terminals() -> None:
    """NO_COLOR: no escape sequence, yet a status line. A dumb terminal: plain lines, and no status line."""
    plain = shown_by(AGENT, NO_COLOR="1")
    assert "\x1b" not in plain
    assert "running lookup x2   iter 1/10" in plain
    dumb = shown_by(AGENT, TERM="dumb")
    assert "\x1b" not in dumb
    assert "running" not in dumb
    assert '  call   lookup(key="a")' in dumb


def test_a_pipe_gets_plain_lines_even_when_colour_is_forced() -> None:
    """Lines with time and label, in order; no carriage return; the end says the cost."""
    for environment in ({}, {"FORCE_COLOR": "1"}):
        done = subprocess.run(
            [sys.executable, "-c", AGENT], capture_output=True, text=True, check=True,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        assert "\r" not in done.stderr
        told = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr).splitlines()
        labels = [line[10:].split(" ")[0] for line in told if line != "noise"]
        assert labels == ["model", "call", "call", "model", "retry", "model", "end"]
        assert told[-1].endswith("cost $0")
        assert done.stdout == "answer\n"
        assert environment or "\x1b" not in done.stderr


def test_taking_notes_costs_the_run_little() -> None:
    """A subscriber takes less than a tenth of a millisecond for an event, whatever the terminal does."""
    told = records(STARTED, *[event for _ in range(300) for event in (ASKED, answered(), began("1"), ended("1"))])
    terminal = Terminal()
    with Progress(Console(file=terminal, force_terminal=True, width=80)) as progress:
        started = time.process_time()
        for record in told:
            progress(record)
        assert (time.process_time() - started) / len(told) < 0.001


def test_a_run_that_is_told_is_recorded_as_one_that_is_not(tmp_path: Path) -> None:
    """Telling changes nothing: both files are the same to the byte."""

    @tool
    async def lookup(key: str) -> str:
        """Look up."""
        return key

    files = []
    for name in ("a", "b"):
        turns = [call("lookup", key="a"), error("busy", retryable=True), text("done")]
        agent = Agent(
            ScriptedModel(turns),
            tools=[lookup],
            trace=tmp_path / name,
            clock=TickingClock,
            execution=Execution(retry_delay_s=0.001),
        )
        with Progress(Console(file=Terminal(), width=60)) as progress:
            if name == "b":
                agent.subscribe(None, progress)
            agent.run_sync("go", run_id="same")
        files.append((tmp_path / name / "same.jsonl").read_bytes())
    assert files[0] == files[1]


def test_the_time_is_that_of_the_command_and_a_cost_is_known_after_an_answer() -> None:
    """The clock runs while an adapter is loaded; before the first answer nothing is said of the cost."""
    clock = TickingClock()
    progress = Progress(Console(file=Terminal(), width=80), clock)
    figures = [progress.status()[1]]
    for record in records(STARTED, ASKED, answered()):
        progress(record)
        figures.append(progress.status()[1])
    assert figures == [
        "0.0s   0 tokens", "0.0s   0 tokens", "iter 1/10   0.0s   0 tokens", "iter 1/10   0.0s   30 tokens   $0.2500",
    ]  # fmt: skip
    for _ in range(1000):
        clock.now_us()
    assert progress.status()[1].startswith("iter 1/10   1.0s")


def test_what_an_interrupted_start_leaves_behind_is_not_told(tmp_path: Path) -> None:
    """A request of litellm's that nobody awaited any more is no mistake of anybody's; other coroutines are told of."""
    program = (
        "from playhead.cli.running import run_told\n"
        "async def acompletion(): pass\n"
        "async def forgotten(): pass\n"
        "def start(told):\n"
        "    acompletion(); forgotten()\n"
        "    raise KeyboardInterrupt\n"
        "try:\n    run_told(start, None, as_json=False)\nexcept KeyboardInterrupt:\n    pass\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "acompletion' was never awaited" not in told.stderr
    assert "forgotten' was never awaited" in told.stderr
