"""Random scripted runs, each recorded without killswitches and run again, on the same script, with them.

Nothing in them depends on time: what runs beside each other takes a known number of steps of the loop.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.compose.killswitches.expressions import parse_switch
from playhead.errors import RunError
from playhead.replay import load_recording
from playhead.testing import TickingClock
from tests.replay.random_agents import plain_agent

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Agent, Recording
    from playhead.compose.killswitches.expressions import SwitchExpression


@dataclass(frozen=True)
class Pair:
    """One script, run twice."""

    plain: Recording
    """Without switches."""
    switched: Recording
    """With them."""
    switches: list[SwitchExpression]


async def run_pair(seed: int, folder: Path) -> Pair:
    """Return both runs of a seed."""
    chance = random.Random(seed)
    texts = [_switch(chance) for _ in range(chance.choice((1, 1, 2, 3)))]
    paths = []
    for name, blocks in (("plain", []), ("switched", [parse_switch(each).block for each in texts])):
        agent = plain_agent(seed, compose=blocks, trace=folder, clock=TickingClock)
        paths.append(await recorded(agent, folder, f"{name}-{seed}"))
    return Pair(paths[0], paths[1], [parse_switch(each) for each in texts])


async def recorded(agent: Agent, folder: Path, run_id: str) -> Recording:
    """Run an agent, whatever becomes of it, and read its recording."""
    with suppress(RunError):
        await agent.run("Do it.", run_id=run_id)
    return load_recording(folder / f"{run_id}.jsonl")


def _switch(chance: random.Random) -> str:
    end = chance.choice(("stop", "stop", "terminate"))
    n = chance.randint(0, 5)
    tool_name = chance.choice(("read", "fail", "write", "pay", "inner", "agent1", "*"))
    budget = chance.randint(500, 9_000)
    bound = chance.choice((None, None, "bytes", "estimate"))
    return chance.choice(
        (
            f"budget_limit(max_tokens={budget}, output_cap=64, min_output_tokens=64, prompt_bound={bound!r}, on_trigger={end!r})",
            f"budget_limit(max_tokens={2 * budget}, output_cap=64, min_output_tokens=64, on_trigger={end!r})",
            f"budget_limit(max_cost_usd={budget / 1e6}, output_cap=64, min_output_tokens=64, prices={PRICES!r})",
            f"tool_limit({tool_name!r}, {n}, on_trigger={end!r})",
            f"tool_limit({{'read': {n}, '*': {n + 1}}}, total={2 * n + 1}, on_trigger={end!r})",
            f"tool_limit(total={n + 2})",
            f"circuit_breaker({n // 2 + 1}, on_trigger={end!r})",
            f"circuit_breaker({n // 2 + 1}, tools=['fail', 'break_it'], provider={chance.random() < 0.5}, on_trigger={end!r})",
            f"max_iterations({n}, on_trigger={end!r})",
        )
    )


PRICES = {f"scripted/depth-{depth}": [1e-6, 2e-6] for depth in range(4)}
