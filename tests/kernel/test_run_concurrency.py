from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, tool
from playhead.errors import TraceExistsError
from playhead.testing import ScriptedModel, Turn, call, text
from playhead.trace.integrity import check_trace
from playhead.trace.reader import scan
from tests.kernel.runs import make_agent
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import RunResult
    from playhead.trace.types import Request

RUNS = sample(1000, 60)


def one_agent(folder: Path) -> Agent:
    """Return an agent for all runs: what it says tells which run it is in."""

    @tool(read_only=True)
    async def echo(words: str) -> str:
        """Echo."""
        await anyio.lowlevel.checkpoint()
        return f"echo of {words}"

    def answer(request: Request) -> Turn:
        task = next(message.content for message in request.messages if message.role == "user")
        if request.messages[-1].role == "user":
            return call("echo", words=task)
        return text(f"{request.messages[-1].content} in {task}")

    return make_agent(folder, ScriptedModel([answer] * RUNS * 2, keep_requests=False), echo)


def assert_apart(folder: Path, results: list[RunResult]) -> None:
    """Check that every run has its own answer and a whole trace with its own events and no others."""
    assert Counter(result.output for result in results) == {f"echo of #{n}. in #{n}.": 1 for n in range(RUNS)}
    assert len(list(folder.glob("*.jsonl"))) == RUNS
    for result in results:
        assert result.trace_complete
        assert result.trace_path is not None
        assert check_trace(result.trace_path).ok
        content = result.trace_path.read_text()
        task = str(result.output).rpartition(" ")[2]
        assert content.count("#") == content.count(task) > 5
        assert content.count("\n") == sum(1 for _ in scan(result.trace_path)) == 16


@pytest.mark.slow
async def test_many_runs_in_one_loop(tmp_path: Path):
    """Concurrent runs of one agent in one loop do not affect each other."""
    agent = one_agent(tmp_path)
    results: list[RunResult] = []

    async def run(number: int) -> None:
        results.append(await agent.run(f"#{number}.", run_id=f"run-{number}"))

    async with anyio.create_task_group() as group:
        for number in range(RUNS):
            group.start_soon(run, number)
    assert_apart(tmp_path, results)


@pytest.mark.slow
def test_many_runs_in_threads(tmp_path: Path):
    """Nor do runs in threads."""
    agent = one_agent(tmp_path)
    results: list[RunResult] = []

    def run(number: int) -> None:
        results.append(agent.run_sync(f"#{number}.", run_id=f"run-{number}"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_apart(tmp_path, results)


async def test_one_run_gets_an_id(tmp_path: Path):
    """Of fifty concurrent runs with one id, one runs and the others are refused."""
    model = ScriptedModel([lambda _request: text("42")] * 50)
    agent = make_agent(tmp_path, model)
    results: list[Any] = []

    async def run() -> None:
        try:
            results.append((await agent.run("Do it.", run_id="run")).output)
        except TraceExistsError as error:
            results.append(type(error))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(run)
    assert Counter(results) == {"42": 1, TraceExistsError: 49}
    assert len(model.requests) == 1
    assert check_trace(tmp_path / "run.jsonl").ok
