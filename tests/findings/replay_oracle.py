"""Random agents in a small stateful world, replays of them with other turns, and what really happens with those turns.

The truth of a replay is a run: the code that counts, on the turns of the replay, in a world of its own. Where the truth is a
matter of chance (a cache whose time is over or not, a write that lands late or not at all), it is run both ways, and an
answer is right only if it is so in both; but as long as a replay does exactly what was recorded, the recording is its truth:
that settles what its caches hold from then on.

    python -m tests.findings.replay_oracle 5000

prints how many grounded answers were wrong (each with its seed), and which share of those that hold was grounded.
"""

from __future__ import annotations

import copy
import json
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import anyio

from playhead import Agent, Approval, tool
from playhead.compose.killswitches import tool_limit
from playhead.diagnose.recording import Recording
from playhead.replay import replay as replay_recording
from playhead.replay.serving import GROUNDED
from playhead.testing import TickingClock
from playhead.trace.events import ToolCallCompleted, ToolCallStarted
from playhead.trace.types import Completion, Prices, Request, ToolCall
from tests.options import grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KEYS = ("ann@x.com", "bob@x.com", "cyd")
TASKS = ("north", "south", "east")
ROOT = "Do it."
Call = tuple[str, Any]
"""A tool's name and its arguments; a text is what the model wrote in place of arguments."""
Turn = tuple[Call, ...]
Scripts = dict[str, list[Turn]]
"""The turns of the agent that has a task, by that task."""


# --- the world ----------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """Three resources that calls read and change."""

    values: dict[str, dict[str, int]] = field(default_factory=lambda: {"orders": {}, "stock": {}, "weather": {}})
    lands: bool = True
    """Whether writes that are given up have their effect, at once, or never."""

    def seen(self, *names: str) -> Any:
        """Return resources as they are now."""
        return {name: dict(sorted(self.values[name].items())) for name in names}

    def add(self, name: str, key: str, amount: int) -> int:
        """Change a resource."""
        self.values[name][key] = self.values[name].get(key, 0) + amount
        return self.values[name][key]


@dataclass(frozen=True)
class Setting:
    """How agents of one case are made."""

    declared: bool = True
    agents: tuple[str, ...] = ()
    cached: bool | float = False
    """The cache of `forecast`."""
    budget: int | None = None
    limit: int | None = None
    changing_hook: bool = False
    redacted: bool = False
    approved_below: int | None = None
    """Amounts of refunds that the approver allows; None: nobody has to."""
    plan: tuple[str, ...] | None = None
    """The tools of the one step of a plan."""
    slow: bool = False
    schema: str = "any"
    """Type of what `label` and `half` take."""
    extra_parameter: bool = False
    honest: bool = True
    """Whether `peek` and `quote` declare what they do."""
    without: str = ""
    """A tool that is not there."""
    focus: tuple[str, ...] = ()
    """What is called; few tools in a case, so that they have to do with each other."""


TYPES: dict[str, Any] = {"any": Any, "number": float | int, "float": float, "int": int, "str": str, "union": int | str}


