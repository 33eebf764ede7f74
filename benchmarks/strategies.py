"""CPU time and bytes per step of each strategy, for runs of 10, 100 and 500 steps: both have to stay flat.

A step is one model call and one tool call with a 1 KB result; of a plan, one step of it. The floor is the bare loop of
`step_cost`, measured in the same run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.step_cost import STEPS, bare_loop, cpu_us_per_step, fetch_async
from playhead import Agent, Context
from playhead.kernel.strategies.base import make_strategy
from playhead.testing import ScriptedModel, call, text

if TYPE_CHECKING:
    from playhead.testing import Turn

REPEATS = 3
Script = Callable[[int], list["Turn"]]


def looping(steps: int) -> list[Turn]:
    """Return one call a turn, and then the answer."""
    return [*(call("fetch_async", key=step) for step in range(steps)), text("done")]


def finishing(steps: int) -> list[Turn]:
    """Return the same, ended by the tool that ends it."""
    return [*looping(steps)[:-1], call("finish", result="done")]


def thinking(steps: int) -> list[Turn]:
    """Return the same, with a thought at the end."""
    return [*looping(steps)[:-1], text("<thinking>That is all.</thinking>done")]


def reflecting(steps: int) -> list[Turn]:
    """Return an answer after half of the steps, a critique, and an improved one after the other half."""
    wrong = text(json.dumps({"issues": ["more"], "score": 3, "satisfied": False}))
    return [*looping(steps // 2), wrong, *looping(steps - steps // 2), text('{"satisfied": true, "score": 9}')]


def planning(steps: int) -> list[Turn]:
    """Return a plan of so many calls, a look at its results, and the answer."""
    plan = [{"type": "tool_call", "tool_name": "fetch_async", "tool_args": {"key": step}} for step in range(steps)]
    seen = {"reason": "all is there", "satisfied": True}
    return [text(json.dumps({"steps": plan})), text(json.dumps(seen)), text("done")]


STRATEGIES: dict[str, tuple[Script, dict[str, Any]]] = {
    "reactive": (looping, {}),
    "direct": (looping, {}),
    "autonomous": (finishing, {}),
    "chain-of-thought": (thinking, {}),
    "reflexion": (reflecting, {"kernel_max_iterations": 1_000}),
    "plan-execute-reflect": (planning, {}),
}
"""The script of each strategy, and its settings."""


async def run_strategy(steps: int, folder: Path, strategy: str) -> Path:
    """Run a strategy for so many steps, with everything recorded."""
    script, settings = STRATEGIES[strategy]
    agent = Agent(
        ScriptedModel(script(steps), keep_requests=False),
        tools=[fetch_async],
        strategy=make_strategy(strategy, settings),
        max_iterations=2 * steps + 10,
        context=Context(rationale=False),
        trace=folder,
    )
    result = await agent.run("go")
    assert result.output == "done", result
    assert result.trace_path is not None
    called = sum(step.type == "action" and step.tool == "fetch_async" for step in result.steps)
    assert called == steps, (strategy, called)
    return result.trace_path


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"CPU µs per step, least of {REPEATS} runs, and bytes per step; Python {sys.version.split()[0]}")
        print(f"{'':24}" + "".join(f"{f'{steps} steps':>18}" for steps in STEPS))
        floor = partial(bare_loop, path=folder / "bare")
        for strategy in STRATEGIES:
            run = partial(run_strategy, folder=folder, strategy=strategy)
            costs = [cpu_us_per_step(steps, floor, run, repeats=REPEATS) for steps in STEPS]
            print(f"{strategy:24}" + "".join(f"{cost:>11.0f} ({cost / bare:3.1f}x)" for bare, cost in costs))
            sizes = [asyncio.run(run_strategy(steps, folder, strategy)).stat().st_size / steps for steps in STEPS]
            print(f"{'  bytes per step':24}" + "".join(f"{size:>18.0f}" for size in sizes))


if __name__ == "__main__":
    main()
