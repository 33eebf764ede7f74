"""Recordings for tests of debriefs and statistics: one of each kind of ending, the samples, and hand-made ones."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from playhead import load_recording, tool
from playhead.diagnose.recording import Recording
from playhead.diagnose.terminal import escape
from playhead.testing import call, error, text
from playhead.trace.events import RunCompleted, RunStarted
from playhead.trace.header import AgentHeader
from playhead.trace.line import Record
from tests.kernel.runs import record

if TYPE_CHECKING:
    from rich.console import RenderableType

    from playhead.trace.events import EventBase

SAMPLES = sorted((Path(__file__).parents[2] / "traces").glob("*.jsonl"))


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look a fact up."""
    if key == "Mt Zed":
        raise LookupError("nothing under 'Mt Zed'; there is 'Mount Zed'")
    return f"{key} is 4,180 feet high"


FINAL = {"meta_tools": ("final-answer",)}
RUNS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "end_turn": ([call("lookup", key="Mount Zed"), text("4,180 feet")], {}),
    "final_answer": ([text("So.\nFinal Answer: 42\n")], {}),
    "final_answer_tool": ([call("lookup", key="a"), call("final-answer", output="4180", confidence="high")], FINAL),
    "max_iterations": ([call("lookup", key="a"), call("lookup", key="b")], {"max_iterations": 2}),
    "output_truncated": ([text("It is four thou", finish_reason="length")], {}),
    "output_filtered": ([text("Take two", finish_reason="content_filter")], {}),
    "required_tools_missing": ([text("done"), text("done"), text("done")], {"required_tools": ("lookup",)}),
    "llm_error": ([call("lookup", key="a"), error("no such model")], {}),
}
"""Scripts that end so."""
REWRITTEN: dict[str, dict[str, Any]] = {
    "error": {"status": "failed", "output": None, "error": "ValueError: the strategy broke"},
    "cancelled": {"status": "failed", "output": None, "error": "the run was cancelled from outside"},
    "trace_error": {"status": "failed", "output": None, "error": "tool-call-started could not be written"},
    "parent_ended": {"status": "failed", "output": "stopped"},
    "replay_stopped": {"status": "failed", "output": None, "error": "lookup('b') was never recorded"},
    "timeout": {"status": "done", "terminated_source": "killswitch:timeout_after", "terminated_because": "2 s passed"},
    "hook": {"status": "failed", "terminated_source": "hook:guard", "terminated_because": "a secret was asked for"},
}
"""Endings that need more than a script, put into the last event of a run that ended otherwise."""
ENDINGS = (*RUNS, *REWRITTEN)


async def ended_by(name: str, folder: Path) -> Recording:
    """Return a recording of a run that ended so."""
    if name in RUNS:
        turns, options = RUNS[name]
        return (await record(folder, turns, lookup, task="How high is Mount Zed?", **options)).recording
    recording = await ended_by("end_turn", folder)
    *before, last = [each for each in recording.records if each.kind != "final-answer"]
    end = last.event.model_copy(update={"terminated_by": name, **REWRITTEN[name]})
    return replace(recording, records=(*before, last._replace(event=end)))


def made(*events: EventBase | tuple[str, EventBase], header: dict[str, Any] | None = None, end: Any = ...) -> Recording:
    """Return a recording of these events of the root, or of the owner that stands before one."""
    agent = AgentHeader(name="agent", model="scripted/m", rationale=True)
    started = RunStarted(**{"format": "2.0", "run_id": "made", "agent": agent, "task": "Do it.", **(header or {})})
    ending = RunCompleted(status="done", terminated_by="end_turn", terminated_source="kernel", output="done")
    last = ending if end is ... else end
    rows = [("root", started), *(each if isinstance(each, tuple) else ("root", each) for each in events)]
    rows += [("root", last)] if last is not None else []
    records = tuple(Record(seq, 1000 * seq, owner, 0, event) for seq, (owner, event) in enumerate(rows))
    return Recording(Path("made.jsonl"), records, ())


def printed(*views: RenderableType, width: int = 80) -> str:
    """Return what views look like on paper of this width; nothing on it is raw."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(*views, crop=False)
    assert escape(out.getvalue(), keep="\n") == out.getvalue()
    return out.getvalue()


def sample(name: str) -> Recording:
    """Return one of the samples."""
    return load_recording(next(path for path in SAMPLES if path.stem == name))
