"""A small stateful world, and agents that work in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent, tool
from playhead.errors import ModelRequestError
from playhead.testing import TickingClock
from playhead.trace.recording import Recording
from playhead.trace.types import Completion, Prices, Request, ToolCall
from tests.options import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.replay import ReplayResult

READS = ("get", "find")
Call = tuple[str, dict[str, Any]]
Turn = tuple[Call, ...]
Scripts = dict[str, list[Turn]]
"""The turns of the agent that has a task, by that task; `Do it.` is the root's."""


class ScriptsModel:
    """Answers each agent by its task, and each of its requests by its number."""

    name = "scripted/model"
    secrets: Mapping[str, str] = {}

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def prices(self) -> Prices | None:
        """Cost nothing."""
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:
        """Give the turn of this number, and an answer after the last."""
        task = next(str(each.content) for each in request.messages if each.role == "user")
        script = self._scripts.get(task)
        if script is None:
            raise ModelRequestError(f"nobody has the task {task!r}")
        turn = script[request.number] if request.number < len(script) else ()
        made = tuple(ToolCall(id="", name=name, arguments=arguments) for name, arguments in turn)
        return Completion(text="" if made else f"{task} is done", tool_calls=made, cost_usd=0.0, model=self.name)


@dataclass
class Store:
    """Numbers by key, which calls read and change, and what every call returned."""

    values: dict[str, int] = field(default_factory=dict)
    ran: int = 0

    def answer(self, agent: str, name: str, arguments: Mapping[str, Any]) -> Any:
        """Do what a call asks for, and return what it returns; agents see numbers of their own."""
        key = f"{agent}:{arguments['key']}" if name == "find" else arguments["key"]
        self.ran += 1
        if name == "put":
            self.values[key] = arguments["value"]
        elif name == "increment":
            self.values[key] = self.values.get(key, 0) + 1
        return [agent, name, key, self.values.get(key, 0), sum(self.values.values())]


_current = [Store()]
"""The store that is in use: making tools takes longer than running them, so they are made once."""


@cache
def store_tools(agent: str) -> dict[str, Any]:
    """Return the tools of one agent."""

    @tool(read_only=True)
    async def get(key: str) -> Any:
        """Get a number."""
        return _current[0].answer(agent, "get", {"key": key})

    @tool(read_only=True, key=("key",))
    async def find(key: str, note: str = "") -> Any:
        """Get a number; the note is for nobody."""
        return _current[0].answer(agent, "find", {"key": key})

    @tool
    async def put(key: str, value: int) -> Any:
        """Put a number."""
        return _current[0].answer(agent, "put", {"key": key, "value": value})

    @tool
    async def increment(key: str) -> Any:
        """Add one."""
        return _current[0].answer(agent, "increment", {"key": key})

    return {"get": get, "find": find, "put": put, "increment": increment}


def store_agent(store: Store, scripts: Scripts, agents: tuple[str, ...], **options: Any) -> Agent:
    """Return an agent with a store, and with agents below it: `reader…` only read, the others write too."""
    _current[0] = store
    model = ScriptsModel(scripts)
    common: dict[str, Any] = {"rationale": False, "meta_tools": (), "max_iterations": 12, "trace": None}
    below = []
    for name in agents:
        own = store_tools(f"root/{name}")
        chosen = [own[each] for each in (READS if name.startswith("reader") else own)]
        below.append(Agent(model, **grouped(name=name, tools=chosen, **common)))
    tools = [*store_tools("root").values(), *below]
    return Agent(model, **grouped(tools=tools, clock=TickingClock, **{**common, **options}))


async def record_store(scripts: Scripts, agents: tuple[str, ...]) -> Recording:
    """Run an agent for real, and return what was recorded."""
    records: list[Any] = []
    agent = store_agent(Store(), scripts, agents)
    agent.subscribe(None, records.append)
    result = await agent.run("Do it.")
    return Recording(Path(f"{result.run_id}.jsonl"), tuple(records), ())


def root_rungs(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return tool, rung and result or error of every call of the root, in the order of the file."""
    done = (each.completed for each in result.recording.root.calls.values())
    return [(each.tool, each.rung, each.result if each.ok else each.error and each.error.type) for each in done if each]
