"""CPU time and bytes per step of a run, with everything recorded, beside a bare loop with pydantic events.

A step is one model call and one tool call with a 1 KB result. The bare loop does the least that a tracing agent can do:
it asks the same model, calls the same function, and writes one JSON line per event.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from playhead import Agent, Context, tool
from playhead.compose.policies import novelty
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Message, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STEPS = (10, 100, 500)
REPEATS = 25
PAYLOAD = "x" * 1024


@tool(read_only=True)
async def fetch_async(key: int) -> str:  # noqa: ARG001
    """Return 1 KB."""
    return PAYLOAD


@tool(read_only=True)
def fetch_sync(key: int) -> str:  # noqa: ARG001
    """Return 1 KB."""
    return PAYLOAD


class BareEvent(BaseModel):
    """One line of the bare loop."""

    seq: int
    kind: str
    data: dict[str, Any]


def scripted(steps: int, name: str) -> ScriptedModel:
    """Return a model that calls a tool `steps` times and then answers."""
    return ScriptedModel([call(name, key=step) for step in range(steps)] + [text("done")], keep_requests=False)


async def bare_loop(steps: int, path: Path) -> None:
    """Run the floor: a loop, pydantic events, one write per event."""
    model, thread = scripted(steps, "fetch"), [Message(id=0, role="user", content="go")]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    seq = 0

    def write(kind: str, **data: Any) -> None:  # noqa: ANN401 - any fields
        nonlocal seq
        os.write(descriptor, BareEvent(seq=seq, kind=kind, data=data).model_dump_json().encode() + b"\n")
        seq += 1

    while True:
        write("asked", messages=len(thread))
        answer = await model.complete(Request(model.name, tuple(thread)))
        write("answered", text=answer.text, calls=[each.model_dump() for each in answer.tool_calls])
        if not answer.tool_calls:
            break
        asked = answer.tool_calls[0]
        write("called", name=asked.name, arguments=asked.arguments)
        result = await fetch_async(**(asked.arguments or {}))
        write("returned", result=result)
        thread.append(Message(id=len(thread), role="assistant", tool_calls=answer.tool_calls))
        thread.append(Message(id=len(thread), role="tool", content=result, tool_call_id=asked.id))
    os.close(descriptor)


async def playhead_loop(steps: int, folder: Path, function: Any, profile: Any = None) -> Path:  # noqa: ANN401 - a tool
    """Run the same steps with everything recorded; with a profile, also with results shortened and old turns put together."""
    agent = Agent(
        scripted(steps, function.spec.name),
        tools=[function],
        max_iterations=steps + 1,
        trace=folder,
        context=Context(rationale=False, profile=profile),
        compose=[] if profile is None else [novelty(0.2)],
    )
    result = await agent.run("go")
    assert result.output == "done"
    assert result.iterations == steps + 1
    assert result.trace_path is not None
    return result.trace_path


def cpu_us_per_step(steps: int, *runs: Callable[[int], Awaitable[object]], repeats: int = REPEATS) -> list[float]:
    """Return the least of the repeats of each run, in microseconds of CPU time of the whole process.

    The others were disturbed. The runs take turns, because what disturbs one may last for seconds.
    """

    async def measured(run: Callable[[int], Awaitable[object]]) -> float:
        started = time.process_time()
        await run(steps)
        return (time.process_time() - started) / steps * 1e6

    async def measure() -> list[list[float]]:
        return [[await measured(run) for run in runs] for _ in range(repeats + 1)][1:]

    return [min(each) for each in zip(*asyncio.run(measure()), strict=True)]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs: dict[str, Callable[[int], Awaitable[object]]] = {
            "bare loop (floor)": partial(bare_loop, path=folder / "bare"),
            "Playhead, async tool": partial(playhead_loop, folder=folder, function=fetch_async),
            "Playhead, sync tool": partial(playhead_loop, folder=folder, function=fetch_sync),
            "async, profile local": partial(playhead_loop, folder=folder, function=fetch_async, profile="local"),
        }
        print(f"CPU µs per step, least of {REPEATS} runs, Python {sys.version.split()[0]}")
        print(f"{'':28}" + "".join(f"{steps:>12} steps" for steps in STEPS))
        costs = {steps: cpu_us_per_step(steps, *runs.values()) for steps in STEPS}
        for place, label in enumerate(runs):
            figures = ((costs[steps][place], costs[steps][place] / costs[steps][0]) for steps in STEPS)
            print(f"{label:28}" + "".join(f"{cost:>11.0f} ({ratio:4.1f}x)" for cost, ratio in figures))
        sizes = [asyncio.run(playhead_loop(steps, folder, fetch_async)).stat().st_size / steps for steps in STEPS]
        print(f"{'bytes per step':28}" + "".join(f"{size:>18.0f}" for size in sizes))


if __name__ == "__main__":
    main()
