"""`reproduce(agent=)` says which code differs that it did not run: of tools, hooks, approvers and validators."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import Agent, Context, Execution, UsageError, load_recording, tool
from playhead.compose import killswitches
from playhead.compose.typed import Options
from playhead.kernel.sources import source_info
from playhead.kernel.tool_decorator import ToolOptions
from playhead.testing import ScriptedModel, call, text
from playhead.trace.types import Message
from tests.findings.adapter import agent, reproduce, run
from tests.options import POLICIES, REQUIRE, grouped
from tests.proving import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


HOW: Final[dict[str, str]] = {
    "body": "def made({args}):\n    number = {n}\n    return {result}\n",
    "helper": "def helper(value):\n    return value * {n}\n\ndef made({args}):\n    helper(1)\n    return {result}\n",
    "constant": "LIMIT = {n}\n\ndef made({args}):\n    number = LIMIT\n    return {result}\n",
    "closure": "def outer(number):\n    def inner({args}):\n        number\n        return {result}\n    return inner\nmade = outer({n})\n",
    "decorated": (
        "import functools\n\ndef times(number):\n    def wrap(function):\n        @functools.wraps(function)\n"
        "        def wrapped(*given, **named):\n            number\n            return function(*given, **named)\n"
        "        return wrapped\n    return wrap\n\n@times({n})\ndef made({args}):\n    return {result}\n"
    ),
}
MORE: Final[dict[str, str]] = {
    "lambda": "made = lambda {names}: ({n}, {result})[1]\n",
    "partial": "import functools\n\ndef given(number, {names}):\n    return {result}\nmade = functools.partial(given, {n})\n",
    "object": (
        "class Made:\n    def __init__(self, number):\n        self.number = number\n\n"
        "    def __call__(self, {names}):\n        return {result}\nmade = Made({n})\n"
    ),
    "method": (
        "class Made:\n    def other(self):\n        return {n}\n\n    def asked(self, {names}):\n        self.other()\n"
        "        return {result}\nmade = Made().asked\n"
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


def code(value: tuple[str, int], args: str, result: str) -> Any:
    """Return a function of these parameters, with its number where `value` says."""
    how, number = value
    names = ", ".join(each.partition(":")[0] for each in args.split(", "))
    return load({**HOW, **MORE}[how].format(args=args, names=names, result=result, n=number))


@pytest.fixture(autouse=True)
def _code_folder(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    use_folder(tmp_path / "code")


CODE: Final[dict[str, tuple[str, str]]] = {
    "tool": ("key: str", "'a fact'"),
    "approver": ("request", "True"),
    "validator": ("output", "True"),
    "redactor": ("words", "words"),
    "hook": ("payload, context", "None"),
    "phase hook": ("context", "None"),
    "predicate": ("tag", "tag == 'prompt.system'"),
    "tool of a sub-agent": ("key: str", "'a fact'"),
    "hook of a sub-agent": ("payload, context", "None"),
}
ALL: Final = [(what, how) for what in CODE for how in (HOW if "tool" in what else {**HOW, **MORE})]
CASES: Final = sample(ALL, ALL[::11])


def made(what: str, function: Any, **more: Any) -> Agent:
    """Return an agent with a function at this place, and another one below it."""
    own = what.removesuffix(" of a sub-agent")
    used = {own: function}
    plain = tool(name="plain")(used.get("tool", lambda key="": key))
    asks = tool(name="pay", requires_approval=True)(lambda key="": key)
    hooks: dict[str, Any] = {
        "hook": lambda harness: harness.on("prompt.system", function, name="hook"),
        "phase hook": lambda harness: harness.before("think", function, name="hook"),
        "predicate": lambda harness: harness.on(function, lambda payload, context: None, name="hook"),
    }
    options = {
        "approver": used.get("approver", _yes),
        "compose": [hooks[own]] if own in hooks else [],
        "validators": [function] if own == "validator" else [],
        "redact": [function] if own == "redactor" else [],
    }
    turns = [call("plain", key="k"), call("pay", key="k"), text("done")]
    if what == own:
        return agent(turns, [plain, asks], **options, **more)
    sub = agent(turns, [plain, asks], name="sub", description="Helps.", **options)
    return agent([call("sub", task="t"), text("done")], [sub], **more)


def _yes(_: Any) -> bool:
    return True


@pytest.mark.parametrize(("what", "how"), CASES)
def test_changed_code_is_reported(tmp_path, what, how):
    """The run is identical, and the report names whose code or held value differs; unchanged code is not reported."""
    args, result = CODE[what]
    path = run(made(what, code((how, 1), args, result), trace=tmp_path)).trace_path
    same, other = (reproduce(path, agent=made(what, code((how, n), args, result))) for n in (1, 2))
    assert (same.identical, same.changed_sources) == (True, ())
    assert other.identical
    [change] = other.changed_sources
    assert (change.change, change.owner) == (
        "value" if how in ("closure", "partial", "object", "data class") else "code",
        "root/sub@0.0" if "sub-agent" in what else "root",
    )
    assert str(change).endswith("differs")


BODY: Final = "def made(payload, context):\n    return None\n"
UNCHANGED: Final = {
    "moved": f"\n\n# a comment\n\n{BODY}",
    "other code in the file": f"{BODY}\n\ndef other():\n    return 1\n",
    "code of the same names": f"{BODY}\nclass Other:\n    context = 1\n    def made(self):\n        return 2\n",
}


@pytest.mark.parametrize("how", UNCHANGED)
def test_moved_code_is_unchanged(tmp_path, how):
    """Moved lines and code that the function does not use are no change."""
    path = run(made("hook", load(BODY), trace=tmp_path)).trace_path
    outcome = reproduce(path, agent=made("hook", load(UNCHANGED[how])))
    assert (outcome.identical, outcome.changed_sources) == (True, ())


MAIN: Final = """
import re
from pathlib import Path
from typing import Annotated
from pydantic import AfterValidator, BaseModel
from . import {helpers}
from .more import deep, LIMIT, SERVICE
RULES = {
    "a": 1,
}
PROMPT = '''
Be
brief.
'''
PATTERN: re.Pattern[str] = re.compile("a")
ALL = [deep]
def checked(value: str) -> str:
    return value
