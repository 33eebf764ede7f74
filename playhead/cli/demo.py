"""`playhead demo`: a run of a small agent, recorded, read, checked, reproduced, and replayed with another prompt.

No key, no network. The model is scripted: it says what stands below, and what it says depends on its prompt. Everything
else is real: the tools run and one call fails, the events are written, hashed, read back, served and compared.
"""

from __future__ import annotations

import operator
import shlex
from typing import TYPE_CHECKING, Final, Literal

import click

from playhead.agent.agent import Agent
from playhead.agent.options import DEFAULT
from playhead.cli import exits, options
from playhead.cli.outcome import replay_as_json, replay_rows, result_as_json, result_rows
from playhead.cli.output import PROSE_WIDTH, tell, text_console
from playhead.cli.reading import option_of
from playhead.diagnose.terminal import Line
from playhead.errors import TraceWriteError
from playhead.kernel.tool_decorator import tool
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, call, calls
from playhead.testing import text as say

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.testing import Turn
    from playhead.trace.types import Request

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
    _heading('run "Which is higher, …" --model … --tools …', as_json=as_json)
    tell(result_as_json(result), *result_rows(result), as_json=as_json)

    def typed(command: str) -> int:
        return _run(command + option_of(trace_dir), as_json=as_json)

    run = result.run_id
    codes = [typed(f"show {run} --kind tool-call-completed"), typed(f"check {run}"), typed(f"reproduce {run}")]
    original = load_recording(path)
    replay = original.replay_sync(system_prompt=PROMPT, agent=make_agent(trace_dir), trace=path.parent)
    _heading(f"replay {run} --system-prompt …", as_json=as_json)
    rows = replay_rows(original, replay, 0, text_console(pipe_width=PROSE_WIDTH).width)
    tell(replay_as_json(replay), *rows, as_json=as_json, width=PROSE_WIDTH)
    codes += [typed(f"diff {replay.run.run_id}"), typed(f"debrief {replay.run.run_id}")]
    return exits.OK if codes == [exits.OK] * 3 + [exits.FAILED, exits.OK] else exits.FAILED  # the two runs differ


def _run(command: str, *, as_json: bool) -> int:
    """Run a command as if it was typed, below its name, and return its exit code."""
    from playhead.cli.main import commands

    name, *arguments = shlex.split(command)
    found = commands.get_command(click.Context(commands), name)
    assert found is not None  # noqa: S101 - it is one of ours
    _heading(command, as_json=as_json)
    return int(found.main([*arguments, *(["--json"] if as_json else [])], standalone_mode=False))


def _heading(command: str, *, as_json: bool) -> None:
    if not as_json:
        text_console().print(Line(), Line(("$ ", "dim"), (f"playhead {command}", "cyan"), whole=True), crop=False)


def make_agent(trace_dir: Path | None) -> Agent:
    """Return the agent of the demo."""
    trace = DEFAULT if trace_dir is None else trace_dir
    model = ScriptedModel([_next_turn] * LONGEST_SCRIPT, name="scripted/demo")
    return Agent(model, name="demo", tools=[lookup, calculator], trace=trace)


def _next_turn(request: Request) -> Turn:
    """Answer as the prompt asks: by the one script or by the other."""
    script = SCRIPT_AFTER if PROMPT in str(request.messages[0].content) else SCRIPT
    return script[sum(message.role == "assistant" for message in request.messages)]
