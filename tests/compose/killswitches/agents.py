"""Random trees of agents under random stacks of killswitches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import checkpoint

from playhead import Agent, Approval, Context, Execution, ToolContext, tool
from playhead.compose import killswitches as ks
from tests.compose.killswitches.provider import RandomModel

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.compose.killswitches.provider import Provider


@dataclass
class Schedule:
    """A random tree of agents, and how it is made."""

    chance: random.Random
    provider: Provider
    bound: str | None = None
    """The `prompt_bound` of all budgets."""
    counts: float | None = 1
    """Which share of a prompt's tokens its model counts before it is sent; None: it cannot count."""
    budget: ks.Budget | None = None
    """What several runs share."""
    outside: bool = False
    """Whether switches that look at the time are among the stacked."""

    def agent(self, folder: Path | None, name: str = "agent", depth: int = 0) -> Agent:
        """Return an agent, and those below it."""
        chance = self.chance
        tools: list[Any] = chance.sample(_tools(chance, self.provider), k=chance.randint(1, 4))
        for number in range(chance.choice((0, 1, 1, 2)) if depth < 2 else 0):
            below = self.agent(folder, f"{name}_{number}", depth + 1)
            tools.append(below.as_tool(read_only=chance.random() < 0.85))
        names = [each.spec.name for each in tools]
        return Agent(
            RandomModel(chance, self.provider, f"random/{name}", names, self.counts),
            name=name,
            tools=tools,
            max_iterations=chance.randint(1, 4),
            execution=Execution(retries=chance.randint(0, 2), retry_delay_s=0, max_parallel=chance.randint(1, 5)),
            context=Context(rationale=False, meta_tools=()),
            parameters=chance.choice(({}, {}, {"max_tokens": chance.choice((5, 100, 1000))})),
            compose=self._stack(depth),
            trace=folder,
        )

    def _stack(self, depth: int) -> list[Any]:
        chance, blocks = self.chance, list[Any]()
        if chance.random() < (0.75 if depth == 0 else 0.35):
            blocks.append(self._budget())
        if self.budget is not None and (depth == 0 or chance.random() < 0.2):
            blocks.append(ks.budget_limit(self.budget, prompt_bound=self.bound))  # type: ignore[arg-type]
        if chance.random() < 0.4:
            blocks.append(self._tool_limit())
        if chance.random() < 0.25:
            blocks.append(ks.circuit_breaker(chance.randint(1, 3), on_trigger=self._trigger()))
        if chance.random() < 0.2:
            blocks.append(ks.max_iterations(chance.randint(0, 3), on_trigger=self._trigger()))
        if chance.random() < 0.2:
            blocks.append(ks.stop_when(_late(chance.randint(0, 12)), on_trigger=self._trigger()))
        if chance.random() < 0.25:
            blocks.append(self._approval())
        if self.outside and chance.random() < (0.9 if depth == 0 else 0.3):
            switch = chance.choice((ks.timeout_after, ks.watchdog))
            blocks.append(switch(chance.choice((0.0005, 0.002, 0.005)), on_trigger=self._trigger()))
        chance.shuffle(blocks)
        return blocks

    def _trigger(self) -> Any:
        return self.chance.choice(("stop", "stop", "terminate"))

    def _budget(self) -> Any:
        chance, max_tokens, max_cost_usd = self.chance, None, None
        if chance.random() < 0.8:
            most = 60_000 if self.bound == "bytes" else 6_000
            max_tokens = chance.choice((0, chance.randint(0, 300), chance.randint(0, most), most))
        if max_tokens is None or chance.random() < 0.3:
            max_cost_usd = chance.choice((0, 0.01, round(chance.random() / 5, 6)))
        return ks.budget_limit(
            max_tokens=max_tokens,
            max_cost_usd=max_cost_usd,
            prompt_bound=self.bound,  # type: ignore[arg-type]
            min_output_tokens=chance.choice((1, 16, 50)),
            on_trigger=self._trigger(),
        )

    def _tool_limit(self) -> Any:
        chance = self.chance
        trigger: Any = chance.choice(("stop", "terminate", "refuse"))
        if chance.random() < 0.7:
            return ks.tool_limit({"*": chance.randint(0, 4)}, on_trigger=trigger)
        return ks.tool_limit(total=chance.randint(0, 5), on_trigger=trigger)

    def _approval(self) -> Any:
        chance = self.chance
        trigger: Any = chance.choice(("continue", "continue", "stop", "terminate"))
        return ks.require_approval_for("*", _approver(chance), on_trigger=trigger)


def _late(asked: int) -> Any:
    """Return a predicate that is true when it is asked this often."""
    left = [asked]

    async def late(_context: Any) -> bool | str:
        left[0] -= 1
        await checkpoint()
        return "asked often enough" if left[0] < 0 else False

    return late


def _approver(chance: random.Random) -> Any:
    async def approve(_request: Any) -> Any:
        for _ in range(chance.choice((0, 1, 3))):
            await checkpoint()
        if (kind := chance.random()) < 0.03:
            raise RuntimeError("nobody home")
        return True if kind < 0.9 else Approval(approved=False, why="no") if kind < 0.96 else "yes"

    return approve


def _tools(chance: random.Random, provider: Provider) -> list[Any]:
    async def body(context: ToolContext) -> None:
        provider.ran(context.owner, context.call_id, context.tool)
        for _ in range(chance.choice((0, 0, 1, 3))):
            await checkpoint()

    @tool(read_only=True)
    async def read(key: str, context: ToolContext) -> str:
        """Read."""
        await body(context)
        return key * 9

    @tool
    async def write(key: str, context: ToolContext) -> str:
        """Write."""
        await body(context)
        return key

    @tool(read_only=True)
    async def fail(key: str, context: ToolContext) -> str:
        """Fail, mostly."""
        await body(context)
        if key != "a":
            raise ValueError(key)
        return key

    @tool(read_only=True)
    async def ask(key: str, context: ToolContext) -> str:
        """Ask the model, and other tools, from inside."""
        await body(context)
        for _ in range(chance.randint(1, 2)):
            await context.model.ask(f"in {context.child_owner}")
        if key == "b":
            await context.tools.call("read" if "read" in context.scope.toolset else "fail", key="a")
        return key

    return [read, write, fail, ask]
