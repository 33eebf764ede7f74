"""Runs to read, for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead import Agent, tool
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace.events import AgentStarted, LlmRequested, RunStarted, Thought, ToolCallCompleted, ToolCallStarted
from playhead.trace.header import AgentHeader
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\\rfake line\n\x9b31m\u202etxt.exe\u2066\u200b\x7f"
"""Clears the screen, sets the title, hides an address behind a word, overwrites the line, turns the text around."""


def record_run(folder: Path, run_id: str, answer: str = "4,180 feet.") -> Path:
    """Record a run with one tool call, in which every moment takes a millisecond."""

    @tool(read_only=True)
    async def lookup(key: str) -> str:
        """Look a fact up."""
        return f"{key}: {answer}"

    turns = [
        calls(call("lookup", key="Mount Zed"), text='<rationale call="1">{"why": "to know"}</rationale>'),
        text(answer),
    ]
    agent = Agent(ScriptedModel(turns), name="guide", tools=[lookup], trace=folder, clock=TickingClock)
    agent.run_sync("How high is Mount Zed?", run_id=run_id)
    return folder / f"{run_id}.jsonl"


def record_hostile_run(folder: Path) -> Path:
    """Write a whole trace in which everything that can hold text holds terminal escapes."""
    path = folder / "hostile.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    clock = TickingClock()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    header = AgentHeader(name=EVIL, model=EVIL)
    recorder.emit(RunStarted(format="2.0", run_id=EVIL, agent=header, task=EVIL), "root")
    recorder.emit(AgentStarted(agent=header, task=EVIL, parent="root", call_id=EVIL), f"root/{EVIL}")
    recorder.emit(Thought(request=0, text=EVIL), f"root/{EVIL}", 0)
    recorder.emit(ToolCallCompleted(call_id=EVIL, tool=EVIL, position=0, ok=True, result={EVIL: EVIL}), "root", 0)
    recorder.emit(LlmRequested(request=0, model=EVIL, messages=()), "root", 1)
    recorder.emit(ToolCallStarted(call_id=EVIL, tool=EVIL, position=0, args={EVIL: EVIL}, args_hash=EVIL), "root", 1)
    recorder.seal()
    assert recorder.complete
    return path
