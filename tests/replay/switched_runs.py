"""Random scripted runs, each recorded without killswitches and run again, on the same script, with them.

Nothing in them depends on time: what runs beside each other takes a number of steps of the loop that the script says.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.lowlevel

from playhead import Agent, Recording, ToolContext, tool
from playhead.compose.killswitches.expressions import parse_switch
from playhead.errors import RunError
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, TickingClock, Turn, call, calls, error, text
from playhead.trace.types import ToolCall, Usage
from tests.options import grouped

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.compose.killswitches.expressions import SwitchExpression

KEYS = ("a", "b", "c")
BELOW: dict[str, Any] = {"retry_delay_s": 0, "rationale": False, "meta_tools": ("final-answer",)}
OPTIONS: dict[str, Any] = {"clock": TickingClock, **BELOW}


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
        agent = _agent(random.Random(seed), 0, compose=blocks, trace=folder, **OPTIONS)
        paths.append(await recorded(agent, folder, f"{name}-{seed}"))
    return Pair(paths[0], paths[1], [parse_switch(each) for each in texts])


async def recorded(agent: Agent, folder: Path, run_id: str) -> Recording:
    """Run an agent, whatever becomes of it, and read its recording."""
    with suppress(RunError):
        await agent.run("Do it.", run_id=run_id)
    return load_recording(folder / f"{run_id}.jsonl")


async def allow(_: Any) -> bool:
    """Say yes; no thread is asked, so that nothing depends on how fast it is."""
    return True


async def deny(_: Any) -> bool:
    """Say no."""
    return False


def _switch(chance: random.Random) -> str:
    end = chance.choice(("stop", "stop", "terminate"))
    n = chance.randint(0, 5)
    tool_name = chance.choice(("read", "fail", "write", "pay", "inner", "child", "*"))
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
            f"circuit_breaker({n // 2 + 1}, tools=['fail', 'inner'], provider={chance.random() < 0.5}, on_trigger={end!r})",
            f"max_iterations({n}, on_trigger={end!r})",
        )
    )


PRICES = {f"scripted/{depth}": [1e-6, 2e-6] for depth in range(4)}


def _agent(chance: random.Random, depth: int, **options: Any) -> Agent:
    tools: list[Any] = [*_tools(chance)]
    if depth < 2 and chance.random() < (1.0, 0.3)[depth]:
        child = _agent(chance, depth + 1, **BELOW)
        tools.append(child.as_tool(read_only=chance.random() < 0.7))
    names = [each.spec.name for each in tools]
    return Agent(
        ScriptedModel(_turns(chance, names), name=f"scripted/{depth}"),
        **grouped(
            name="child" if depth else "agent",
            tools=tools,
            max_iterations=chance.randint(2, 8),
            retries=chance.randint(0, 2),
            max_parallel=chance.randint(1, 3),
            approver=chance.choice([allow, deny]),
            **options,
        ),
    )


def _tools(chance: random.Random) -> list[Any]:
    steps = {key: chance.randint(0, 4) for key in KEYS}

    async def work(key: str) -> None:
        for _ in range(steps[key]):
            await anyio.lowlevel.checkpoint()

    @tool(read_only=True)
    async def read(key: str) -> str:
        """Read."""
        await work(key)
        return key * 20

    @tool
    async def write(key: str) -> str:
        """Write."""
        await work(key)
        return key

    @tool(read_only=True)
    async def fail(key: str) -> str:
        """Fail, but for c."""
        await work(key)
        if key != "c":
            raise ValueError(key)
        return key

    @tool(requires_approval=True)
    async def pay(key: str) -> str:
        """Pay, when allowed."""
        await work(key)
        return key

    @tool(read_only=True)
    async def inner(key: str, context: ToolContext) -> str:
        """Use the ports from inside."""
        answer = await context.model.ask(f"What of {key}?")
        await context.tools.call("read", key=key)
        return answer.text

    return [read, write, fail, pay, inner]


def _turns(chance: random.Random, names: list[str]) -> list[Any]:
    turns = [_turn(chance, names) for _ in range(chance.randint(0, 9))]
    return [
        *turns,
        chance.choice([text("The end."), call("final-answer", output="42"), error("gone")]),
        *[text("on")] * 3,
    ]


def _turn(chance: random.Random, names: list[str]) -> Turn:
    kind = chance.random()
    if kind < 0.12:
        return error("busy", retryable=True)
    if kind < 0.16:
        return text("", usage=_usage(chance))
    return calls(*(_call(chance, names) for _ in range(chance.randint(1, 4))), usage=_usage(chance))


def _usage(chance: random.Random) -> Usage:
    read = chance.randint(1, 900)
    return Usage(
        input_tokens=read, output_tokens=chance.randint(1, 64), cache_read_tokens=chance.choice((0, read // 2))
    )


def _call(chance: random.Random, names: list[str]) -> Turn:
    name = chance.choice([*names, *names, "nothing"])
    if name == "child":
        return call(name, task=chance.choice(KEYS))
    kind = chance.random()
    if kind < 0.05:
        return Turn(calls=(ToolCall(id="", name=name, raw_arguments='{"key": '),))
    return call(name, keys="a") if kind < 0.1 else call(name, key=chance.choice(KEYS))
