"""`playhead demo`: a run of a small agent, recorded, read, checked, reproduced, and replayed with another prompt.

No key, no network. The model is scripted: it says what stands below, and what it says depends on its prompt. Everything
else is real: the tools run and one call fails, the events are written, hashed, read back, served and compared.
"""

from __future__ import annotations

import operator
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.agent.agent import Agent
from playhead.agent.options import DEFAULT
from playhead.cli import exits, options
from playhead.cli.check import check_as_json, verdict_lines
from playhead.cli.output import PROSE_WIDTH, text_console, write_json
from playhead.cli.replayed import replay_as_json, summary
from playhead.cli.reproduce import exit_code, print_reproduction
from playhead.cli.result import print_result, result_as_json
from playhead.cli.show import Filter, event_as_json, print_timeline
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.diff_view import DiffView
from playhead.diagnose.terminal import Line
from playhead.errors import TraceWriteError
from playhead.kernel.tool_decorator import tool
from playhead.replay import load_recording, reproduce_sync
from playhead.replay.engine import replay_sync
from playhead.testing import ScriptedModel, call, calls
from playhead.testing import text as say
from playhead.trace.integrity import check_trace
from playhead.trace.reader import scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from playhead.agent.result import RunResult
    from playhead.replay import Reproduction
    from playhead.replay.result import ReplayResult
    from playhead.testing import Turn
    from playhead.trace.integrity import Check
    from playhead.trace.recording import Recording
    from playhead.trace.types import Request

TASK: Final = "Which is higher, Mount Zed or Mount Kenya, and by how many metres?"
PROMPT: Final = "Look heights up by their full names. Be brief."
"""What the replay is told instead."""
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

SCRIPT_AFTER: Final = (
    calls(
        call("lookup", key="Mount Zed"),
        call("lookup", key="Mount Kenya"),
        text='<rationale call="1">{"why": "the first of the two heights", "confidence": 0.95}</rationale>\n'
        '<rationale call="2">{"why": "by its full name, as the prompt asks", "confidence": 0.95}</rationale>',
    ),
    calls(
        call("calculator", a=4180, sign="*", b=0.3048),
        text='<rationale call="1">{"why": "feet to metres, to compare like with like", "confidence": 0.99}</rationale>',
    ),
    call("calculator", a=5199, sign="-", b=1274.064),
    say("Mount Kenya is higher than Mount Zed by about 3,925 metres."),
)
"""What the model does under PROMPT: it makes no call that fails."""
LONGEST_SCRIPT: Final = max(len(SCRIPT), len(SCRIPT_AFTER))


@dataclass(frozen=True)
class Demo:
    """Everything that the demo found out."""

    result: RunResult
    path: Path
    checked: Check
    reproduction: Reproduction
    original: Recording
    replay: ReplayResult

    @property
    def exit_code(self) -> int:
        """0 when all went as it has to."""
        good = self.checked.ok and self.replay.verdict == "changed"
        return exit_code(self.reproduction) if good else exits.FAILED


@options.command("demo", example="playhead demo --trace-dir /tmp/traces", exits={3: "its run could not be recorded"})
def command(*, trace_dir: Path | None, as_json: bool) -> int:
    """Record a run of a small built-in agent, check it, reproduce it, and replay it with another prompt.

    Then it compares the two and tells why. The model is scripted, so it needs no key and no network; the tools and the
    recording are real. Both runs stay in the trace folder, like any others.
    """
    demo = perform(trace_dir)
    if as_json:
        write_json(_as_json(demo))
    else:
        where = "" if trace_dir is None else f" --trace-dir {shlex.quote(str(trace_dir))}"
        _tell(demo, where)
    return demo.exit_code


