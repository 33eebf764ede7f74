"""Runs for tests of reports: a hostile one, and long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead import load_recording
from playhead.agent.agent import Agent
from playhead.testing import ScriptedModel, TickingClock, call, calls, text
from playhead.trace import events as e
from playhead.trace.header import AgentHeader
from playhead.trace.types import Rationale
from tests.diagnose.recordings import lookup, made
from tests.trace.traces import unknown

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.diagnose.recording import Recording

RUN = "globalThis.ran = (globalThis.ran ?? 0) + 1; alert(1)"
"""A program that must not run."""
EVIL = (
    f"</script><script>{RUN}</script><!-- --><img src=x onerror='{RUN}'><a href='javascript:{RUN}'>click</a>"
    f"</style></title></textarea>{{{{7*7}}}}<svg onload='{RUN}'><iframe src='https://example.com'></iframe>"
    "<link rel=stylesheet href='https://example.com/x.css'>\u202eright to left\x1b[2J\x00"
)


def hostile_recording(length: int = 1000) -> Recording:
    """Return a recording in which each text is hostile, one has this length, and a request took longer than the world is old."""
    agent = AgentHeader(name=EVIL, model=EVIL, strategy=EVIL, system_prompt=EVIL)
    inside = f"root/{EVIL}@0.0"
    why = Rationale(why=EVIL, refs=(EVIL,))
    return made(
        e.MessageAdded(id=0, role="system", content=EVIL),
        e.LlmRequested(request=0, model=EVIL, messages=((0, 5_000_000_000),), purpose=EVIL),
        e.LlmResponded(request=0, text=EVIL, thinking=EVIL, model=EVIL, latency_ms=1e308),
        e.Thought(request=0, text=EVIL, name=EVIL),
        e.ToolCallStarted(call_id=EVIL, tool=EVIL, position=0, args={EVIL: EVIL}, args_hash="", rationale=why),
        (inside, e.AgentStarted(agent=agent, task=EVIL, parent="root", call_id=EVIL)),
        (inside, unknown("new-kind", evil={EVIL: [EVIL]})),
        e.ToolCallCompleted(call_id=EVIL, tool=EVIL, position=0, ok=False, error=e.ErrorInfo(type=EVIL, message=EVIL)),
        e.ToolCallStarted(call_id="2", tool="__proto__", position=1, args={"__proto__": 1}, args_hash=""),
        e.ToolCallCompleted(call_id="2", tool="__proto__", position=1, ok=True, result="x\u202e" * (length // 2)),
        header={"agent": agent, "task": EVIL},
        end=e.RunCompleted(status="failed", terminated_by=EVIL, terminated_source=EVIL, output=EVIL, error=EVIL),
    )


def long_recording(folder: Path, turns: int) -> Recording:
    """Record a run of so many turns, each with two calls and their reasons; about ten events a turn."""
    reasons = "".join(
        f'\n<rationale call="{call}">{{"why": "the height is not known yet"}}</rationale>' for call in (1, 2)
    )
    script = [
        calls(
            call("lookup", key=f"Mount {turn}"),
            call("lookup", key=f"Hill {turn}"),
            text=f"Next is number {turn}.{reasons}",
        )
        for turn in range(turns)
    ]
    model = ScriptedModel([*script, text("All are looked up.")])
    agent = Agent(model, name="surveyor", tools=[lookup], trace=folder, clock=TickingClock, max_iterations=turns + 1)
    agent.run_sync("Look every mountain up.", run_id="long")
    return load_recording(folder / "long.jsonl")