class Answer(BaseModel):
    value: Annotated[str, AfterValidator(checked)]
class Asks:
    def __init__(self, given): self.given = given
    def ask(self, payload, context): return None
def made(payload, context):
    helpers.help(); RULES; PROMPT; PATTERN; ALL; LIMIT; SERVICE.serve(); Answer
    wait = lambda: (payload
        and "late")
    return None
asked = Asks({"depth": [1, 2]}).ask
"""
MORE_OF_IT: Final = """
import functools
def deep(): return deeper()
@functools.lru_cache
def deeper(): return 3
LIMIT = int("4")
class Service:
    def __init__(self, number): self.number = number
    def serve(self): return "s"
SERVICE = Service(5)
"""
HELPERS: Final = "def help():\n    return rest()\ndef rest():\n    return 6\n"
IN_PACKAGE: Final = [
    '"a": 1',
    "brief",
    'compile("a")',
    "return value",
    "late",
    "return 3",
    'int("4")',
    '"s"',
    "Service(5)",
    "6",
]


def package(folder: Path, name: str, old: str = "", new: str = "") -> Any:
    """Return the module of a package of several files in which a text is replaced."""
    (folder / name).mkdir()
    files = {"__init__": MAIN.replace("{helpers}", "helpers"), "more": MORE_OF_IT, "helpers": HELPERS}
    for stem, source in files.items():
        path = folder / name / f"{stem}.py"
        path.write_text(source.replace(old, new) if old else source)
        os.utime(path, (0, 0))  # as old as the files of a process that begins
    return importlib.import_module(name)


@pytest.mark.slow
def test_code_includes_what_it_names(tmp_path, monkeypatch):
    """Helpers in other files of the package, multi-line constants, classes and their arguments are compared, too."""
    monkeypatch.syspath_prepend(tmp_path)
    whole = package(tmp_path, "shop")
    paths = [run(made("hook", each, trace=tmp_path)).trace_path for each in (whole.made, whole.asked)]
    again = package(tmp_path, "shop_again")
    for path, hook in zip(paths, (again.made, again.asked), strict=True):
        assert reproduce(path, agent=made("hook", hook)).changed_sources == ()
    for number, old in enumerate(IN_PACKAGE):
        changed = package(tmp_path, f"shop_{number}", old, re.sub(r"(\w)(?=\W*$)", "7", old))
        assert len(reproduce(paths[0], agent=made("hook", changed.made)).changed_sources) == 1, old
    changed = package(tmp_path, "shop_given", "[1, 2]", "[1, 3]")
    [given] = reproduce(paths[1], agent=made("hook", changed.asked)).changed_sources
    assert given.change == "value"


def test_values_are_keyed(tmp_path, monkeypatch):
    """A value is in no header and cannot be guessed; under another user's key it is not known whether it differs."""
    args, result = CODE["hook"]
    path = run(made("hook", code(("closure", 1234), args, result), trace=tmp_path)).trace_path
    [then] = [each for each in load_recording(str(path)).header.agent.sources if each.values]
    home = tmp_path / "another"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    [change] = reproduce(path, agent=made("hook", code(("closure", 1234), args, result))).changed_sources
    assert (change.change, "another user's key" in str(change)) == ("unknown", True)
    assert source_info("hook", then.name, code(("closure", 1234), args, result)).fingerprint == then.fingerprint