def tools_of(world: World, setting: Setting) -> list[Any]:  # noqa: C901 - each is a function of one line
    """Return the tools of an agent."""

    def of(**names: set[str]) -> dict[str, Any]:
        return dict(names) if setting.declared else {}

    @tool(read_only=True, **of(reads={"orders"}))
    async def get_order(key: str) -> Any:
        """Read the orders of a key."""
        return ["get_order", _who(key), world.values["orders"].get(key, 0)]

    @tool(read_only=True, key=("key",), **of(reads={"orders"}))
    async def find_order(key: str, note: str = "") -> Any:
        """Read the orders; the note is for nobody."""
        return ["find_order", _who(key), world.seen("orders")]

    @tool(read_only=True, **of(reads={"orders", "stock"} if setting.honest else {"orders"}))
    async def quote(key: str) -> Any:
        """Read what depends on two resources."""
        return ["quote", _who(key), world.seen("orders", "stock")]

    @tool(read_only=True, cache=setting.cached, **of(reads={"weather"}))
    async def forecast(key: str) -> Any:
        """Read the weather, perhaps from memory."""
        return ["forecast", _who(key), world.seen("weather")]

    @tool(read_only=True)
    async def everything() -> Any:
        """Read all there is."""
        return ["everything", world.seen(*world.values)]

    @tool(**of(writes={"orders"}))
    async def put_order(key: str, amount: int) -> Any:
        """Add an order."""
        return ["put_order", _who(key), world.add("orders", key, amount)]

    @tool(**of(writes={"weather"}))
    async def set_weather(key: str, amount: int = 1) -> Any:
        """Change the weather."""
        return ["set_weather", _who(key), world.add("weather", key, amount)]

    @tool(**of(reads={"orders"}, writes={"stock"}))
    async def restock(key: str) -> Any:
        """Change the stock by what the orders are."""
        return ["restock", _who(key), world.add("stock", key, 1 + world.values["orders"].get(key, 0))]

    @tool
    async def reset(key: str) -> Any:
        """Change whatever it likes, undeclared."""
        for values in world.values.values():
            values.pop(key, None)
        return ["reset", _who(key)]

    @tool(read_only=not setting.honest, **(of(reads={"orders"}) if not setting.honest else of(writes={"orders"})))
    async def peek(key: str) -> Any:
        """Read an order and, if it lies, add one."""
        return ["peek", _who(key), world.add("orders", key, 1)]

    @tool(requires_approval=setting.approved_below is not None, **of(writes={"orders"}))
    async def refund(key: str, amount: int) -> Any:
        """Take an order back."""
        return ["refund", _who(key), world.add("orders", key, -amount)]

    @tool(timeout=0.01, **of(writes={"stock"}))
    async def slow_put(key: str) -> Any:
        """Be given up, and do it all the same, or not."""
        if world.lands:
            world.add("stock", key, 7)
        await anyio.sleep(30)

    made = [get_order, find_order, quote, forecast, everything, put_order, set_weather, restock, reset, peek, refund]
    made += [_label(setting), _half(setting), *([slow_put] if setting.slow else [])]
    if setting.extra_parameter:
        made[0] = _more(world, setting)
    return [each for each in made if each.spec.name != setting.without]


def _who(key: str) -> Any:
    """Return what tells keys apart also where their names are redacted."""
    return KEYS.index(key) if key in KEYS else key


def _label(setting: Setting) -> Any:
    async def label(value: Any) -> str:
        """Show a value."""
        return repr(value)

    label.__annotations__["value"] = TYPES[setting.schema]
    return tool(read_only=True, reads=set())(label)


def _half(setting: Setting) -> Any:
    async def half(value: Any) -> str:
        """Divide a number by two, of one kind or another."""
        return f"{type(value).__name__} {value!r}"

    half.__annotations__["value"] = float | int if setting.schema == "any" else TYPES[setting.schema]
    return tool(read_only=True, reads=set())(half)


def _more(world: World, setting: Setting) -> Any:
    async def get_order(key: str, limit: int = 5) -> Any:
        """Read the orders of a key, at most so many."""
        return ["get_order", _who(key), min(limit, world.values["orders"].get(key, 0))]

    return tool(read_only=True, reads={"orders"} if setting.declared else None)(get_order)


class ScriptsModel:
    """Answers each agent by its task, and each of its requests by its number."""

    name = "scripted/model"
    secrets: Mapping[str, str] = {}

    def __init__(self, scripts: Scripts, setting: Setting) -> None:
        self._scripts = scripts
        self._setting = setting

    async def prices(self) -> Prices | None:
        """Cost nothing."""
        return Prices(input_usd=0.0, output_usd=0.0)

    async def complete(self, request: Request) -> Completion:
        """Give the turn of this number, and an answer after the last."""
        text = " ".join(str(each.content) for each in request.messages if each.role == "user")
        task = next((name for name in TASKS if name in text), ROOT)
        number, plan = request.number, self._setting.plan if task == ROOT else None
        if plan is not None and number == 0:
            step = {"id": "s1", "type": "composite", "instruction": "look", "tool_hints": list(plan)}
            return Completion(text=json.dumps({"steps": [step]}), cost_usd=0.0, model=self.name)
        script = self._scripts.get(task, [])
        at = number - (plan is not None)
        turn = script[at] if at < len(script) else ()
        done = '{"reason": "ok", "satisfied": true}' if plan is not None else f"{task} is done"
        return Completion(text="" if turn else done, tool_calls=tuple(map(_asked, turn)), cost_usd=0.0, model=self.name)


