"""One verdict from 1,000 recordings of 20 steps each, beside running the same steps; and how much memory that takes.

The model is scripted, so what is measured is Playhead: reading, replaying, recording, comparing, judging. The replays run in
two processes; the runs that they are compared with run in one.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent, Context, replay_corpus, tool
from playhead.errors import ModelRequestError
from playhead.trace.types import Completion, Prices, Request, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead import Corpus

RECORDINGS = 1000
STEPS = 20
WORKERS = 2


class Lookups:
    """Looks something up in each turn but the last, and answers with its task. It has no state: all replays share one.

    Told to be brief, it forgets each third task, and asks for something else once more in each fifth; told to fail, it fails.
    """

    name = "scripted/lookups"
    secrets: Mapping[str, str] = {}

    def __init__(self, steps: int) -> None:
        self._steps = steps

    async def prices(self) -> Prices:
        """Cost nothing."""
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:
        """Give the turn of this number."""
        system, task = (str(each.content) for each in request.messages[:2])
        if "fail" in system:
            raise ModelRequestError("no answer")
        number, is_brief = int(task.split()[-1]), "brief" in system
        if request.number < self._steps - 1:
            return self._turn("", request.number)
        if is_brief and number % 5 == 0 and request.number < self._steps:
            return self._turn("", -1)
        return self._turn("forgotten" if is_brief and number % 3 == 0 else f"found {task}")

    def _turn(self, text: str, *keys: int) -> Completion:
        calls = tuple(ToolCall(id="", name="lookup", arguments={"key": key}) for key in keys)
        usage = Usage(input_tokens=10, output_tokens=2)
        return Completion(text=text, tool_calls=calls, cost_usd=0.0, model=self.name, usage=usage)


@tool(read_only=True)
async def lookup(key: int) -> str:
    """Return 1 KB."""
    return f"{key}" * 512


def found(answer: Any, recording: Any) -> bool:  # noqa: ANN401 - JSON
    """Accept an answer that names the task."""
    return bool(answer == f"found {recording.header.task}")


def record(folder: Path, recordings: int, steps: int = STEPS) -> None:
    """Record so many runs, with numbered tasks."""
    options: dict[str, Any] = {"max_iterations": steps + 1, "context": Context(rationale=False), "trace": folder}
    agent = Agent(Lookups(steps), tools=[lookup], system_prompt="Answer.", **options)
    for number in range(recordings):
        agent.run_sync(f"task {number}", run_id=f"run-{number:05}")


def replay(folder: Path) -> Corpus:
    """Replay them all, in two processes."""
    paths, options = sorted(folder.glob("*.jsonl")), {"success": found, "concurrency": 2 * WORKERS}
    with ProcessPoolExecutor(WORKERS, get_context("fork")) as executor:
        return replay_corpus(paths, margin=0.05, model=Lookups(STEPS), trace=folder, executor=executor, **options)  # type: ignore[arg-type]


def used() -> tuple[float, float]:
    """Return the CPU seconds of this process and its workers, and the largest memory in MB that one of them has had."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    memory = max(each.ru_maxrss for each in usages) / (1 << (20 if sys.platform == "darwin" else 10))
    return sum(each.ru_utime + each.ru_stime for each in usages), memory


def main() -> None:
    """Print the figures for a small corpus and a large one."""
    print(f"{'recordings':>10}  {'recorded in':>12}  {'one verdict in':>15}  {'CPU of that':>12}  {'peak memory':>12}")
    for count in (RECORDINGS // 10, RECORDINGS):
        with tempfile.TemporaryDirectory() as name:
            began = time.perf_counter()
            record(Path(name), count)
            recorded, (before, _) = time.perf_counter(), used()
            corpus = replay(Path(name))
            ended, (after, memory) = time.perf_counter(), used()
            assert (corpus.verdict.verdict, corpus.verdict.judged) == ("PASS", count)
        times = f"{recorded - began:>10.1f} s  {ended - recorded:>13.1f} s  {after - before:>10.1f} s"
        print(f"{count:>10,}  {times}  {memory:>9.0f} MB")


if __name__ == "__main__":
    main()
