"""Runs to be found, for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.testing import TickingClock
from playhead.trace.events import LlmRequested, RunCompleted, RunStarted, ToolCallStarted
from playhead.trace.header import AgentHeader, TelemetryContext
from playhead.trace.recorder import Recorder
from playhead.trace.types import Usage
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from pathlib import Path


def write_run(
    folder: Path,
    run_id: str,
    *calls: tuple[str, Any],
    agent: str = "clerk",
    model: str = "openai/small",
    task: str = "Pay the bill.",
    ended: str = "end_turn",
    status: str = "done",
    cost: float | None = 0.01,
    asked: str | None = None,
    minute: int = 0,
    tags: TelemetryContext | None = None,
) -> Path:
    """Write a run with these calls, which began so many minutes after the others."""
    folder.mkdir(parents=True, exist_ok=True)
    path, clock = folder / f"{run_id}.jsonl", TickingClock(1_790_000_000_000_000 + minute * 60_000_000)
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    header = AgentHeader(name=agent, model=model)
    recorder.emit(RunStarted(format="2.0", run_id=run_id, agent=header, task=task, telemetry=tags), "root")
    if asked is not None:  # by a sub-agent, or by a recorded program, whose header names no model
        recorder.emit(LlmRequested(request=0, model=asked, messages=()), "root/helper@0.0", 0)
    for number, (tool, args) in enumerate(calls):
        started = ToolCallStarted(call_id=str(number), tool=tool, position=number, args=args, args_hash="x")
        recorder.emit(started, "root/helper@0.0" if number else "root", 0)
    usage = Usage(input_tokens=10, output_tokens=len(calls))
    end: Any = {"status": status, "terminated_by": ended, "terminated_source": "kernel", "usage": usage}
    recorder.emit(RunCompleted(**end, cost_usd=cost, duration_ms=len(task)), "root")
    recorder.seal()
    return path


def write_runs(folder: Path) -> None:
    """Write seven runs that differ in what can be asked for; the last one has no end."""
    ann = TelemetryContext(tags=("beta",), user_id="ann", metadata={"team": "billing", "tries": 2})
    write_run(folder, "paid", ("send_mail", {"amount": 420, "to": "Ann"}), tags=ann)
    write_run(folder, "later", ("look", {}), ("send_mail", {"amount": 420.0, "to": "Bo"}), minute=1, cost=0.5)
    write_run(
        folder,
        "split",
        ("send_mail", {"amount": 7}),
        ("refund", {"amount": 420}),
        minute=2,
        cost=None,
        asked="groq/large",
    )
    write_run(folder, "late", minute=3, ended="timeout_after", agent="guide", task='She said "später"\n')
    write_run(folder, "broken", minute=4, ended="llm_error", status="failed", model="ollama/qwen3:8b", cost=2.0)
    write_run(folder, "listed", ("send_mail", {"to": ["Ann", "Bo"], "amount": "420"}), minute=5, task="x" * 300_000)
    open_run = write_run(folder, "dead", ("send_mail", {"amount": 420}), minute=6)
    open_run.write_bytes(b"".join(open_run.read_bytes().splitlines(keepends=True)[:-1]))


QUESTIONS = {
    "--ended timeout_after": "late",
    "--ended answered --ended interrupted": "dead listed split later paid",
    "--failed": "broken",
    "--failed --ended timeout_after": "broken late",
    "--tool refund": "split",
    "--tool send_mail --arg amount=420": "dead listed later paid",
    "--arg amount=420 --arg to=Bo": "later",
    "--arg amount=420": "dead listed split later paid",
    "--arg amount=420.0": "dead split later paid",
    """--arg 'to=["Ann","Bo"]'""": "listed",
    "--tool send_mail --arg amount=42": "",
    "--since 2026-09-21T14:17:20+00:00": "dead listed broken",
    "--agent guide": "late",
    "--model qwen3:8b": "broken",
    "--model openai/small --last 2": "dead listed",
    "--model large": "split",
    "--model groq/large --tool refund": "split",
    "--tag beta": "paid",
    "--tag team=billing --tag user_id=ann --tag tries=2": "paid",
    "--tag beta --tag user_id=bo": "",
    "--min-cost 0.5": "broken later",
    "--text 'said \"später'": "late",
    "--text xxxxxxxxxxxxx": "listed",
    "--sort cost": "broken later listed late paid dead split",
    "--last 3 --sort cost": "broken listed dead",
    "--tool send_mail --sort tokens --last 3": "split listed dead",
}
"""Options, and the runs that they choose, in order."""