def _asked(call: Call) -> ToolCall:
    name, arguments = call
    if isinstance(arguments, str):
        return ToolCall(id="", name=name, raw_arguments=arguments)
    return ToolCall(id="", name=name, arguments=copy.deepcopy(arguments))


def agent_of(world: World, setting: Setting, scripts: Scripts) -> Agent:
    """Return the agent of a case."""
    model = ScriptsModel(scripts, setting)
    approver = None if setting.approved_below is None else partial(_approve, setting.approved_below)
    common: dict[str, Any] = {
        "rationale": False,
        "meta_tools": (),
        "max_iterations": 14,
        "trace": None,
        "approver": approver,
    }
    own = tools_of(world, setting)
    below = []
    for name in setting.agents:
        reads = [each for each in own if each.spec.read_only or each.spec.name == "peek"]
        common["approver"] = None if name.startswith("reader") else approver
        below.append(Agent(model, **grouped(name=name, tools=reads if name.startswith("reader") else own, **common)))
    common["approver"] = approver
    if setting.budget is not None:
        common["tool_budgets"] = {"get_order": setting.budget, "put_order": setting.budget}
    if setting.plan is not None:
        common["strategy"] = "plan-execute-reflect"
    return Agent(
        model,
        **grouped(
            tools=[*own, *below],
            clock=TickingClock,
            redact=[lambda text: re.sub(r"\w+@[\w.]+", "[email]", text)] if setting.redacted else [],
            compose=[
                *([tool_limit("find_order", setting.limit, on_trigger="refuse")] if setting.limit is not None else []),
                *([_changing] if setting.changing_hook else []),
            ],
            **common,
        ),
    )


async def _approve(below: int, request: Any) -> Approval:
    return Approval(approved=request.arguments["amount"] < below)


def _changing(harness: Any) -> None:
    """Make other calls of some: two for one, and what Cyd asks for is Ann's."""

    def change(call: ToolCall, _: Any) -> ToolCall | None:
        arguments = dict(call.arguments or {})
        if arguments.get("amount") in (1, 2):
            arguments["amount"] += 1
        if arguments.get("key") == "cyd":
            arguments["key"] = "ann@x.com"
        return call.model_copy(update={"arguments": arguments}) if arguments != call.arguments else None

    harness.on("tool.call", change)


async def run(setting: Setting, scripts: Scripts, *, lands: bool = True) -> tuple[Any, ...]:
    """Run an agent for real, and return its records."""
    records: list[Any] = []
    agent = agent_of(World(lands=lands), setting, scripts)
    agent.subscribe(None, records.append)
    await agent.run(ROOT)
    return tuple(records)


# --- random cases -------------------------------------------------------------------------------------------------------


def random_setting(chance: random.Random) -> Setting:
    """Return how the agents of a case are made."""
    return Setting(
        declared=chance.random() < 0.8,
        agents=chance.choice([(), (), (), ("reader",), ("writer",), ("reader", "writer")]),
        cached=chance.choice([False, True, True, 0.004, 0.02]),
        budget=chance.choice([None, None, None, 1, 2]),
        limit=chance.choice([None, None, None, 1, 2]),
        changing_hook=chance.random() < 0.2,
        redacted=chance.random() < 0.25,
        approved_below=chance.choice([None, None, 2, 3]),
        plan=tuple(chance.sample(NAMES, 6)) if chance.random() < 0.1 else None,
        slow=chance.random() < 0.06,
        schema=chance.choice(list(TYPES)),
        focus=(*chance.sample(WEIGHTED, 4), *chance.choice(PAIRS)),
    )


