"""A small stateful world, and an agent that works in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent, tool
from playhead.diagnose.recording import Recording
from playhead.errors import ModelRequestError
from playhead.testing import TickingClock
from playhead.trace.types import Completion, Prices, Request, ToolCall
from tests.options import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.replay import ReplayResult

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
    """Numbers by key, which calls read and change."""

    values: dict[str, int] = field(default_factory=dict)

    def answer(self, name: str, key: str, value: int | None = None) -> Any:
        """Do what a call asks for, and return what it returns."""
        if value is not None:
            self.values[key] = value
        return [name, key, self.values.get(key, 0), sum(self.values.values())]


def store_tools(store: Store) -> list[Any]:
    """Return the tools of a store."""

    @tool(read_only=True)
    async def get(key: str) -> Any:
        """Get a number."""
        return store.answer("get", key)

    @tool(read_only=True, key=("key",))
    async def find(key: str, note: str = "") -> Any:
        """Get a number; the note is for nobody."""
        return store.answer("find", key)

    @tool
    async def put(key: str, value: int) -> Any:
        """Put a number."""
        return store.answer("put", key, value)

    return [get, find, put]


async def record_store(scripts: Scripts) -> Recording:
    """Run an agent with a store for real, and return what was recorded."""
    records: list[Any] = []
    options: dict[str, Any] = {"rationale": False, "meta_tools": (), "trace": None, "clock": TickingClock}
    agent = Agent(ScriptsModel(scripts), **grouped(tools=store_tools(Store()), **options))
    agent.subscribe(None, records.append)
    result = await agent.run("Do it.")
    return Recording(Path(f"{result.run_id}.jsonl"), tuple(records), ())


def root_rungs(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return tool, rung and result or error of every call of the root, in the order of the file."""
    done = (each.completed for each in result.recording.root.calls.values())
    return [(each.tool, each.rung, each.result if each.ok else each.error and each.error.type) for each in done if each]
