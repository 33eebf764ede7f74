"""Declared resources narrow what a side effect makes stale; tools run live where the caller says so, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.errors import UsageError
from playhead.importing import import_file
from playhead.testing import call, text
from tests.findings.adapter import agent, answers, replay, run
from tests.importing.traces import Trace, calling

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.replay import ReplayResult


END = text("done")
RESOURCES = ("orders", "stock", "weather")


@dataclass
class World:
    """Numbers by resource, and what ran."""

    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0))
    ran: list[str] = field(default_factory=list)

    def tools(self, *, declared: bool = True) -> list[Any]:
        """Return a read and a write of each resource, one that depends on another, and two that say nothing."""
        made = [each for name in RESOURCES for each in (self._read(name, declared), self._write(name, declared))]

        of: Any = {"reads": {"stock"}, "writes": {"orders"}} if declared else {}

        @tool(**of)
        async def order() -> list[int]:
            """Order what is in stock."""
            self.ran.append("order")
            self.numbers["orders"] += self.numbers["stock"]
            return [self.numbers["orders"], self.numbers["stock"]]

        @tool(read_only=True)
        async def audit() -> dict[str, int]:
            """Read everything."""
            self.ran.append("audit")
            return dict(self.numbers)

        @tool
        async def act() -> str:
            """Change whatever it likes."""
            self.ran.append("act")
            self.numbers = dict.fromkeys(RESOURCES, 9)
            return "ok"

        return [*made, order, audit, act]

    def _read(self, name: str, declared: bool) -> Any:
        async def read() -> int:
            """Read."""
            self.ran.append(f"read_{name}")
            return self.numbers[name]

        return tool(name=f"read_{name}", read_only=True, reads={name} if declared else None)(read)

    def _write(self, name: str, declared: bool) -> Any:
        async def write(by: int = 1) -> int:
            """Write."""
            self.ran.append(f"write_{name}")
            self.numbers[name] += by
            return self.numbers[name]

        return tool(name=f"write_{name}", writes={name} if declared else None)(write)


def turns(*names: str) -> list[Any]:
    """Return turns of one call each, and the answer."""
    return [*map(call, names), END]


def rungs(then: tuple[str, ...], now: tuple[str, ...], folder: Any, **options: Any) -> list[str | None]:
    """Record these calls, replay those, and return how each was answered."""
    ran = run(agent(turns(*then), World().tools(**options), trace=folder, rationale=False))
    return [each[1] for each in answers(replay(ran.trace_path, turns(*now), on_missing="lenient"))]


@pytest.mark.parametrize(
    ("then", "now", "last"),
    [
        (("write_orders", "read_weather"), ("read_weather",), "reordered"),
        (("write_orders", "read_orders"), ("read_orders",), "stale"),
        (("write_orders", "write_weather", "audit"), ("write_weather", "write_orders", "audit"), "exact"),
        (("act", "read_weather"), ("read_weather",), "stale"),
        (("write_orders", "write_orders"), ("read_weather", "write_orders"), "reordered"),
        (("write_stock", "order", "read_orders"), ("order", "read_orders"), "stale"),
        (("write_weather", "order", "read_orders"), ("order", "read_orders"), "reordered"),
        (("order", "write_stock", "read_orders"), ("write_stock", "order", "read_orders"), "stale"),
    ],
)
def test_a_side_effect_makes_stale_what_depends_on_it(tmp_path, then, now, last):
    """A write makes reads of its resource stale, also through a write that read it, and no others."""
    assert rungs(then, now, tmp_path)[-1] == last


def test_unrecorded_writes_make_only_their_resources_stale(tmp_path):
    """After an unrecorded, overridden or simulated write, other resources stay grounded."""
    ran = run(
        agent(turns("read_weather", "write_orders", "read_orders", "read_weather"), World().tools(), trace=tmp_path)
    )
    missed = replay(
        ran.trace_path, turns("write_stock", "read_weather", "write_orders", "read_orders"), on_missing="lenient"
    )
    assert [each[1] for each in answers(missed)] == ["synthetic-error", "reordered", "reordered", "reordered"]
    same = turns("read_weather", "write_orders", "read_orders", "read_weather")
    told = replay(ran.trace_path, same, overrides={"tool_results": {"write_orders": 5}}, on_missing="lenient")
    assert [each[1] for each in answers(told)] == ["exact", "override", "stale", "exact"]


# --- live ---------------------------------------------------------------------------------------------------------------


def live(folder: Any, now: tuple[str, ...], policy: Any) -> tuple[list[str], list[tuple[str, str | None, Any]], Any]:
    """Record reads of orders and of the weather, replay with code; return what ran, what was answered, why it stopped."""
    ran = run(agent(turns("read_orders", "read_weather"), World().tools(), trace=folder))
    world = World(dict.fromkeys(RESOURCES, 40))
    replayed = replay(ran.trace_path, agent=agent(turns(*now), world.tools()), on_missing=policy)
    return world.ran, answers(replayed), replayed.stopped


def test_live_runs_only_missing_read_only_calls(tmp_path):
    """`live` serves recorded results, runs unrecorded read-only calls, and stops at any other call."""
    ran, answered, stopped = live(tmp_path, ("read_orders", "read_stock", "write_stock"), "live")
    assert ran == ["read_stock"]
    assert answered == [("read_orders", "exact", 0), ("read_stock", "live", 40), ("write_stock", None, "Cancelled")]
    assert "root calls write_stock" in str(stopped)


def test_a_tool_that_is_named_runs_whatever_it_is(tmp_path):
    """What it wrote is not in the recording: reads of that are stale, or run too where they are named."""
    policy = {"write_orders": "live", "read_orders": "lenient", "read_stock": lambda missed: missed.tool}
    ran, answered, _ = live(tmp_path, ("write_orders", "read_weather", "read_orders", "read_stock"), policy)
    assert ran == ["write_orders"]
    assert answered == [
        ("write_orders", "live", 41),
        ("read_weather", "exact", 0),
        ("read_orders", "stale", 0),
        ("read_stock", "simulated", "read_stock"),
    ]
    ran, answered, _ = live(tmp_path, ("write_orders", "read_orders"), {"write_orders": "live", "read_orders": "live"})
    assert (ran, answered[-1]) == (["write_orders", "read_orders"], ("read_orders", "live", 41))


def test_a_live_call_that_needs_approval_stops_the_replay(tmp_path):
    """A replay has no approver, so such a call never runs."""
    ran: list[str] = []

    def pay(*, asks: bool) -> Any:
        async def pay(amount: int) -> str:
            """Pay."""
            ran.append("pay")
            return f"paid {amount}"

        return tool(requires_approval=asks)(pay)

    paid = [call("pay", amount=1), END]
    recorded = run(agent(paid, [pay(asks=True)], trace=tmp_path, approver=lambda _: True))
    ran.clear()
    more = [call("pay", amount=1), call("pay", amount=2), END]
    code = agent(more, [pay(asks=True)], approver=lambda _: True)
    replayed = replay(recorded.trace_path, agent=code, on_missing={"pay": "live"})
    assert (ran, "a replay asks nobody" in str(replayed.stopped)) == ([], True)
    free = replay(recorded.trace_path, agent=agent(more, [pay(asks=False)]), on_missing={"pay": "live"})
    assert (ran, [each[1] for each in answers(free)]) == (["pay"], ["exact", "live"])


@pytest.mark.parametrize("policy", ["lively", {"read_orders": "lively"}, {"read_order": "live"}, 3])
def test_a_policy_that_there_is_not_is_refused(tmp_path, policy):
    """With the nearest one, or the nearest tool."""
    ran = run(agent(turns("read_orders"), World().tools(), trace=tmp_path))
    with pytest.raises(UsageError, match="on_missing"):
        replay(ran.trace_path, agent=agent(turns("read_orders"), World().tools()), on_missing=policy)


# --- tools of a recording that its reader knows to be read-only -------------------------------------------------------


DONE = text("done")
PARAMETERS = {"lookup": "key", "search": "words", "save": "note"}
SCHEMAS = {
    f"llm.tools.{number}.tool.json_schema": json.dumps(
        {"name": name, "parameters": {"type": "object", "properties": {of: {"type": "string"}}, "required": [of]}}
    )
    for number, (name, of) in enumerate(PARAMETERS.items())
}


def does(tool_name: str, value: str) -> Any:
    """Return what a model says that calls a tool."""
    return call(tool_name, **{PARAMETERS[tool_name]: value})


def import_of(folder: Path, *calls: tuple[str, str, str]) -> Path:
    """Import a run of another program that made these calls (tool, argument, result), one a turn; return its recording."""
    trace = Trace().agent(1, None, **{"output.value": "done"})
    prompt: list[Any] = [("system", "Use the tools."), ("user", "Go.")]
    for number, (name, value, result) in enumerate(calls):
        asked = calling((f"c{number}", name, {PARAMETERS[name]: value}))
        trace.model(10 + 2 * number, 1, list(prompt), asked, **SCHEMAS)
        trace.tool(11 + 2 * number, 1, name, {PARAMETERS[name]: value}, result)
        prompt += [asked, {"role": "tool", "content": result, "tool_call_id": f"c{number}"}]
    trace.model(99, 1, prompt, ("assistant", "done"), **SCHEMAS)
    (folder / "spans.json").write_text(json.dumps(trace.document))
    [made] = import_file(folder / "spans.json", folder)
    assert made.replayability == "full"
    return made.path


@pytest.fixture
def reads(tmp_path: Path) -> Path:
    """A run that looked up, searched and looked up."""
    return import_of(tmp_path, ("lookup", "Zed", "high"), ("search", "inns", "two"), ("lookup", "Quill", "low"))


OTHERWISE = (does("search", "inns"), does("lookup", "Quill"), does("lookup", "Zed"), DONE)
"""The same reads in another order."""


def notes_on(result: ReplayResult) -> list[str]:
    """Return the notes that speak of what only reads."""
    return [note for note in result.notes if "read_only=" in note or "read-only" in note]


@pytest.mark.parametrize(
    ("declared", "rungs"),
    [
        ((), ["stale", "stale", "stale"]),
        (("search",), ["stale", "stale", "stale"]),
        (("lookup",), ["reordered", "reordered", "stale"]),
        (("search", "lookup"), ["reordered", "reordered", "reordered"]),
    ],
)
def test_tools_that_only_read_make_nothing_stale(reads: Path, declared: tuple[str, ...], rungs: list[str]):
    """What was read holds in another order, as far as nothing was called in between that may write; the replay says what only reads."""
    result = replay(reads, OTHERWISE, read_only=declared, on_missing="lenient")
    assert answers(result) == [("search", rungs[0], "two"), ("lookup", rungs[1], "low"), ("lookup", rungs[2], "high")]
    said = [f"declared read-only for this replay, not by the recording: {', '.join(sorted(declared))}"]
    assert notes_on(result) == (said if declared else [])
    assert result.verdict == ("inconclusive" if "stale" in rungs else "changed")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["serach"],
            "the recording has no tool function 'serach'. Did you mean 'search'? Known: lookup, save, search.",
        ),
        (["lookup", ""], "the recording has no tool function ''. Known: lookup, save, search."),
        ([["lookup"]], "the recording has no tool function ['lookup']."),
        ("lookup", "read_only must be a list; it is 'lookup'"),
    ],
)
def test_an_unknown_tool_is_refused(reads: Path, given: Any, message: str):
    """Nothing is replayed with a declaration that means no tool; the nearest is named."""
    with pytest.raises(UsageError) as refused:
        replay(reads, OTHERWISE, read_only=given)
    assert message in str(refused.value)
