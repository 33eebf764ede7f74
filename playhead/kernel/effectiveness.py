"""How well strategies did on which kind of task, learned from the traces that are there: they are the memory.

Of each run two places are read: the first line, which says what ran on what, and the last. So the work is bounded by the
number of runs, whatever their length. What kind of task a text asks for, its words alone say.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import PlayheadError
from playhead.trace.events.run import ANSWERED
from playhead.trace.store import TraceStore, ends_of

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.types import AgentHeader

READ: Final = 20_000
"""Characters of a task that are looked at."""
_TYPES: Final = {
    "multi-step": re.compile(r"step[ -]by[ -]step|multi[ -]?step|\bplan\b|\bfirst\b.{1,200}\bthen\b", re.IGNORECASE),
    "research": re.compile(r"\b(?:research|investigate|find out|survey|look into|sources?)\b", re.IGNORECASE),
    "analysis": re.compile(r"\b(?:analy[sz]e|analysis|compare|evaluate|synthesi[sz]e|assess)\b", re.IGNORECASE),
    "creative": re.compile(r"\b(?:brainstorm|invent|imagine|stor(?:y|ies)|poem|ideas?|slogan)\b", re.IGNORECASE),
    "writing": re.compile(r"\b(?:write|draft|essay|article|letter|e-?mail|rewrite|report)\b", re.IGNORECASE),
}
"""In order: the first that is found is the type."""


def task_type_of(task: str) -> str:
    """Return `multi-step`, `research`, `analysis`, `creative`, `writing` or `question`."""
    return next((name for name, words in _TYPES.items() if words.search(task[:READ])), "question")


def effectiveness(folder: Path, agent: AgentHeader, newest: int) -> list[dict[str, Any]]:
    """Return one entry for each strategy and type of task that finished runs of this agent on this model had.

    Only runs of an agent of the same name and model count: what a strategy does for one says nothing about another.
    Replays, runs without an end, and compressed traces (whose end cannot be jumped to) do not count.

    Args:
        folder: where the traces are.
        agent: the agent that runs now.
        newest: how many files are looked at, newest first.
    """
    runs: Counter[tuple[str, str]] = Counter()
    good: Counter[tuple[str, str]] = Counter()
    try:
        paths = TraceStore(folder).paths()[:newest]
    except PlayheadError:
        return []
    for path in paths:
        if path.suffix == ".jsonl" and (found := _past_run(path, agent)) is not None:
            what, success = found
            runs[what] += 1
            good[what] += success
    return [
        {"strategy": what[0], "task_type": what[1], "runs": number, "success_rate": good[what] / number}
        for what, number in sorted(runs.items())
    ]


def _past_run(path: Path, agent: AgentHeader) -> tuple[tuple[str, str], bool] | None:
    """Return the strategy and the type of task of a run, and whether it succeeded; None when it does not count."""
    try:
        first, last = ends_of(path)
        started = json.loads(first)["data"]
        header, task = started["agent"], started["task"]
        if last is None or (header["name"], header["model"]) != (agent.name, agent.model) or started.get("replay_of"):
            return None
        end = json.loads(last)["data"]
        parts = [each.get("text", "") for each in task] if isinstance(task, list) else [task]
        kind = header["strategy_settings"].get("task_type") or task_type_of("\n".join(parts))
        strategy = end.get("strategy_used") or header["strategy"]
        return (str(strategy), str(kind)), end["status"] == "done" and end["terminated_by"] in ANSWERED
    except Exception:  # noqa: BLE001 - a file may hold anything
        return None
