"""Agents that are declared by data, so that a change can be planted in any of it: at any depth, in settings and in code.

`python -m tests.findings.declarations 500` plants that many changes and says how many `reproduce(agent=)` notices.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead import Agent, UsageError, tool
from playhead.compose import killswitches
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Message
from tests.findings.adapter import reproduce, run
from tests.options import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# --- code ---------------------------------------------------------------------------------------------------------------

Change = tuple[str, "Callable[[], object]"]
"""What is changed, and what changes it."""
Code = tuple[str, int]
"""Where a function holds a number that changes, and the number."""
HOW: Final[dict[str, str]] = {
    "body": "def made({args}):\n    number = {n}\n    return {result}\n",
    "branch": "def made({args}):\n    if {n} > 100:\n        return None\n    return {result}\n",
    "helper": "def helper(value):\n    return value * {n}\n\ndef made({args}):\n    helper(1)\n    return {result}\n",
    "constant": "LIMIT = {n}\n\ndef made({args}):\n    number = LIMIT\n    return {result}\n",
    "nested": "def made({args}):\n    def inner():\n        return {n}\n    inner()\n    return {result}\n",
    "closure": "def outer(number):\n    def inner({args}):\n        number\n        return {result}\n    return inner\nmade = outer({n})\n",
    "decorated": (
        "import functools\n\ndef times(number):\n    def wrap(function):\n        @functools.wraps(function)\n"
        "        def wrapped(*given, **named):\n            number\n            return function(*given, **named)\n"
        "        return wrapped\n    return wrap\n\n@times({n})\ndef made({args}):\n    return {result}\n"
    ),
}
MORE: Final[dict[str, str]] = {
    "lambda": "made = lambda {names}: ({n}, {result})[1]\n",
    "default": "def made({names}, number={n}):\n    return {result}\n",
    "partial": "import functools\n\ndef given(number, {names}):\n    return {result}\nmade = functools.partial(given, {n})\n",
    "object": (
        "class Made:\n    def __init__(self, number):\n        self.number = number\n        self.calls = 0\n\n"
        "    def __call__(self, {names}):\n        self.calls += 1\n        return {result}\nmade = Made({n})\n"
    ),
    "method": (
        "class Made:\n    def other(self):\n        return {n}\n\n    def asked(self, {names}):\n        self.other()\n"
        "        return {result}\nmade = Made().asked\n"
    ),
    "base class": (
        "class Base:\n    number = {n}\n\nclass Made(Base):\n    def __call__(self, {names}):\n        return {result}\nmade = Made()\n"
    ),
}
"""For functions whose parameters nobody reads; those of tools are their schema."""
_folder: list[Path] = []
_loaded: dict[str, Any] = {}


def use_folder(folder: Path) -> None:
    """Say where the files with the code are written."""
    _folder[:] = [folder]


def load(source: str) -> Any:
    """Return what a file of this source makes, loaded anew each time, as another process would."""
    name = f"made_{len(_loaded)}"
    path = _folder[0] / f"{name}.py"
    _loaded[path.name] = source
    path.write_text(source)
    os.utime(path, (0, 0))  # as old as the file of a process that begins
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.made


def code(value: Code, args: str, result: str) -> Any:
    """Return a function of these parameters, with its number where `value` says."""
    how, number = value
    names = ", ".join(each.partition(":")[0] for each in args.split(", "))
    return load({**HOW, **MORE}[how].format(args=args, names=names, result=result, n=number))


def codes(chance: random.Random, *, of_tool: bool = False) -> Code:
    """Choose where a function holds its number."""
    return chance.choice([*HOW] if of_tool else [*HOW, *MORE]), 1


# --- settings -----------------------------------------------------------------------------------------------------------

CODE: Final[dict[str, tuple[str, str]]] = {
    "approver": ("request", "True"),
    "done_when": ("output", "True"),
}
"""Parameters of `Agent` that take a function."""
ENVIRONMENT: Final = {"trace", "clock"}
"""Parameters that say where an agent runs, and nothing of what it does."""
ELSEWHERE: Final = {"model", "name", "tools", "compose", *CODE, "validators", "redact", "output_type"}
EXAMPLES: Final = (Message(id=0, role="user", content="Hi"), Message(id=1, role="assistant", content="Yes?"))
OPTIONS: Final[dict[str, list[Any]]] = {
    "description": ["Helps.", "Helps much."],
    "strategy": ["reactive", "direct", "reflexion", "chain-of-thought", "autonomous"],
    "strategy_settings": [None],
    "system_prompt": [None, "Be brief.", "Be brief. ", "Be long."],
    "facts": [{}, {"today": "Monday"}, {"today": "Tuesday"}, {"day": "Monday"}],
    "examples": [(), EXAMPLES, EXAMPLES[:1]],
    "parameters": [None, {"temperature": 0}, {"temperature": 0.5}, {"temperature": 0, "seed": 1}, {"x_tenant": "a"}, {"x_tenant": "b"}],
    "record_parameters": [(), ("metadata",)],
    "max_iterations": [None, 7, 8],
    "retries": [2, 3],
    "retry_delay_s": [0.5, 0.25],
    "max_parallel": [3, 2, 1],
    "rationale": [None, False],
    "required_tools": [(), ("lookup",), {"lookup": 2}],
    "required_retries": [2, 1],
    "infer_required": [False, True],
    "tool_budgets": [None, {"lookup": 5}, {"lookup": 6}],
    "novelty": [None, 0.1, 0.2],
    "compression": [None, True, {"budget": 900}, {"budget": 950}],
    "profile": [None, "local", "mid", "large", "frontier"],
    "max_tokens": [None, 9000, 9001],
    "meta_tools": [None, ("final-answer", "recall"), ()],
    "fallbacks": [(), ("second",), ("second", "third"), ("third", "second")],
    "fallback_after": [None, 1, 2],
    "output_retries": [2, 1],
    "verify": [None, "reflect", "loop"],
    "min_iterations": [0, 1],
    "loop_detection": [None, True, {"identical_calls": 4}, {"identical_calls": 5}],
    "switching": [None, True, {"max_switches": 2}, {"candidates": ["reactive", "reflexion"]}],
    "max_required_failures": [3, 4, None],
    "repair": [True, False],
    "tool_format": ["native", "text"],
}  # fmt: skip
"""What each parameter of `Agent` may be."""
STRATEGY_SETTINGS: Final[dict[str, list[dict[str, Any]]]] = {
    "reflexion": [{}, {"max_retries": 1}, {"max_retries": 2}],
    "autonomous": [{}, {"finish_tool": "finished"}],
}
TOOL_OPTIONS: Final[dict[str, list[Any]]] = {
    "name": ["lookup", "look_up"],
    "description": ["Look a fact up.", "Look a fact up!"],
    "read_only": [False, True],
    "timeout": [None, 30, 31.5],
    "requires_approval": [False, True],
    "risk": ["low", "high", "critical"],
    "key": [None, ("key",), ("key", "depth")],
    "reads": [None, {"facts"}, {"facts", "orders"}],
    "writes": [None, {"notes"}],
    "cache": [False, True, 60],
    "isolate": [False],
    "untrusted": [False, True],
}
PARAMETERS: Final = [
    "key: str, depth: int = 1",
    "key: str, depth: int = 2",
    "key: str, depth: float = 1",
    "key: str, depth: int | None = 1",
    "key: str, deep: int = 1",
    "key: str = 'a', depth: int = 1",
    "key: str, depth: int = 1, more: bool = False",
]
SWITCHES: Final[dict[str, dict[str, list[Any]]]] = {
    "max_iterations": {"limit": [9, 8], "on_trigger": ["stop", "terminate"]},
    "budget_limit": {
        "max_tokens": [90_000, 90_001], "max_cost_usd": [None, 5, 6], "output_cap": [4096, 500], "min_output_tokens": [16, 8],
        "prompt_bound": [None, "bytes", "estimate"], "on_trigger": ["stop", "terminate"],
        "prices": [None, {"scripted/model": killswitches.FREE}],
    },
    "timeout_after": {"duration": [600, 601, "11m"], "on_trigger": ["stop", "terminate"]},
    "watchdog": {"no_progress_for": [600, 700], "on_trigger": ["stop", "terminate"]},
    "tool_limit": {"total": [30, 31], "on_trigger": ["stop", "terminate", "refuse"]},
    "circuit_breaker": {"failures": [5, 6], "provider": [True, False], "on_trigger": ["stop", "terminate"]},
    "kill_file": {"path": ["/nowhere/a", "/nowhere/b"], "on_trigger": ["stop", "terminate"]},
    "require_approval_for": {"tools": [["lookup"], ["lookup", "pay"]], "timeout": [None, 60], "on_trigger": ["continue", "stop"]},
    "stop_when": {"name": ["stop_when", "enough"], "on_trigger": ["stop", "terminate"]},
}  # fmt: skip
HOOKS: Final[dict[str, tuple[str, list[str], str, str]]] = {
    "on": ("payload, context", ["prompt.system", "message.tool-result", "nudge.*"], "None", "on"),
    "tap": ("payload, context", ["llm.response", "tool.call", "**"], "None", "tap"),
    "before": ("context", ["think", "act", "*"], "None", "before"),
    "after": ("context", ["observe", "complete"], "None", "after"),
    "on_error": ("error, context", ["think", "*"], "None", "on_error"),
}
HOOK_OPTIONS: Final[dict[str, list[Any]]] = {
    "name": ["hook", "crook"], "required": [False, True], "timeout_s": [5.0, 6.0], "inherit": [True, False],
}  # fmt: skip


class Plain(BaseModel):
    """An answer."""

    value: str


@dataclass
class Declared:
    """An agent, as data."""

    name: str
    turns: list[Any]
    options: dict[str, Any]
    tools: list[dict[str, Any]]
    blocks: list[dict[str, Any]]
    below: list[Declared] = field(default_factory=list)
    model: str = "scripted/model"
    code: dict[str, Code | None] = field(default_factory=dict)
    validators: list[Code] = field(default_factory=list)
    redact: list[Code] = field(default_factory=list)
    output_type: Any = None

    def build(self, folder: Path | None = None) -> Agent:
        """Make the agent, and those below it, anew."""
        subs = [each.build() for each in self.below]
        options = {
            **self.options,
            "fallbacks": [
                ScriptedModel([text("other")], name=f"scripted/{each}") for each in self.options["fallbacks"]
            ],
        }
        functions = {name: code(value, *CODE[name]) for name, value in self.code.items() if value is not None}
        return Agent(
            ScriptedModel(list(self.turns), name=self.model, tool_format=options.pop("tool_format")),
            **grouped(name=self.name,
            tools=[*map(_tool, self.tools), *subs],
            compose=[_block(each) for each in self.blocks],
            validators=[code(each, "output", "True") for each in self.validators],
            redact=[code(each, "words", "words") for each in self.redact],
            output_type=self.output_type,
            trace=folder,
            **options,
            **functions),
        )  # fmt: skip

    def tree(self) -> Iterator[Declared]:
        """Yield this agent and all below it."""
        yield self
        for each in self.below:
            yield from each.tree()


def _tool(given: dict[str, Any]) -> Any:
    options = {name: value for name, value in given.items() if name not in ("code", "parameters")}
    if given["reads"] is None and given["writes"] is None:
        del options["reads"], options["writes"]
    return tool(**options)(code(given["code"], given["parameters"], "'a fact'"))


def _block(given: dict[str, Any]) -> Callable[[Any], object]:
    options = {name: value for name, value in given.items() if name not in ("kind", "code", "at", "payload")}
    kind = given["kind"]
    if kind in SWITCHES:
        if kind == "stop_when":
            return killswitches.stop_when(code(given["code"], "context", "False"), **options)
        if kind == "require_approval_for":
            options["approver"] = code(given["code"], "request", "True")
        if kind == "max_iterations":
            return killswitches.max_iterations(options.pop("limit"), **options)
        return getattr(killswitches, kind)(**options)
    if kind == "emit":
        return lambda harness: harness.emit(given["at"], given["payload"])
    args, _, result, method = HOOKS[kind]
    return lambda harness: getattr(harness, method)(given["at"], code(given["code"], args, result), **options)


# --- what there is, and what is changed in it ---------------------------------------------------------------------------


def random_declaration(chance: random.Random) -> Declared:
    """Return a tree of agents: the root, one that it enters, which enters another one, and one that nobody enters."""
    deep = _agent(chance, "deep", [call("lookup", key="d"), text("deep")])
    sub = _agent(chance, "sub", [call("deep", task="t"), call("lookup", key="s"), text("sub")], [deep])
    never = _agent(chance, "never", [], [_agent(chance, "below_never", [])])
    return _agent(chance, "root", [call("sub", task="t"), call("lookup", key="r"), text("done")], [sub, never])


def _agent(chance: random.Random, name: str, turns: list[Any], below: list[Declared] | None = None) -> Declared:
    options = {each: values[0] for each, values in OPTIONS.items()}
    for each in chance.sample([*OPTIONS], 3):
        if each not in ("strategy", "tool_format", "infer_required"):  # with which the script would make no sense
            options[each] = chance.choice(OPTIONS[each])
    blocks = [_any_block(chance) for _ in range(chance.randint(1, 3))]
    return Declared(
        name,
        turns,
        options,
        [_any_tool(chance, "lookup"), _any_tool(chance, "pay")],
        blocks,
        below or [],
        code={each: codes(chance) if each == "approver" or chance.random() < 0.3 else None for each in CODE},
        validators=[codes(chance) for _ in range(chance.randint(0, 2))],
        redact=[codes(chance) for _ in range(chance.randint(0, 1))],
        output_type=chance.choice([None, None, Plain]),
    )


def _any_tool(chance: random.Random, name: str) -> dict[str, Any]:
    made = {each: values[0] for each, values in TOOL_OPTIONS.items()}
    return {**made, "name": name, "parameters": PARAMETERS[0], "code": codes(chance, of_tool=True)}


def _any_block(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice([*SWITCHES, *HOOKS, *HOOKS, "emit"])
    if kind == "emit":
        return {"kind": kind, "at": chance.choice(["nudge.novelty", "message.user"]), "payload": "Mind the gap."}
    options = SWITCHES.get(kind, HOOK_OPTIONS)
    made = {"kind": kind, "code": codes(chance), **{name: values[0] for name, values in options.items()}}
    return made if kind in SWITCHES else {**made, "at": HOOKS[kind][1][0]}


def planted(chance: random.Random, declared: Declared) -> tuple[Declared, str]:
    """Return the declaration with one thing changed somewhere in it, and what that is."""
    while True:
        changed = deepcopy(declared)
        agent = chance.choice(list(changed.tree()))
        changes = list(_changes(chance, agent))
        what, change = chance.choice(changes)
        change()
        with suppress(UsageError):  # of parameters that do not go together
            if " (" in what or effect(changed.build()) != effect(declared.build()):
                return changed, f"{agent.name}: {what}"


def effect(agent: Any) -> Any:
    """Return what an agent is declared to be, but for its code: two ways to say the same are no change."""
    made = agent.as_tool() if isinstance(agent, Agent) else agent
    hooks = made.hooks()
    return (
        made.header.model_copy(update={"sources": ()}),
        made.header.request_parameters,
        [kind.__qualname__ for kind in map(type, made.models)],
        [(tool.spec, effect(tool) if tool.spec.kind == "agent" else None) for tool in made.tools.values()],
        len(made.redact),
        made.approver is None,
        () if hooks is None else (hooks.info(), hooks.seeds()),
    )


def _changes(chance: random.Random, agent: Declared) -> Iterator[Change]:
    for name, values in OPTIONS.items():
        options = STRATEGY_SETTINGS.get(agent.options["strategy"], [None]) if name == "strategy_settings" else values
        yield from _of(chance, name, agent.options, name, options)
    for each in agent.tools:
        yield from _of_tool(chance, each)
    for each in agent.blocks:
        yield from _of_block(chance, each)
        yield f"{each['kind']} is removed", partial(agent.blocks.remove, each)
    yield from _of_functions(chance, agent)
    for name, choices in (
        ("output_type", [None, Plain, list[Plain], dict[str, int]]),
        ("model", ["scripted/model", "scripted/other"]),
    ):
        yield from _of(chance, name, vars(agent), name, choices)
    yield "a tool is added", partial(agent.tools.append, _any_tool(chance, "more"))
    yield "a tool is removed", partial(agent.tools.pop)
    yield "a block is added", partial(agent.blocks.append, _any_block(chance))
    if agent.name != "root":
        yield from _of(chance, "name", vars(agent), "name", ["renamed"])
    for below in agent.below:
        yield f"{below.name} is removed", partial(agent.below.remove, below)


def _of_tool(chance: random.Random, given: dict[str, Any]) -> Iterator[Change]:
    for name, values in {**TOOL_OPTIONS, "parameters": PARAMETERS}.items():
        if name != "cache" or given["read_only"]:
            yield from _of(chance, f"{name} of the tool {given['name']}", given, name, values)
    yield from _of_code(f"body of the tool {given['name']}", given, "code")


def _of_block(chance: random.Random, given: dict[str, Any]) -> Iterator[Change]:
    kind = given["kind"]
    if kind == "emit":
        yield from _of(chance, "what is emitted", given, "payload", ["Mind the gap.", "Mind the step."])
        return
    for name, values in (SWITCHES.get(kind) or {**HOOK_OPTIONS, "at": HOOKS[kind][1]}).items():
        yield from _of(chance, f"{name} of {kind}", given, name, values)
    if kind in HOOKS or kind in ("stop_when", "require_approval_for"):
        yield from _of_code(f"code of {kind}", given, "code")


def _of_functions(chance: random.Random, agent: Declared) -> Iterator[Change]:
    for name, value in agent.code.items():
        if value is not None:
            yield from _of_code(name, agent.code, name)
        if name != "approver":
            other = None if value is not None else codes(chance)
            yield f"{name} is {'added' if other else 'removed'}", partial(agent.code.update, {name: other})
    for what in ("validators", "redact"):
        held: list[Code] = getattr(agent, what)
        yield f"one of {what} is added", partial(held.append, codes(chance))
        for place, (how, number) in enumerate(held):
            yield f"code of {what} {place} ({how})", partial(held.__setitem__, place, (how, number + 1))
            yield f"{what} {place} is removed", partial(held.pop, place)


def _of(chance: random.Random, what: str, holder: dict[str, Any], name: str, values: list[Any]) -> Iterator[Change]:
    others = [value for value in values if repr(value) != repr(holder.get(name))]
    if others:
        other = chance.choice(others)
        yield f"{what}: {holder.get(name)!r} to {other!r}", partial(holder.update, {name: other})


def _of_code(what: str, holder: Any, name: str) -> Iterator[Change]:
    how, number = holder[name]
    yield f"{what} ({how})", partial(holder.update, {name: (how, number + 1)})


# --- the campaign -------------------------------------------------------------------------------------------------------

EACH: Final = 10
"""Changes that are planted in each random tree of agents."""


def declared_by(chance: random.Random) -> Declared:
    """Return a random tree of agents whose parameters go together."""
    while True:
        declared = random_declaration(chance)
        with suppress(UsageError):
            declared.build()
            return declared


def recorded(seed: int, folder: Path) -> tuple[random.Random, Declared, Path]:
    """Record a run of a random tree of agents; return the chance, the declaration and the recording."""
    chance = random.Random(seed)
    declared = declared_by(chance)
    result = run(declared.build(folder))
    assert result.trace_path is not None
    return chance, declared, Path(result.trace_path)


def said(path: Path, declared: Declared) -> list[str]:
    """Return what a reproduction by an agent, made anew, says of changes; nothing where it notices none."""
    outcome = reproduce(path, agent=declared.build())
    return [*map(str, outcome.divergences), *map(str, outcome.changed_sources), *outcome.not_compared]


def missed(seed: int, folder: Path, count: int = EACH) -> list[str]:
    """Plant changes in one tree of agents; return those that nothing was said of, and what was said of the unchanged tree."""
    chance, declared, path = recorded(seed, folder)
    unchanged = said(path, declared)
    changes = (planted(chance, declared) for _ in range(count))
    return [f"unchanged: {each}" for each in unchanged] + [what for changed, what in changes if not said(path, changed)]


def main(count: int) -> None:
    """Plant changes in random trees of agents, and print what `reproduce` does not notice."""
    with tempfile.TemporaryDirectory() as name:
        use_folder(Path(name))
        found = [each for seed in range(-(-count // EACH)) for each in missed(seed, Path(name))]
    planted_in_all = -(-count // EACH) * EACH
    noticed = f"noticed {planted_in_all - len(found)} of {planted_in_all} planted changes"
    sys.stdout.write("\n".join([*found, noticed, ""]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