def changed_setting(chance: random.Random, setting: Setting) -> Setting:
    """Return the code as it is now: it may declare other things, but what it declares is true."""
    changes: dict[str, Any] = {}
    if chance.random() < 0.4:
        changes["schema"] = chance.choice(list(TYPES))
    if chance.random() < 0.2:
        changes["extra_parameter"] = True
    if chance.random() < 0.2:
        changes["cached"] = chance.choice([False, True])
    if chance.random() < 0.2:
        changes["budget"] = chance.choice([None, 1, 3])
    if chance.random() < 0.2:
        changes["limit"] = chance.choice([None, 1])
    if chance.random() < 0.1:
        changes["without"] = chance.choice(["quote", "set_weather"])
    if chance.random() < 0.2:
        changes["changing_hook"] = not setting.changing_hook
    return replace(setting, honest=True, **changes)


NAMES = ["get_order", "find_order", "quote", "forecast", "put_order", "set_weather", "restock", "peek", "refund"]
WEIGHTED = [*NAMES, "get_order", "find_order", "forecast", "quote", "everything", "reset", "label", "half", "nothing"]


PAIRS = [("forecast", "set_weather"), ("get_order", "put_order"), ("quote", "restock"), ("find_order", "peek")]


def random_scripts(chance: random.Random, setting: Setting) -> Scripts:
    """Return the turns of all agents."""
    scripts = {ROOT: [random_turn(chance, setting, setting.agents) for _ in range(chance.randint(2, 8))]}
    for task in TASKS:
        scripts[task] = [random_turn(chance, setting, ()) for _ in range(chance.randint(0, 3))]
    return scripts


def random_turn(chance: random.Random, setting: Setting, agents: tuple[str, ...]) -> Turn:
    """Return the calls of a turn."""
    return tuple(random_call(chance, setting, agents) for _ in range(chance.choice([1, 1, 1, 2, 3])))


def random_call(chance: random.Random, setting: Setting, agents: tuple[str, ...]) -> Call:
    """Return a call: of an agent, or of a tool with arguments that may be wrong, broken or of an unexpected type."""
    if agents and chance.random() < 0.25:
        return chance.choice(agents), {"task": chance.choice(TASKS[:2])}
    name = chance.choice([*setting.focus, *(["slow_put", "quote"] if setting.slow else [])])
    if name == "everything":
        return name, {}
    if name in ("label", "half"):
        return name, {"value": chance.choice([0, 1, 1.0, -0.0, "1", 2.5, True])}
    arguments: dict[str, Any] = {"key": chance.choice(KEYS[:2] if chance.random() < 0.7 else KEYS)}
    if name in ("put_order", "refund") or (name == "set_weather" and chance.random() < 0.5):
        arguments["amount"] = chance.choice([1, 2, 3, 3, "2", "many"])
    if name == "find_order" and chance.random() < 0.6:
        arguments["note"] = chance.choice(["", "x", "y"])
    if chance.random() < 0.05:
        return name, json.dumps(arguments)[:-1] + ",}"
    return name, arguments


def perturbed(chance: random.Random, setting: Setting, scripts: Scripts) -> Scripts:
    """Return the turns with calls and turns added, dropped, moved and altered."""
    changed = {task: list(turns) for task, turns in scripts.items()}
    for _ in range(chance.choice([1, 1, 2, 3, 4])):
        task = chance.choice([ROOT, ROOT, ROOT, *TASKS])
        _perturb(chance, setting, changed[task], setting.agents if task == ROOT else ())
    return changed


