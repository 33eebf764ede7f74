"""A small stateful world, agents that work in it on random scripts, and the oracle that says what is true in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import Agent, tool
from playhead.errors import ModelRequestError
from playhead.testing import TickingClock
from playhead.trace.events import AgentStarted, ToolCallCompleted, ToolCallStarted
from playhead.trace.recording import Recording
from playhead.trace.types import Completion, Prices, Request, ToolCall

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from playhead.replay import ReplayResult

KEYS = ("a", "b", "c")
READS = ("get", "find")
WRITES = ("put", "increment")
TASKS = ("north", "south")
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
        below.append(Agent(model, name=name, tools=chosen, **common))
    tools = [*store_tools("root").values(), *below]
    return Agent(model, tools=tools, clock=TickingClock, **{**common, **options})


async def record_store(scripts: Scripts, agents: tuple[str, ...]) -> Recording:
    """Run an agent for real, and return what was recorded."""
    records: list[Any] = []
    agent = store_agent(Store(), scripts, agents)
    agent.subscribe(None, records.append)
    result = await agent.run("Do it.")
    return Recording(Path(f"{result.run_id}.jsonl"), tuple(records), ())


# --- random scripts and changes of them -----------------------------------------------------------------------------


def random_scripts(chance: random.Random) -> tuple[Scripts, tuple[str, ...]]:
    """Return scripts, and the agents that they call."""
    agents = chance.choice([(), (), ("reader",), ("writer",), ("reader", "writer")])
    scripts = {"Do it.": [random_turn(chance, agents) for _ in range(chance.randint(1, 6))]}
    for task in ("north", "south", "east"):
        scripts[task] = [random_turn(chance, ()) for _ in range(chance.randint(0, 3))]
    return scripts, agents


def random_turn(chance: random.Random, agents: tuple[str, ...]) -> Turn:
    """Return the calls of a turn."""
    return tuple(random_call(chance, agents) for _ in range(chance.choice([1, 1, 1, 2, 3])))


def random_call(chance: random.Random, agents: tuple[str, ...]) -> Call:
    """Return a call."""
    if agents and chance.random() < 0.35:
        return chance.choice(agents), {"task": chance.choice(TASKS)}
    name = chance.choice(["get", "get", "find", "find", "find", "put", "increment"])
    arguments: dict[str, Any] = {"key": chance.choice(KEYS)}
    if name == "put":
        arguments["value"] = chance.randint(1, 3)
    if name == "find" and chance.random() < 0.5:
        arguments["note"] = chance.choice(["", "x", "y"])
    return name, arguments


def perturbed(chance: random.Random, scripts: Scripts, agents: tuple[str, ...]) -> Scripts:
    """Return the scripts with calls and turns added, dropped, put elsewhere and altered."""
    changed = {task: list(turns) for task, turns in scripts.items()}
    for _ in range(chance.randint(1, 4)):
        task = chance.choice(["Do it.", "Do it.", *changed])
        _perturb(chance, changed[task], agents if task == "Do it." else ())
    return changed


def _perturb(chance: random.Random, turns: list[Turn], agents: tuple[str, ...]) -> None:
    kinds = ["add turn", "drop turn", "swap turns", "add call", "drop call", "shuffle", "alter", "task", "note", "note"]
    kind = chance.choice(kinds)
    place = chance.randrange(len(turns)) if turns else 0
    if kind == "add turn" or not turns:
        turns.insert(place, random_turn(chance, agents))
    elif kind == "drop turn":
        del turns[place]
    elif kind == "swap turns":
        other = chance.randrange(len(turns))
        turns[place], turns[other] = turns[other], turns[place]
    else:
        calls = list(turns[place])
        _perturb_turn(chance, kind, calls, agents)
        turns[place] = tuple(calls)


def _perturb_turn(chance: random.Random, kind: str, calls: list[Call], agents: tuple[str, ...]) -> None:
    if kind == "add call":
        calls.insert(chance.randint(0, len(calls)), random_call(chance, agents))
    elif kind == "drop call" and len(calls) > 1:
        del calls[chance.randrange(len(calls))]
    elif kind == "shuffle":
        chance.shuffle(calls)
    elif kind == "task":
        calls[:] = [(name, {"task": "east"}) if "task" in arguments else (name, arguments) for name, arguments in calls]
    elif kind == "note":
        calls[:] = [
            (name, {**arguments, "note": "z"}) if name == "find" else (name, arguments) for name, arguments in calls
        ]
    else:
        calls[chance.randrange(len(calls))] = random_call(chance, agents)


# --- the oracle -----------------------------------------------------------------------------------------------------


@dataclass
class Judged:
    """What the oracle found in a replay."""

    wrong: list[str] = field(default_factory=list)
    rungs: list[str] = field(default_factory=list)


def judge(records: tuple[Any, ...]) -> Judged:
    """Follow a replay call by call in a world of its own: every grounded answer has to be what that world says.

    A call that got no recording did nothing; one that was served did what it says, whatever its rung.
    """
    store, judged, names, asked = Store(), Judged(), {"root": "root"}, {}
    for record in records:
        event = record.event
        if isinstance(event, AgentStarted):
            names[record.owner] = f"{names[event.parent]}/{event.agent.name}"
        elif isinstance(event, ToolCallStarted):
            asked[record.owner, event.call_id] = event.args
        elif isinstance(event, ToolCallCompleted) and (event.tool in READS + WRITES or event.rung is not None):
            if event.rung is None:
                assert event.ended == "cancelled" or (event.error is not None and event.error.type == "UnknownTool")
                continue
            judged.rungs.append(event.rung)
            if event.rung == "synthetic-error":
                assert not event.ok
                continue
            truth = store.answer(names[record.owner], event.tool, asked[record.owner, event.call_id])
            if event.rung in ("exact", "reordered", "normalised") and event.result != truth:
                judged.wrong.append(f"{record.owner} {event.tool} {event.call_id}: {event.result} instead of {truth}")
    return judged


def root_rungs(result: ReplayResult) -> list[tuple[str, str | None, Any]]:
    """Return tool, rung and result or error of every call of the root, in the order of the file."""
    done = (each.completed for each in result.recording.root.calls.values())
    return [(each.tool, each.rung, each.result if each.ok else each.error and each.error.type) for each in done if each]
