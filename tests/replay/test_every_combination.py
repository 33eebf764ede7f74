"""In every mode, under every policy and with every override, no tool's body runs and nobody is asked, but what is declared live."""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from playhead import load_recording, recorded, tool
from playhead.compose.killswitches import require_approval_for, tool_limit
from playhead.errors import UsageError
from playhead.replay import Overrides
from playhead.replay.divergence import divergences_of
from playhead.replay.missing import POLICIES
from playhead.replay.reproduction import Follower
from playhead.replay.steered import Races
from playhead.testing import ScriptedModel, call, calls, text
from playhead.trace.events import AgentStarted
from tests.kernel.runs import make_agent, record_agent
from tests.proving import sample

if TYPE_CHECKING:
    from playhead import Agent
    from playhead.replay import Recording, ReplayResult

GOLDEN: Final = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))
CALLS: Final = [call(name, key=key) for key in ("a", "new") for name in ("read", "write", "ask")]
"""Calls that were recorded, and calls that were not."""


def changes(name: str) -> dict[str, Any]:
    """Return a value for each override; `name` is a tool."""
    return {
        "system_prompt": {"append": "!"},
        "task": "Another task.",
        "model": ScriptedModel([call("helper", task="Look."), *CALLS, calls(*CALLS), text("done")] * 9),
        "temperature": 0.5,
        "parameters": {"top_p": 0.5},
        "max_iterations": 9,
        "strategy": "plan-execute-reflect",
        "tools": {name: {"description": "Other words."}},
        "tool_results": {name: "given"},
        "tool_faults": {name: "timeout"},
        "hooks": [tool_limit(name, 9)],
        "agents": {},
    }


AT_THE_TURN: Final[dict[str, Any]] = {
    "answer": {"text": "so", "calls": [{"tool": "read", "arguments": {"key": "new"}}]},
    "edit": {1: "another task"},
}
"""What only a fork changes."""
SIMULATED: Final[dict[str, Any]] = {
    "a function": lambda missed: f"{missed.tool}, made up",
    "a model": ScriptedModel([text("made up")] * 99_999),
}
LIVE: Final[dict[str, Any]] = {
    "live": "live",
    "named": {"write": "live"} | dict.fromkeys(("read", "ask", "below"), "lenient"),
}
DECLARED: Final = {"live": {"read", "below"}, "named": {"write"}}
"""The tools that may run under each policy, with code."""


def agent_of(ran: Counter[str], folder: Path) -> Agent:
    """Return an agent whose tools, sub-agent and approver note that they run."""

    @tool(read_only=True)
    def read(key: str) -> str:
        """Read."""
        ran["read"] += 1
        return key

    @tool
    def write(key: str) -> str:
        """Write."""
        ran["write"] += 1
        return key

    @tool
    def ask(key: str) -> str:
        """Ask first."""
        ran["ask"] += 1
        return key

    @tool(read_only=True)
    def below(key: str) -> str:
        """Read below."""
        ran["below"] += 1
        return key

    def approve(_: object) -> bool:
        ran["approver"] += 1
        return True

    helper = make_agent(None, [call("below", key="a"), text("seen")], below, name="helper")
    turns = [calls(*CALLS[:3]), call("helper", task="Look."), call("write", key="b"), text("done")]
    return make_agent(folder, turns, read, write, ask, helper, compose=[require_approval_for(["ask"], approve)])


def test_the_tables_are_whole() -> None:
    """Each override has a value, and each policy a row: a new one fails here until it is tried."""
    assert changes("read").keys() == Overrides.model_fields.keys()
    assert {"strict", "lenient"} | {"live"} == set(POLICIES)