def _perturb(chance: random.Random, setting: Setting, turns: list[Turn], agents: tuple[str, ...]) -> None:
    place = chance.randrange(len(turns)) if turns else 0
    kind = chance.choice(["add", "drop", "swap", "swap", "shift", "again", "call", "call", "alter", "split", "join"])
    if kind == "add" or not turns:
        turns.insert(place, random_turn(chance, setting, agents))
    elif kind == "drop":
        del turns[place]
    elif kind == "swap":
        other = chance.randrange(len(turns))
        turns[place], turns[other] = turns[other], turns[place]
    elif kind == "shift":
        turns.insert(chance.randrange(len(turns)), turns.pop(place))
    elif kind == "again":
        turns.insert(chance.randint(0, len(turns)), turns[place])
    elif kind == "join" and place + 1 < len(turns):
        turns[place : place + 2] = [(*turns[place], *turns[place + 1])]
    elif kind == "split":
        turns[place : place + 1] = [(each,) for each in turns[place]]
    else:
        calls = list(turns[place])
        at = chance.randrange(len(calls))
        calls[at : at + (kind != "call")] = [random_call(chance, setting, agents)]
        turns[place] = tuple(calls)


# --- the oracle ---------------------------------------------------------------------------------------------------------


Place = tuple[str, int | None, int]
"""Owner, turn and position."""


@dataclass
class Judged:
    """What the oracle found."""

    replays: int = 0
    wrong: list[str] = field(default_factory=list)
    rungs: Counter[str] = field(default_factory=Counter)
    hold: int = 0
    """Answers that were recorded, and are still true where they are asked for."""
    grounded: int = 0
    """Those of them that were served as grounded."""
    lost: Counter[str] = field(default_factory=Counter)
    """Tools and rungs of the others."""

    def __str__(self) -> str:
        share = self.grounded / max(1, self.hold)
        return (
            f"{self.replays:,} replays, {sum(self.rungs.values()):,} calls served: {len(self.wrong)} wrong ones as grounded; "
            f"of {self.hold:,} recorded answers that still hold {share:.1%} grounded"
        )


def ended(records: tuple[Any, ...]) -> dict[Place, tuple[ToolCallStarted, ToolCallCompleted]]:
    """Return the calls of a run that are over, by their place."""
    started = {(r.owner, r.event.call_id): r for r in records if isinstance(r.event, ToolCallStarted)}
    found = {}
    for record in records:
        if isinstance(record.event, ToolCallCompleted):
            began = started[record.owner, record.event.call_id]
            found[record.owner, began.iteration, began.event.position] = (began.event, record.event)
    return found


def said(completed: ToolCallCompleted) -> Any:
    """Return what a call answered."""
    return completed.ok, completed.result, None if completed.error is None else completed.error.message


def course(records: tuple[Any, ...]) -> list[Any]:
    """Return the calls of a run, in the order in which they started."""
    return [
        (r.owner, r.iteration, r.event.position, r.event.tool, r.event.args, r.event.args_fingerprint)
        for r in records
        if isinstance(r.event, ToolCallStarted)
    ]


def judge(
    judged: Judged,
    case: str,
    recorded: tuple[Any, ...],
    served: tuple[Any, ...],
    truths: list[Any],
    held: int = 0,
) -> None:
    """Compare every answer of a replay with what really happens; in the first `held` of the truths no cache's time is over."""
    judged.replays += 1
    same = 0
    now, then = course(served), course(recorded)
    while same < min(len(now), len(then)) and repr(now[same]) == repr(then[same]):
        same += 1
    as_recorded = {each[:3] for each in now[:same]}
    truths = [_settled(truth, recorded, as_recorded) for truth in truths[:held]] + truths[held:]
    left: Counter[str] = Counter()
    for began, over in ended(recorded).values():
        if _is_answer(over):
            left[_named(began, said(over))] += 1
    for place, (began, over) in ended(served).items():
        if over.rung is None:
            continue
        judged.rungs[over.rung] += 1
        real = [truth[place] for truth in truths if place in truth]
        answers = {repr(said(each)) for _, each in real}
        if over.rung in GROUNDED and place in as_recorded and len(truths) > 1:
            answers.add(repr(said(ended(recorded)[place][1])))
            right = repr(said(over)) in answers
        else:
            right = len(real) == len(truths) and answers == {repr(said(over))}
        if over.rung in GROUNDED and not right:
            judged.wrong.append(f"{case} {place} {over.tool} {began.args}: {said(over)} instead of {answers}")
        name = _named(real[0][0], said(real[0][1])) if len(answers) == 1 and real else ""
        if left[name]:
            left[name] -= 1
            judged.hold += 1
            judged.grounded += over.rung in GROUNDED
            if over.rung not in GROUNDED:
                judged.lost[f"{over.tool} {over.rung}"] += 1