def test_code_without_a_source(tmp_path):
    """Code made from a text has no known source, and the report says so, then or now."""
    names: dict[str, Any] = {}
    exec(BODY, names)  # noqa: S102
    nowhere = names["made"]
    path = run(made("hook", nowhere, trace=tmp_path)).trace_path
    for now in (nowhere, load(BODY)):
        [change] = reproduce(path, agent=made("hook", now)).changed_sources
        assert (change.change, change.kind) == ("unknown", "hook")
        assert "is not known" in str(change)


def test_a_file_that_was_edited_while_it_ran(tmp_path):
    """The source of code whose file was edited since its import is unknown, not wrong."""
    file = tmp_path / "code" / "edited.py"
    file.write_text(BODY)
    names: dict[str, Any] = {"__name__": "edited"}
    exec(compile(BODY, str(file), "exec"), names)  # noqa: S102 - as an import does
    file.write_text(BODY.replace("None", "'Lie.'"))
    path = run(made("hook", names["made"], trace=tmp_path)).trace_path
    [known] = [each for each in load_recording(str(path)).header.agent.sources if each.kind == "hook"]
    assert known.fingerprint is None


@pytest.mark.slow
def test_another_process_gives_the_same_fingerprints(tmp_path):
    """Fingerprints depend neither on the hash seed nor on the folder."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom playhead import Agent, tool\nfrom playhead.testing import ScriptedModel, text\n"
        "NAMES = {'a', 'b', 'c'}\n@tool\ndef known(key: str) -> bool:\n    'Ask.'\n    return key in {'x', 'y', 'z'} or key in NAMES\n"
        "def block(harness):\n    harness.tap('**', lambda payload, context: None, name='all')\n"
        "print(Agent(ScriptedModel([text('d')]), tools=[known], compose=[block], approver=lambda _: True).as_tool().sources())\n"
    )
    told = [
        subprocess.run(
            [sys.executable, program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert b"fingerprint=None" not in told[0]


# --- every setting that the code declares -----------------------------------------------------------------------------


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
    "kind": ["function", "retriever"],
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