@pytest.mark.slow
@pytest.mark.parametrize("with_code", [False, True])
async def test_no_body_runs_but_those_declared_live(with_code: bool, tmp_path: Path) -> None:
    """Replays and forks at each turn, under each policy, with each override, with code and without; and what may run does."""
    ran = Counter[str]()
    agent = agent_of(ran, tmp_path)
    recording = load_recording((await record_agent(agent, tmp_path)).recording.path)
    assert set(ran) == {"read", "write", "ask", "below", "approver"}
    code = agent if with_code else None
    assert (await recording.reproduce(agent=code)).identical
    policies = {"strict": "strict", "lenient": "lenient", **SIMULATED, **(LIVE if with_code else {})}
    places = (None, 0, 1, 2, 3)
    seen = Counter[str]()
    for policy, at, name in [*product(policies, places, changes("read"))][:: sample(1, 7)]:
        ran.clear()
        agents = {"helper": {"model": ScriptedModel([call("below", key="new"), text("done")] * 9)}}
        given = {"model": changes("read")["model"], "agents": agents, name: changes("read")[name]}
        result = await again(recording, at, {**given, "on_missing": policies[policy], "agent": code}, tmp_path)
        assert set(ran) <= (DECLARED.get(policy, set()) if with_code else set()), (policy, at, name, ran)
        seen += ran + Counter({} if result is None else result.rungs)
    expected = {"exact", "simulated", "synthetic-error", "fault", "override"}
    assert seen.keys() >= (expected | {"read", "below", "write", "live"} if with_code else expected)


RAN: Final = Counter[str]()


@tool(read_only=True)
def probe(key: str) -> str:
    """Read."""
    RAN["probe"] += 1
    return key


@tool
def change(key: str) -> str:
    """Write."""
    RAN["change"] += 1
    return key


@recorded
def both(key: str) -> str:
    """Read and write."""
    return f"{probe(key)} {change(key)}"


def test_no_body_of_a_program_runs_but_those_declared_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded functions, run again with the recorded argument and another one, under each policy, with overrides of calls."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    assert both("a") == "a a"
    recording, ran = load_recording("latest", tmp_path), dict[str, set[str]]()
    named = {"change": "live", "probe": "lenient"}
    for policy, on_missing in {
        "strict": "strict",
        "lenient": "lenient",
        **SIMULATED,
        "live": "live",
        "named": named,
    }.items():
        for key, name in product(("a", "new"), (None, "tool_results", "tool_faults")):
            RAN.clear()
            given: dict[str, Any] = {} if name is None else {name: changes("probe")[name]}
            recording.replay_sync(program=both, args={"key": key}, on_missing=on_missing, trace=None, **given)
            ran.setdefault(policy, set()).update(RAN)
            assert key == "new" or not RAN, (policy, name)
    assert ran == {"strict": set(), "lenient": set(), "a function": set(), "a model": set(), "live": {"probe"}, "named": {"change"}}  # fmt: skip


async def again(recording: Recording, at: int | None, given: dict[str, Any], folder: Path) -> ReplayResult | None:
    """Replay or fork; None where a fork refuses an override. In its turn it reproduces, unless it is a fork."""
    try:
        if at is not None:
            return await recording.fork(at, **given, trace=None)
        return await recording.replay(**given, trace=folder)
    except UsageError:
        assert at is not None
        assert "task" in given
        return None


def turns(recording: Recording) -> list[int]:
    """Return the turns of the root."""
    found = {each.iteration for each in recording.records if each.owner == "root"}
    return sorted(each for each in found if each is not None)


@pytest.mark.slow
@pytest.mark.parametrize("path", sample(GOLDEN, GOLDEN[::6]), ids=lambda path: path.stem)
async def test_no_override_has_an_effect_before_the_turn(path: Path) -> None:
    """Every golden recording, forked at every turn with every override that a fork takes: what was before it recurs."""
    recording = load_recording(path)
    names = {each.event.tool for each in recording.records if each.kind == "tool-call-started"}  # type: ignore[attr-defined]
    below = {each.started.agent.name for each in recording.owners.values() if isinstance(each.started, AgentStarted)}
    made = changes(next(iter(names - {"final-answer", "finish"}), "")) | AT_THE_TURN
    unfit = {"task"} | (set() if names else {"tools", "tool_results", "tool_faults", "hooks"})
    for at, name in product(turns(recording), made.keys() - unfit):
        cut = next(each.seq for each in recording.records if each.owner == "root" and each.iteration == at)
        before = dataclasses.replace(recording, records=tuple(each for each in recording.records if each.seq < cut))
        model, same = ScriptedModel([text("4")] * 20), Follower(before, Races(recording), open_ended=True)
        agents = {each: {"model": model} for each in below}
        given: dict[str, Any] = {"model": model, name: made[name], "agents": agents}
        result = await recording.fork(at, on_missing="lenient", trace=None, on_record=same, **given)
        assert (divergences_of(same.comparison, cut_short=True), same.error) == ((), None), (at, name)
        assert not (result.stopped or "").startswith("the events before"), (at, name, result.stopped)
