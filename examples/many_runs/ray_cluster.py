"""Replays on a Ray cluster: any `concurrent.futures` executor will do, and Ray's is six lines. Needs `pip install 'playhead[ray]'`.

Every machine of the cluster needs Playhead and the folder of traces. Here the cluster is this machine, with the number of
workers that is given, and the model is one that takes a tenth of a second for each answer.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import ray

from playhead import Agent, Corpus, replay_corpus
from playhead.trace.types import Completion, Prices, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class RayExecutor(Executor):
    """Runs each job as a task of a Ray cluster."""

    def submit(self, function: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Start a job."""
        future: Future[Any] = ray.remote(function).remote(*args, **kwargs).future()
        return future


class SlowModel:
    """Answers every question with 42."""

    name = "scripted/slow"
    secrets: Mapping[str, str] = {}

    async def prices(self) -> Prices:
        """Cost nothing."""
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:  # noqa: ARG002 - a model
        """Take a while, and answer."""
        await anyio.sleep(0.1)
        return Completion(text="42", cost_usd=0.0, model=self.name)


def replay_on_ray(folder: Path, workers: int) -> tuple[Corpus, float]:
    """Replay all recordings of a folder on a local cluster; return the verdict and the seconds that the replays took."""
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        options: dict[str, Any] = {
            "executor": RayExecutor(),
            "concurrency": 2 * workers,
            "margin": 0.1,
            "trace": folder,
        }
        replay_corpus(
            sorted(folder.glob("*.jsonl")), model=SlowModel(), **options
        )  # the workers start, and import Playhead
        began = time.perf_counter()
        corpus = replay_corpus(sorted(folder.glob("*.jsonl")), model=SlowModel(), **options)
        return corpus, time.perf_counter() - began
    finally:
        ray.shutdown()


def main() -> None:
    """Record 30 runs, and replay them on as many workers as the first argument says."""
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agent = Agent(SlowModel(), trace=folder)
        for _ in range(30):
            agent.run_sync("6 * 7?")
        corpus, seconds = replay_on_ray(folder, workers)
    print(f"{corpus.verdict.verdict}: {corpus.verdict.judged} replays on {workers} workers in {seconds:.1f} s")


if __name__ == "__main__":
    main()
