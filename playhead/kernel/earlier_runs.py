"""What earlier runs in the same folder tell: faults that critics found in answers to similar tasks, and how well strategies did.

Each look is a recorded fact: a replay is served what was found then, and opens no file. Of a run the first line and the last are
read, and of a similar one its critiques; what cannot be read is passed over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playhead.errors import PlayheadError
from playhead.kernel.lifecycle.bodies import run_in_thread
from playhead.trace.events.run import ANSWERED
from playhead.trace.reader import Lines, open_trace
from playhead.trace.store import TraceStore, ends_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playhead.kernel.session import Session
    from playhead.trace.types import AgentHeader

MAX_FILES: Final = 50
"""Newest traces in which critiques are looked for."""
MAX_BYTES: Final = 8 << 20
"""A larger trace is not read for them: a look at earlier runs must not hold up this one."""
MAX_LENGTH: Final = 400
"""Characters that are kept of a critique."""
MAX_TASK: Final = 20_000
"""Characters of a task that are looked at."""
_CRITIQUE: Final = b'"kind":"critique"'
_TYPES: Final = {
    "multi-step": re.compile(r"step[ -]by[ -]step|multi[ -]?step|\bplan\b|\bfirst\b.{1,200}\bthen\b", re.IGNORECASE),
    "research": re.compile(r"\b(?:research|investigate|find out|survey|look into|sources?)\b", re.IGNORECASE),
    "analysis": re.compile(r"\b(?:analy[sz]e|analysis|compare|evaluate|synthesi[sz]e|assess)\b", re.IGNORECASE),
    "creative": re.compile(r"\b(?:brainstorm|invent|imagine|stor(?:y|ies)|poem|ideas?|slogan)\b", re.IGNORECASE),
    "writing": re.compile(r"\b(?:write|draft|essay|article|letter|e-?mail|rewrite|report)\b", re.IGNORECASE),
}
"""In order: the first that is found is the type."""

Found = TypeVar("Found")


async def ask_earlier_runs(session: Session, fact: str, look: Callable[[Path], list[dict[str, Any]]]) -> Any:  # noqa: ANN401 - JSON
    """Return what a look finds, given the path of this run's own trace; a run without a trace finds nothing."""
    writer = session.run.recorder.writer
    return await session.facts.ask(fact, partial(run_in_thread, lambda: [] if writer is None else look(writer.path)))


def find_critiques(own: Path, task: str, similarity: float, most: int) -> list[dict[str, Any]]:
    """Return what critics were not satisfied with in earlier runs with a similar task, of the newest run first.

    Similar means that the tasks share words: the words of both, divided by the words of either (Jaccard).
    """
    words = _words(task)

    def found_in(path: Path, started: Any, _: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
        others = _words(_text(started["task"]))
        alike = len(words & others) / max(1, len(words | others))
        if alike < similarity or path.stat().st_size > MAX_BYTES:
            return []
        with open_trace(path) as file:
            said = [json.loads(line)["data"] for line in Lines(file) if _CRITIQUE in line[:100]]
        texts = [" ".join(each["text"][:MAX_LENGTH].split()) for each in said if each["satisfied"] is False]
        return [{"run_id": path.stem, "similarity": round(alike, 4), "text": text} for text in texts]

    return list(islice(chain.from_iterable(_earlier(own, MAX_FILES, found_in)), most))


def effectiveness(own: Path, agent: AgentHeader, newest: int) -> list[dict[str, Any]]:
    """Return one entry for each strategy and type of task that finished runs of this agent on this model had.

    Only runs of an agent of the same name and model count: what a strategy does for one says nothing about another. Replays do
    not count.
    """

    def past(_: Path, started: Any, end: Any) -> tuple[tuple[str, str], bool] | None:  # noqa: ANN401 - JSON
        header = started["agent"]
        if end is None or (header["name"], header["model"]) != (agent.name, agent.model) or started.get("replay_of"):
            return None
        kind = header["strategy_settings"].get("task_type") or task_type_of(_text(started["task"]))
        strategy = end.get("strategy_used") or header["strategy"]
        return (str(strategy), str(kind)), end["status"] == "done" and end["terminated_by"] in ANSWERED

    runs = [each for each in _earlier(own, newest, past) if each is not None]
    good = Counter(what for what, success in runs if success)
    return [
        {"strategy": what[0], "task_type": what[1], "runs": number, "success_rate": good[what] / number}
        for what, number in sorted(Counter(what for what, _ in runs).items())
    ]


def task_type_of(task: str) -> str:
    """Return `multi-step`, `research`, `analysis`, `creative`, `writing` or `question`, by the words of a task alone."""
    return next((name for name, words in _TYPES.items() if words.search(task[:MAX_TASK])), "question")


def _earlier(own: Path, most: int, look: Callable[[Path, Any, Any], Found]) -> Iterator[Found]:
    """Yield what is made of each of the newest traces beside a run's own: of its path, its first line, and its last if it ended."""
    try:
        paths = [each for each in TraceStore.of(own).paths() if each != own and each.suffix == ".jsonl"]
    except PlayheadError:  # a run does not fail because nobody can look at earlier ones
        return
    for path in paths[:most]:
        with suppress(Exception):  # a file may hold anything
            first, last = ends_of(path)
            yield look(path, json.loads(first)["data"], json.loads(last)["data"] if last else None)


def _text(task: Any) -> str:  # noqa: ANN401 - JSON
    return task if isinstance(task, str) else "\n".join(part.get("text", "") for part in task)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text[:MAX_TASK].lower()))
