"""What hooks, killswitches and policies cost in CPU time per step: none, one on another tag, ten taps on everything, all policies.

Without hooks the chokepoints do nothing but ask whether there are any; that is measured by itself. An agent without policies
does not even load them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.step_cost import fetch_async, scripted
from playhead import Agent, Context
from playhead.compose import policies
from playhead.compose.killswitches import budget_limit, circuit_breaker, timeout_after, tool_limit, watchdog
from playhead.kernel.session import Gate, Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playhead.compose import Block, Harness

STEPS = 100
REPEATS = 15


def ten_taps(harness: Harness) -> None:
    """Register ten functions that see everything and do nothing."""
    for number in range(10):
        harness.tap("**", lambda _payload, _context: None, name=f"tap {number}")


def one_transform(harness: Harness) -> None:
    """Register one that changes the system prompt, once a run."""
    harness.on("prompt.system", lambda prompt, _context: f"{prompt} Be brief.")


def switches() -> list[Block]:
    """Return five killswitches that never fire: one at requests, two at calls and results, two at the clock."""
    return [
        budget_limit(max_tokens=100_000_000, max_cost_usd=1000.0, prompt_bound="bytes"),
        tool_limit(total=100_000),
        circuit_breaker(3),
        timeout_after("1h"),
        watchdog("1h"),
    ]


def every_policy() -> list[Block]:
    """Return the policies that look at each step, and those that look at the answer; none of them steers."""
    return [
        policies.require_tools(fetch_async.spec.name),
        policies.tool_budgets({fetch_async.spec.name: 100_000}),
        policies.detect_loops(),
        policies.switch_strategy(),
        policies.min_iterations(2),
        policies.output_retries(1),
        policies.validate(bool),
        policies.done_when(bool),
    ]


def runner(folder: Path, *blocks: Block) -> Callable[[], Awaitable[object]]:
    """Return a function that runs the steps with these blocks."""

    async def run() -> None:
        model = scripted(STEPS, fetch_async.spec.name)
        agent = Agent(
            model,
            tools=[fetch_async],
            max_iterations=STEPS + 1,
            trace=folder,
            context=Context(rationale=False),
            compose=blocks,
        )
        result = await agent.run("go")
        assert result.output == "done"

    return run


async def measure(runs: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, float]:
    """Return the least CPU µs per step of each; they take turns, so that what disturbs one disturbs all."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        await run()
    for _ in range(REPEATS):
        for name, run in runs.items():
            started = time.process_time()
            await run()
            found[name].append((time.process_time() - started) / STEPS * 1e6)
    return {name: min(times) for name, times in found.items()}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = runner(folder)
        cost = asyncio.run(
            measure(
                {
                    "no hook": plain,
                    "one transform on prompt.system": runner(folder, one_transform),
                    "ten taps on **": runner(folder, ten_taps),
                    "five killswitches": runner(folder, *switches()),
                    "eight policies": runner(folder, *every_policy()),
                }
            )
        )
    print(f"CPU µs per step, least of {REPEATS} runs of {STEPS} steps, async tool, everything recorded")
    for label, value in cost.items():
        print(f"{label:34}{value:>8.0f}{value - cost['no hook']:>+10.1f}")
    print(f"{'asking at 8 chokepoints, no hook':34}{asking_cost():>8.2f}")
    print(f"{'policy modules loaded without one':34}{loaded_policies():>8}")


def loaded_policies() -> int:
    """Return how many modules of policies a run loads that has none."""
    code = """
import sys
from playhead import Agent
from playhead.testing import ScriptedModel, text
Agent(ScriptedModel([text("done")]), trace=None).run_sync("go")
print(sum(name.startswith("playhead.compose.policies") for name in sys.modules))
"""
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)  # noqa: S603 - the code above


def asking_cost() -> float:
    """Return the CPU µs per step that the chokepoints of a step cost when there is no hook."""
    session: Any = mock.Mock(gate=Gate())

    async def step() -> None:
        for _ in range(8):  # prompt.tools and llm.request are not even asked, this is the upper bound
            await Session.offer(session, "tool.call", None, key="0")

    async def many(count: int) -> float:
        started = time.process_time()
        for _ in range(count):
            await step()
        return (time.process_time() - started) / count * 1e6

    return min(asyncio.run(many(2000)) for _ in range(5))


if __name__ == "__main__":
    main()