def perform(trace_dir: Path | None) -> Demo:
    """Record, check, reproduce and replay.

    Raises:
        TraceWriteError: the run could not be recorded.
    """
    result = make_agent(trace_dir).run_sync(TASK)
    path = result.trace_path
    if path is None:
        raise TraceWriteError("the demo could not record its run; name a folder that can be written with --trace-dir")
    original = load_recording(path)
    replay = replay_sync(original, {"system_prompt": PROMPT}, agent=make_agent(trace_dir), trace=path.parent)
    return Demo(result, path, check_trace(path), reproduce_sync(original), original, replay)


def make_agent(trace_dir: Path | None) -> Agent:
    """Return the agent of the demo."""
    trace = DEFAULT if trace_dir is None else trace_dir
    model = ScriptedModel([_next_turn] * LONGEST_SCRIPT, name="scripted/demo")
    return Agent(model, name="demo", tools=[lookup, calculator], trace=trace)


def _next_turn(request: Request) -> Turn:
    """Answer as the prompt asks: by the one script or by the other."""
    script = SCRIPT_AFTER if PROMPT in str(request.messages[0].content) else SCRIPT
    return script[sum(message.role == "assistant" for message in request.messages)]


def _as_json(demo: Demo) -> Iterator[dict[str, Any]]:
    yield {"step": "record", **result_as_json(demo.result)}
    yield from ({"step": "show", "event": event_as_json(item)} for item in scan(demo.path))
    yield {"step": "check", **check_as_json(demo.checked)}
    yield {"step": "reproduce", **asdict(demo.reproduction)}
    yield {"step": "replay", **replay_as_json(demo.replay)}
    yield {"step": "debrief", **build_debrief(demo.replay.recording).model_dump(mode="json")}


def _tell(demo: Demo, where: str) -> None:
    """Go through both runs, each time with the command that does the same."""
    console, run, again = text_console(pipe_width=PROSE_WIDTH), demo.result.run_id, demo.replay.run.run_id
    _heading(console, "1  Record", 'playhead run "Which is higher, …" --model … --tools …')
    print_result(console, demo.result)
    _heading(console, "2  Show", f"playhead show {run} --kind tool-call-completed{where}")
    print_timeline(console, scan(demo.path), Filter(("tool-call-completed",), None))
    _heading(console, "3  Check", f"playhead check {run}{where}")
    console.print(*verdict_lines(demo.checked), Line(("head  ", "dim"), demo.checked.head or "none"), crop=False)
    _print_forgery(console, demo.path)
    _heading(console, "4  Reproduce", f"playhead reproduce {run}{where}")
    print_reproduction(console, demo.reproduction)
    _heading(console, "5  Replay", f"playhead replay {run} --system-prompt …{where}")
    console.print(*summary(demo.original, demo.replay, 0), crop=False)
    _heading(console, "6  Diff", f"playhead diff {again}{where}")
    console.print(DiffView(demo.replay.diff), crop=False)
    _heading(console, "7  Debrief", f"playhead debrief {again}{where}")
    console.print(debrief_document(build_debrief(demo.replay.recording)), crop=False)
    _print_next(console, run, where)


def _heading(console: Console, title: str, typed: str) -> None:
    console.print(Line(), Line((title, "bold"), ("   $ ", "dim"), (typed, "cyan"), whole=True), crop=False)


def _print_forgery(console: Console, path: Path) -> None:
    """Check a copy in which a tool's result is a lie."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(path.read_bytes().replace(b"4,180 feet", b"4,810 feet"))
        forged = check_trace(copy)
    console.print(
        Line("A copy in which the tool's answer is 4,810 feet instead of 4,180:"), *verdict_lines(forged), crop=False
    )


def _print_next(console: Console, run: str, where: str) -> None:
    console.print(Line(), Line("What to try next:"), crop=False)
    for what, typed in (
        ("every event", f"playhead show {run}{where}"),
        ("tokens and time", f"playhead stats --last 2 --replays{where}"),
        ("a model of yours", "playhead run --help"),
    ):
        console.print(Line(f"  {what:<17}  ", (typed, "cyan"), whole=True), crop=False)
