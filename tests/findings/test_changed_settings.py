"""`reproduce(agent=)` notices each setting that the code now declares otherwise, at any depth of a tree of agents."""

from __future__ import annotations

import inspect
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import Agent, Context, Execution, UsageError, tool
from playhead.compose import killswitches
from playhead.compose.typed import Options
from playhead.kernel.tool_decorator import ToolOptions
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Message
from tests.findings.adapter import reproduce, run
from tests.options import POLICIES, REQUIRE, grouped
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENVIRONMENT: Final = {"trace", "clock"}
"""Parameters that say where an agent runs, and nothing of what it does."""
ELSEWHERE: Final = {
    "model",
    "name",
    "tools",
    "compose",
    "approver",
    "done_when",
    "validators",
    "redact",
    "strategy_settings",
}
"""Parameters that are changed below, or whose code is changed in `test_changed_code`."""
EXAMPLES: Final = (Message(id=0, role="user", content="Hi"), Message(id=1, role="assistant", content="Yes?"))
OPTIONS: Final[dict[str, list[Any]]] = {
    "description": ["Helps.", "Helps much."],
    "strategy": ["reactive", "direct", "reflexion", "chain-of-thought", "autonomous"],
    "system_prompt": [None, "Be brief."],
    "facts": [{"today": "Monday"}, {}, {"today": "Tuesday"}, {"day": "Monday"}],
    "examples": [(), EXAMPLES],
    "parameters": [{"temperature": 0, "x_tenant": "a"}, None, {"temperature": 0.5, "x_tenant": "a"}, {"temperature": 0, "x_tenant": "b"}],
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
    "fallbacks": [("second",), (), ("second", "third"), ("third", "second")],
    "fallback_after": [None, 1, 2],
    "output_retries": [2, 1],
    "verify": [None, "reflect", "loop"],
    "min_iterations": [0, 1],
    "loop_detection": [None, True, {"identical_calls": 4}, {"identical_calls": 5}],
    "switching": [None, True, {"max_switches": 2}, {"candidates": ["reactive", "reflexion"]}],
    "max_required_failures": [3, 4, None],
    "repair": [True, False],
    "output_type": [None, dict[str, int]],
    "tool_format": ["native", "text"],
}  # fmt: skip
"""What each parameter of `Agent` may be: what the recorded agent has, and what it is changed to."""
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
HOOKS: Final[dict[str, list[str]]] = {
    "on": ["prompt.system", "nudge.*"], "tap": ["llm.response", "**"], "before": ["think", "*"], "after": ["observe", "complete"],
    "on_error": ["think", "*"],
}  # fmt: skip
"""Where each kind of hook is, and where it is moved to."""
HOOK_OPTIONS: Final[dict[str, list[Any]]] = {
    "name": ["hook", "crook"], "required": [False, True], "timeout_s": [5.0, 6.0], "inherit": [True, False],
}  # fmt: skip


async def lookup(key: str, depth: int = 1) -> str:
    """Return a fact."""
    return key


async def another_default(key: str, depth: int = 2) -> str:
    """Return a fact."""
    return key


async def another_type(key: str, depth: float = 1) -> str:
    """Return a fact."""
    return key


async def another_name(key: str, deep: int = 1) -> str:
    """Return a fact."""
    return key


FUNCTIONS: Final = [lookup, another_default, another_type, another_name]


def hook(*_: Any) -> None:
    """Do nothing."""


def say_yes(_: Any) -> bool:
    """Approve."""
    return True


