"""`playhead demo`: a run of a small agent, recorded, read, checked, reproduced, and replayed with another prompt.

No key, no network. The model is scripted: it says what stands below, and what it says depends on its prompt. Everything
else is real: the tools run and one call fails, the events are written, hashed, read back, served and compared.
"""

from __future__ import annotations

import operator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from playhead.agent.agent import Agent
from playhead.agent.options import DEFAULT
from playhead.cli import exits, options
from playhead.cli.again import reproduction_exit_code, reproduction_rows
from playhead.cli.events import Filter
from playhead.cli.look import check_as_json, check_rows, head_row
from playhead.cli.outcome import replay_as_json, replay_rows, result_as_json, result_rows
from playhead.cli.output import PROSE_WIDTH, text_console, write_json
from playhead.cli.reading import option_of
from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.diff_view import diff_document
from playhead.diagnose.integrity import check_trace
from playhead.diagnose.terminal import Line
from playhead.diagnose.timeline import HEADING, Timeline
from playhead.errors import TraceWriteError
from playhead.kernel.tool_decorator import tool
from playhead.replay import load_recording, reproduce_sync
from playhead.replay.engine import replay_sync
from playhead.testing import ScriptedModel, call, calls
from playhead.testing import text as say
from playhead.trace.reader import scan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console, RenderableType

    from playhead.testing import Turn
    from playhead.trace.types import Request

    Step = tuple[str, str, Iterable[RenderableType], dict[str, Any]]

TASK: Final = "Which is higher, Mount Zed or Mount Kenya, and by how many metres?"
PROMPT: Final = "Look heights up by their full names. Be brief."
"""The prompt of the replay."""
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


@options.command("demo")
def demo(*, trace_dir: Path | None, as_json: bool) -> int:
    """Record a run of a small built-in agent, check it, reproduce it, and replay it with another prompt.

    Then it compares the two and explains the difference. The model is scripted, so it needs no key and no network; the tools and the
    recording are real. Both runs stay in the trace folder, like any others.

    Example:
      playhead demo --trace-dir /tmp/traces

    Exit codes:
      0  all is well
      2  the command line is wrong
      3  its run could not be recorded
    """
    result = make_agent(trace_dir).run_sync(TASK)
    path = result.trace_path
    if path is None:
        raise TraceWriteError("the demo could not record its run; name a folder that can be written with --trace-dir")
    original = load_recording(path)
    replay = replay_sync(original, {"system_prompt": PROMPT}, agent=make_agent(trace_dir), trace=path.parent)
    checked, reproduction, debrief = check_trace(path), reproduce_sync(original), build_debrief(replay.recording)
    console = text_console(pipe_width=PROSE_WIDTH)
    run, again, wanted = result.run_id, replay.run.run_id, Filter(("tool-call-completed",))
    steps: list[Step] = [
        ("Record", 'run "Which is higher, …" --model … --tools …', result_rows(result), result_as_json(result)),
        ("Show", f"show {run} --kind tool-call-completed", (HEADING, *Timeline().rows(scan(path), wanted)), {}),
        (
            "Check",
            f"check {run}",
            (*check_rows(checked), head_row(checked)),
            check_as_json(checked),
        ),
        ("Reproduce", f"reproduce {run}", reproduction_rows(reproduction), asdict(reproduction)),
        (
            "Replay",
            f"replay {run} --system-prompt …",
            replay_rows(original, replay, 0, console.width),
            replay_as_json(replay),
        ),
        ("Diff", f"diff {again}", [diff_document(replay.diff)], {}),
        ("Debrief", f"debrief {again}", [debrief_document(debrief)], debrief.model_dump(mode="json")),
    ]
    if as_json:
        write_json({"step": title.lower(), **found} for title, _, _, found in steps if found)
    else:
        _print(console, steps, option_of(trace_dir))
    good = checked.ok and replay.verdict == "changed"
    return reproduction_exit_code(reproduction) if good else exits.FAILED


def _print(console: Console, steps: list[Step], where: str) -> None:
    """Go through both runs, each time with the command that does the same."""
    for number, (title, typed, rows, _) in enumerate(steps, 1):
        command = f"playhead {typed}{'' if typed.startswith('run') else where}"
        heading = Line((f"{number}  {title}", "bold"), ("   $ ", "dim"), (command, "cyan"), whole=True)
        console.print(Line(), heading, *rows, crop=False)


def make_agent(trace_dir: Path | None) -> Agent:
    """Return the agent of the demo."""
    trace = DEFAULT if trace_dir is None else trace_dir
    model = ScriptedModel([_next_turn] * LONGEST_SCRIPT, name="scripted/demo")
    return Agent(model, name="demo", tools=[lookup, calculator], trace=trace)


def _next_turn(request: Request) -> Turn:
    """Answer as the prompt asks: by the one script or by the other."""
    script = SCRIPT_AFTER if PROMPT in str(request.messages[0].content) else SCRIPT
    return script[sum(message.role == "assistant" for message in request.messages)]
