"""`playhead demo`: a run of a small agent, recorded, shown, checked and reproduced. No key, no network.

The model is scripted: it says what stands below. Everything else is real: the tools run and one call fails, the events
are written, hashed, read back and compared.
"""

from __future__ import annotations

import operator
import shlex
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.agent import DEFAULT, Agent
from playhead.cli import exits, options
from playhead.cli.check import check_as_json, print_check, verdict_lines
from playhead.cli.output import text_console, write_json
from playhead.cli.reproduce import exit_code, print_reproduction
from playhead.cli.result import print_result, result_as_json
from playhead.cli.show import event_as_json, print_timeline
from playhead.diagnose.terminal import Line
from playhead.errors import TraceWriteError
from playhead.kernel.tools import tool
from playhead.replay import load_recording, reproduce_sync
from playhead.testing import ScriptedModel, call, calls
from playhead.testing import text as say
from playhead.trace.integrity import check_trace
from playhead.trace.reader import scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from playhead.agent import RunResult
    from playhead.replay import Reproduction
    from playhead.trace.integrity import Check

TASK: Final = "Which is higher, Mount Zed or Mount Kenya, and by how many metres?"
HEIGHTS: Final = {"Mount Zed": "4,180 feet", "Mount Kenya": "5,199 metres"}
OPERATORS: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look the height of a mountain up."""
    if key not in HEIGHTS:
        raise LookupError(f"nothing under {key!r}; known: {', '.join(HEIGHTS)}")
    return HEIGHTS[key]


@tool(read_only=True)
def calculator(a: float, sign: Literal["+", "-", "*"], b: float) -> float:
    """Calculate with two numbers."""
    return round(float(OPERATORS[sign](a, b)), 3)


SCRIPT: Final = (
    calls(
        call("lookup", key="Mount Zed"),
        call("lookup", key="Mt Kenya"),
        text="I assume that both are measured from sea level because the task does not say otherwise.\n"
        '<rationale call="1">{"why": "the first of the two heights", "confidence": 0.95}</rationale>\n'
        '<rationale call="2">{"why": "the second; neither call needs the other", "confidence": 0.8}</rationale>',
    ),
    calls(
        call("lookup", key="Mount Kenya"),
        call("calculator", a=4180, sign="*", b=0.3048),
        text="The table has the full name only, and Mount Zed is in feet.\n"
        '<rationale call="1">{"why": "the error names this key as known", "confidence": 0.99}</rationale>\n'
        '<rationale call="2">{"why": "feet to metres, to compare like with like", "confidence": 0.99}</rationale>',
    ),
    call("calculator", a=5199, sign="-", b=1274.064),  # no reason stated: the recording says so
    say("Mount Kenya is higher, by about 3,925 metres (5,199 m against 1,274 m)."),
)


@options.command("demo", example="playhead demo --trace-dir /tmp/traces")
def command(*, trace_dir: Path | None, as_json: bool) -> int:
    """Record a run of a small built-in agent, then show it, check it and reproduce it.

    The model is scripted, so it needs no key and no network; the tools and the recording are real. The run stays in the
    trace folder, like any other.
    """
    result = make_agent(trace_dir).run_sync(TASK)
    path = result.trace_path
    if path is None:
        raise TraceWriteError("the demo could not record its run; name a folder that can be written with --trace-dir")
    checked, outcome = check_trace(path), reproduce_sync(load_recording(path))
    if as_json:
        write_json(_as_json(result, path, checked, outcome))
    else:
        where = "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"
        _tell(result, path, checked, outcome, where)
    return exit_code(outcome) if checked.ok else exits.FAILED


def make_agent(trace_dir: Path | None) -> Agent:
    """Return the agent of the demo, at the beginning of its script."""
    trace = DEFAULT if trace_dir is None else trace_dir
    return Agent(ScriptedModel(SCRIPT, name="scripted/demo"), name="demo", tools=[lookup, calculator], trace=trace)


def _as_json(result: RunResult, path: Path, checked: Check, outcome: Reproduction) -> Iterator[dict[str, Any]]:
    yield {"step": "record", **result_as_json(result)}
    yield from ({"step": "show", "event": event_as_json(item)} for item in scan(path))
    yield {"step": "check", **check_as_json(checked)}
    yield {"step": "reproduce", **asdict(outcome)}


def _tell(result: RunResult, path: Path, checked: Check, outcome: Reproduction, where: str) -> None:
    """Go through the run, each time with the command that does the same."""
    console, run = text_console(pipe_width=80), result.run_id
    _heading(console, "1  Record", 'playhead run "Which is higher, …" --model … --tools …')
    print_result(console, result)
    _heading(console, "2  Show", f"playhead show {run}{where}")
    print_timeline(console, scan(path))
    _heading(console, "3  Check", f"playhead check {run}{where}")
    print_check(console, checked)
    _print_forgery(console, path)
    _heading(console, "4  Reproduce", f"playhead reproduce {run}{where}")
    print_reproduction(console, outcome)
    _print_next(console, path, run, where)


def _heading(console: Console, title: str, typed: str) -> None:
    console.print(Line(), Line((title, "bold"), ("   $ ", "dim"), (typed, "cyan"), whole=True), Line(), crop=False)


def _print_forgery(console: Console, path: Path) -> None:
    """Check a copy in which a tool's result is a lie."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(path.read_bytes().replace(b"4,180 feet", b"4,810 feet"))
        forged = check_trace(copy)
    console.print(
        Line(),
        Line("A copy in which the tool's answer is 4,810 feet instead of 4,180:"),
        *verdict_lines(forged),
        crop=False,
    )


def _print_next(console: Console, path: Path, run: str, where: str) -> None:
    console.print(
        Line(), Line(("The recording: ", "bold"), str(path), whole=True), Line("What to try next:"), crop=False
    )
    for what, typed in (
        ("the calls, and why", f"show {run} --kind 'tool-*'{where}"),
        ("everything as JSON", f"show {run} --json{where}"),
        ("all your runs", f"list{where}"),
        ("a model of yours", "run --help"),
    ):
        console.print(Line(f"  {what:<18}  ", (f"playhead {typed}", "cyan"), whole=True), crop=False)