@dataclass
class Declared:
    """What an agent is made of, as data that a change is made in."""

    name: str
    model: str = "scripted/model"
    options: dict[str, Any] = field(default_factory=lambda: {name: values[0] for name, values in OPTIONS.items()})
    tool: dict[str, Any] = field(
        default_factory=lambda: {"function": lookup, **{name: values[0] for name, values in TOOL_OPTIONS.items()}}
    )
    switches: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            kind: {name: values[0] for name, values in settings.items()} for kind, settings in SWITCHES.items()
        }
    )
    hooks: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            kind: {"at": places[0], **{name: values[0] for name, values in HOOK_OPTIONS.items()}}
            for kind, places in HOOKS.items()
        }
    )
    seed: str = "Mind the gap."

    def agent(self, turns: list[Any], *below: Agent, folder: Path | None = None) -> Agent:
        """Make the agent, with those below it as tools."""
        options, made = dict(self.options), dict(self.tool)
        function = made.pop("function")
        model = ScriptedModel(turns, name=self.model, tool_format=options.pop("tool_format"))
        options["fallbacks"] = [
            ScriptedModel([text("other")], name=f"scripted/{each}") for each in options["fallbacks"]
        ]
        if made["reads"] is None and made["writes"] is None:
            del made["reads"], made["writes"]
        tools = [tool(**made)(function), *below]
        blocks = [*(_switch(kind, dict(given)) for kind, given in self.switches.items()), self._hooks]
        return Agent(
            model, **grouped(name=self.name, tools=tools, approver=say_yes, compose=blocks, trace=folder, **options)
        )

    def _hooks(self, harness: Any) -> None:
        for kind, given in self.hooks.items():
            options = dict(given)
            getattr(harness, kind)(options.pop("at"), hook, **options)
        harness.emit("message.user", self.seed)

    def changes(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield each change that can be made in it: what it is, and what makes it."""
        shown = OPTIONS if self.name != "root" else {name: OPTIONS[name] for name in OPTIONS if name != "description"}
        yield from _values("agent", self.options, shown)  # a description is for those who call the agent
        yield from _values("tool", self.tool, {**TOOL_OPTIONS, "function": FUNCTIONS})
        for kind, settings in SWITCHES.items():
            yield from _values(kind, self.switches[kind], settings)
            yield f"{kind} removed", partial(self.switches.pop, kind)
        for kind, places in HOOKS.items():
            yield from _values(kind, self.hooks[kind], {**HOOK_OPTIONS, "at": places})
            yield f"{kind} removed", partial(self.hooks.pop, kind)
        yield from _values("other", vars(self), {"model": ["", "scripted/other"], "seed": ["", "Mind the step."]})
        if self.name != "root":
            yield from _values("other", vars(self), {"name": ["", "renamed"]})


def _switch(kind: str, options: dict[str, Any]) -> Any:
    if kind == "stop_when":
        return killswitches.stop_when(lambda _: False, **options)
    if kind == "require_approval_for":
        options["approver"] = say_yes
    if kind == "max_iterations":
        return killswitches.max_iterations(options.pop("limit"), **options)
    return getattr(killswitches, kind)(**options)


def _values(
    what: str, holder: dict[str, Any], values: dict[str, list[Any]]
) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, (_, *others) in values.items():
        for other in others:
            yield f"{what}: {name}={other!r}", partial(holder.__setitem__, name, other)


def tree(agents: dict[str, Declared], folder: Path | None = None) -> Agent:
    """Return an agent with one below it that it enters, and one that it does not."""
    sub = agents["sub"].agent([call("lookup", key="s"), text("sub")])
    never = agents["never"].agent([])
    return agents["root"].agent(
        [call("sub", task="t"), call("lookup", key="r"), text("done")], sub, never, folder=folder
    )


PLACES: Final = ("root", "sub", "never")


@pytest.mark.slow
def test_changed_settings_are_noticed(tmp_path: Path) -> None:
    """A reproduction by the same agents reports nothing; one with any setting changed in any of them says so."""
    agents = {name: Declared(name) for name in PLACES}
    path = run(tree(agents, tmp_path)).trace_path

    def said(now: dict[str, Declared]) -> list[Any]:
        outcome = reproduce(path, agent=tree(now))
        return [*outcome.divergences, *outcome.changed_sources, *outcome.not_compared]

    assert said(agents) == []
    missed = []
    for place, name in enumerate(PLACES):
        for number in range(2 * place, len(list(agents[name].changes())), sample(1, 6)):
            now = deepcopy(agents)
            what, change = list(now[name].changes())[number]
            change()
            with suppress(UsageError):  # of settings that do not go together
                if not said(now):
                    missed.append(f"{name}, {what}")
    assert missed == []


def test_every_setting_is_changed() -> None:
    """A parameter that an agent, a tool, a hook or a killswitch gets anew has to be given its place in the tables."""
    parts = {each.name for kind in (Context, Execution) for each in fields(kind)}
    flat = parts | {*REQUIRE, *POLICIES, "switching", "tool_format", "strategy_settings"}
    parameters = {*inspect.signature(Agent).parameters} - {"context", "execution"} | flat
    assert parameters == {*OPTIONS} | ELSEWHERE | ENVIRONMENT
    assert {*ToolOptions.__annotations__} == {*TOOL_OPTIONS}
    assert {*Options.__annotations__} == {*HOOK_OPTIONS}
    names = {name for name in vars(killswitches)["__all__"] if inspect.isfunction(getattr(killswitches, name))}
    assert names == {*SWITCHES}