def _settled(truth: dict[Place, Any], recorded: tuple[Any, ...], as_recorded: set[Any]) -> dict[Place, Any]:
    """Return a truth with what the caches hold that did as they did in the recording as far as that is followed, and last since."""
    memory = {
        (place[0], _named(began, "")): (began, over)
        for place, (began, over) in ended(recorded).items()
        if place in as_recorded and over.tool == "forecast" and over.ok
    }
    return {
        place: each if place in as_recorded else memory.get((place[0], _named(each[0], "")), each)
        for place, each in truth.items()
    }


def _is_answer(over: ToolCallCompleted) -> bool:
    return over.ended in (None, "timeout")


def _named(began: ToolCallStarted, what: Any) -> str:
    return repr((began.tool, began.args, began.args_fingerprint, what))


class Made(NamedTuple):
    """A case as it is recorded."""

    setting: Setting
    scripts: Scripts
    with_code: bool


def made(seed: int) -> Made:
    """Return what is recorded of a case."""
    chance = random.Random(f"recorded {seed}")
    setting = random_setting(chance)
    with_code = chance.random() < 0.5 or setting.redacted or setting.changing_hook
    honest = not with_code or chance.random() < 0.8
    setting = replace(setting, honest=honest)
    return Made(setting, random_scripts(chance, setting), with_code)


async def case(judged: Judged, seed: int) -> None:
    """Record an agent, replay it with other turns, and judge what was served."""
    chance = random.Random(f"replayed {seed}")
    setting, scripts, with_code = made(seed)
    recorded = await run(setting, scripts)
    other = perturbed(chance, setting, scripts)
    code = changed_setting(chance, setting) if with_code and chance.random() < 0.6 else setting
    code = replace(code, honest=True)
    options: dict[str, Any] = {"on_missing": chance.choice(["lenient", "lenient", "lenient", "strict", _simulate])}
    if with_code:
        options["agent"] = agent_of(World(), code, other)
        options["on_missing"] = chance.choice([options["on_missing"], options["on_missing"], "live"])
    else:
        options["overrides"] = {"model": ScriptsModel(other, setting)}
    result = await replay_recording(recording_of(recorded), trace=None, min_grounded=0.0, **options)
    truths = [ended(await run(variant, other, lands=lands)) for variant, lands in variants(code)]
    held = 0 if isinstance(code.cached, bool) else len(truths) // 2
    judge(judged, f"seed {seed}:", recorded, result.recording.records, truths, held)


def recording_of(records: tuple[Any, ...]) -> Recording:
    """Return records as a recording without a file."""
    return Recording(Path("recorded.jsonl"), records, ())


def _simulate(missed: Any) -> Any:
    return f"{missed.tool} of a function"


def variants(setting: Setting) -> Iterator[tuple[Setting, bool]]:
    """Yield the ways in which chance may have it."""
    timed = not isinstance(setting.cached, bool)
    for cached in (True, False) if timed else (setting.cached,):
        for lands in (True, False) if setting.slow else (True,):
            yield replace(setting, cached=cached), lands


async def campaign(seeds: range, judged: Judged | None = None) -> Judged:
    """Judge many cases."""
    judged = Judged() if judged is None else judged
    with patch("playhead.replay.engine.diff_recordings", lambda *_: SimpleNamespace(identical=False)):
        for seed in seeds:
            await case(judged, seed)
    return judged


def main() -> None:
    """Judge as many replays as the command line says."""
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    judged = anyio.run(campaign, range(first, first + int(sys.argv[1])))
    told = [*judged.wrong, str(dict(judged.rungs)), str(judged.lost.most_common(20)), str(judged)]
    sys.stdout.write("\n".join(told) + "\n")
    sys.exit(bool(judged.wrong) or judged.grounded < 0.85 * judged.hold)


if __name__ == "__main__":
    main()
