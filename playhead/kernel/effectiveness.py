"""How well strategies did on which kind of task, learned from the traces that are there: they are the memory.

Of each run two places are read: the first line, which says what ran on what, and the end. So the work is bounded by the
number of runs, whatever their length.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import PlayheadError
from playhead.kernel.task_types import task_type_of
from playhead.trace.events.run import ANSWERED
from playhead.trace.store import TraceStore
from playhead.trace.types import AgentHeader, dollars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HEAD: Final = 512 << 10
"""Bytes read of the beginning of a trace at most; a run whose first line is longer is left out."""
TAIL: Final = 64 << 10
"""Bytes read of its end; one with a longer answer is left out."""
_CONFIDENCE: Final = {"high": 0.9, "medium": 0.6, "low": 0.3}


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a stored run says about its strategy."""

    strategy: str
    task_type: str
    success: bool
    cost_usd: float | None
    duration_ms: float
    confidence: float | None
    started_us: int


def effectiveness(folder: Path, agent: AgentHeader, newest: int) -> list[dict[str, Any]]:
    """Return one entry for each strategy and type of task that finished runs of this agent on this model had.

    Only runs of an agent of the same name and model count: what a strategy does for one says nothing about another.
    Replays, runs without an end, and compressed traces (whose end cannot be jumped to) do not count.

    Args:
        folder: where the traces are.
        agent: the agent that runs now.
        newest: how many files are looked at, newest first.
    """
    groups: dict[tuple[str, str], list[PastRun]] = {}
    for run in _past_runs(folder, agent, newest):
        groups.setdefault((run.strategy, run.task_type), []).append(run)
    return [_entry(strategy, kind, runs) for (strategy, kind), runs in sorted(groups.items())]


def _entry(strategy: str, task_type: str, runs: list[PastRun]) -> dict[str, Any]:
    return {
        "strategy": strategy,
        "task_type": task_type,
        "runs": len(runs),
        "success_rate": _mean(float(run.success) for run in runs),
        "avg_cost_usd": _mean(run.cost_usd for run in runs),
        "avg_duration_ms": _mean(run.duration_ms for run in runs),
        "avg_confidence": _mean(run.confidence for run in runs),
        "last_used_us": max(run.started_us for run in runs),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _past_runs(folder: Path, agent: AgentHeader, newest: int) -> Iterator[PastRun]:
    try:
        paths = TraceStore(folder).paths()[:newest]
    except PlayheadError:
        return
    for path in paths:
        if path.suffix == ".jsonl" and (run := _past_run(path, agent)) is not None:
            yield run


def _past_run(path: Path, agent: AgentHeader) -> PastRun | None:
    """Return what a trace says; None when it is none of this agent's, or cannot be read, whatever it holds."""
    try:
        first, last = _ends(path)
        started, ended = json.loads(first), [json.loads(line) for line in last]
        header = AgentHeader.model_validate(started["data"]["agent"])
        if (header.name, header.model) != (agent.name, agent.model) or started["data"].get("replay_of") is not None:
            return None
        end = ended[-1]["data"] if ended[-1]["kind"] == "run-completed" else None
        return None if end is None else _read(started, header, end, _confidence(ended))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        return None


def _read(started: dict[str, Any], header: AgentHeader, end: dict[str, Any], confidence: float | None) -> PastRun:
    return PastRun(
        strategy=str(end.get("strategy_used") or header.strategy),
        task_type=str(header.strategy_settings.get("task_type") or task_type_of(_task(started["data"]["task"]))),
        success=end["status"] == "done" and end["terminated_by"] in ANSWERED,
        cost_usd=dollars(end.get("cost_usd")),
        duration_ms=float(end["duration_ms"]),
        confidence=confidence,
        started_us=int(started["ts"]),
    )


def _task(content: Any) -> str:  # noqa: ANN401 - any JSON value
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _confidence(ended: list[dict[str, Any]]) -> float | None:
    said = [
        line["data"].get("confidence") for line in ended if line["kind"] == "final-answer" and line["owner"] == "root"
    ]
    return _CONFIDENCE.get(said[-1]) if said else None


def _ends(path: Path) -> tuple[bytes, list[bytes]]:
    """Return the first line, and the last few."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        head = os.pread(descriptor, TAIL, 0)
        if b"\n" not in head:
            head += os.pread(descriptor, HEAD - TAIL, TAIL)
        start = max(0, size - TAIL)
        tail = os.pread(descriptor, TAIL, start)
    finally:
        os.close(descriptor)
    first = head.partition(b"\n")[0]
    lines = (tail if start else b"\n" + tail).split(b"\n")[1:-1]  # the first may be the end of a longer one
    return first, lines[-4:]
