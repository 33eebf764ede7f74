"""A run that died between any two events, or within one, is resumed to the same end, and nothing is done twice."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from playhead import PlayheadError, RunError, load_recording
from playhead.diagnose.integrity import check_trace
from playhead.errors import NotReplayableError, UnresolvedCallError
from playhead.replay import DID_NOT_HAPPEN, ResultOverride, prefix, reproduce, resume
from playhead.replay.calls import scope_of
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from playhead.replay import UnresolvedCall
    from playhead.trace.line import Record

AGENTS = sample(12, 3)
GROUPS = sample(4, 1)
SEED = 3
SHORT = 45
"""Lines of a run that is cut after every one of them; longer ones are cut in some places."""
SAMPLE = 12


@dataclass
class Lived:
    """A run that was seen from the outside."""

    lines: list[bytes]
    reached: Any
    """What the caller got."""
    after: list[Outside] = field(default_factory=list)
    """The world as it was just before each line was written, but for the first."""
    last: Outside = field(default_factory=Outside)


class Watch:
    """Keeps how the world was when each event was written."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.seen: list[Outside] = []

    def __call__(self, record: Record) -> None:
        self.seen.append(self.outside.copy())


async def reached(run: Awaitable[Any]) -> Any:
    """Return what a run reached, or how it failed, without its ids and times."""
    try:
        result: Any = await run
        failed = None
    except RunError as error:
        result, failed = error.result, type(error).__name__
    fields = (
        "output",
        "status",
        "terminated_by",
        "terminated_source",
        "error",
        "iterations",
        "steps",
        "usage",
        "cost_usd",
    )
    return failed, {name: getattr(result, name) for name in fields}


async def live(seed: int, folder: Path) -> Lived:
    """Run an agent to its end."""
    outside = Outside()
    watch = Watch(outside)
    agent = random_agent(seed, outside, trace=folder)
    agent.subscribe(None, watch)
    ended = await reached(agent.run("Do it.", run_id="run"))
    lines = (folder / "run.jsonl").read_bytes().splitlines(keepends=True)
    return Lived(lines, ended, watch.seen[1:], outside)


async def continued(seed: int, folder: Path, name: str, outside: Outside, **options: Any) -> Lived:
    """Resume a run in this world."""
    watch = Watch(outside)
    agent = random_agent(seed, outside, trace=folder)
    ended = await reached(resume(agent, folder / name, run_id=f"{folder.name}-on", on_record=watch, **options))
    lines = (folder / f"{folder.name}-on.jsonl").read_bytes().splitlines(keepends=True)
    return Lived(lines, ended, watch.seen[1:], outside)


def die(lived: Lived, kept: int, folder: Path, chance: random.Random) -> Outside:
    """Write the trace of a run that died after so many lines, or in the middle of the next; return the world of then."""
    folder.mkdir()
    torn = lived.lines[kept][: chance.randrange(len(lived.lines[kept]))] if chance.random() < 0.3 else b""
    (folder / "dead.jsonl").write_bytes(b"".join(lived.lines[:kept]) + torn)
    return lived.after[kept - 1].copy()


def scope(folder: Path, call: UnresolvedCall) -> str:
    """Return under whose name stands what the body of a call does."""
    return scope_of(call.owner, load_recording(folder / "dead.jsonl").owners[call.owner].calls[call.call_id])


def truth(call: UnresolvedCall, folder: Path, outside: Outside) -> Any:
    """Return what somebody who looks at the world finds out about a call."""
    acted = (call.owner, call.call_id, call.tool) in outside.effects
    if call.tool == "sneaky":
        acted = any(owner == scope(folder, call) for owner, _, _ in outside.effects)
    if not acted:
        return DID_NOT_HAPPEN
    key = call.arguments["key"]
    found = {"write": f"wrote {key}", "write_sync": {"wrote": key}, "pay": f"paid {key}", "outer": f"outer wrote {key}",
             "sneaky": f"sneaked wrote {key}"}  # fmt: skip
    if call.tool == "break_it":
        return ResultOverride("break_it", error=f"broke {key}")
    return ResultOverride(call.tool, result=found[call.tool])


def traces(folder: Path) -> list[str]:
    """Return the traces in a folder."""
    return [path.name for path in folder.glob("*.jsonl")]


def open_effects(folder: Path, outside: Outside) -> set[tuple[str, str, str]]:
    """Return the side effects that the world has and the trace has no answer of, neither of the call nor of one around it."""
    calls = [
        (owner.owner, call)
        for owner in load_recording(folder / "dead.jsonl").owners.values()
        for call in owner.calls.values()
        if call.completed is not None
    ]
    answered = {(owner, call.started.call_id, call.started.tool) for owner, call in calls}
    bodies = tuple(f"{scope_of(owner, call)}/" for owner, call in calls)
    return {each for each in outside.effects if each not in answered and not f"{each[0]}/".startswith(bodies)}


async def check_cut(seed: int, whole: Lived, kept: int, folder: Path, chance: random.Random, *, depth: int = 0) -> None:
    """Let a run die at one place, resume it, and look at everything."""
    outside = die(whole, kept, folder, chance)
    before, halfway = outside.copy(), False
    unknown = open_effects(folder, outside)
    try:
        lived = await continued(seed, folder, "dead.jsonl", outside)
    except UnresolvedCallError as error:
        assert outside == before
        assert traces(folder) == ["dead.jsonl"]
        calls: Any = error.calls
        asked = {each.key: truth(each, folder, outside) for each in calls}
        halfway = any(each.tool == "outer" for each in calls)  # we say that it went on, and nobody did the rest
        lived = await continued(seed, folder, "dead.jsonl", outside, unresolved=asked)
    else:
        assert not unknown, "a side effect that may have happened was not asked about"
    twice = {key: count for key, count in outside.effects.items() if count > 1}
    assert not twice, "done twice"
    if not halfway:
        assert lived.reached == whole.reached
        assert outside.effects == whole.last.effects, (outside.effects, whole.last.effects)
    path = folder / f"{folder.name}-on.jsonl"
    assert check_trace(path).ok
    outcome = await reproduce(path)
    assert outcome.identical, outcome.divergences[0]
    if depth == 0 and chance.random() < 0.2:
        again = chance.randrange(1, len(lived.lines))
        chained = folder / "again"
        if any(b"caught_up_with" in line for line in lived.lines[:again]):
            lived.last = outside.copy()
            await check_cut(seed, lived, again, chained, chance, depth=1)
        else:
            world = die(lived, again, chained, chance)
            with pytest.raises(NotReplayableError, match="Resume that one"):
                await resume(random_agent(seed, world), chained / "dead.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
async def test_a_run_that_died_anywhere_ends_as_if_it_had_not(group: int, tmp_path: Path) -> None:
    """Same answer, same steps and tokens, every side effect exactly once; or the caller is asked before anything runs."""
    for seed in range(group * AGENTS // GROUPS, (group + 1) * AGENTS // GROUPS):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        whole = await live(seed, folder)
        everywhere = range(1, len(whole.lines))
        for kept in everywhere if len(everywhere) <= SHORT else sorted(chance.sample(everywhere, SAMPLE)):
            try:
                await check_cut(seed, whole, kept, folder / f"cut-{kept}", chance)
            except (AssertionError, PlayheadError) as error:
                error.add_note(f"seed {seed}, cut after {kept} of {len(whole.lines)} lines")
                raise


async def test_the_oracle_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The property can fail: a resumption that repeats calls of which nobody knows what they did is found out."""
    whole = await live(SEED, tmp_path)
    started = next(place for place, line in enumerate(whole.lines) if b'"tool":"write"' in line and b"started" in line)
    monkeypatch.setattr(prefix, "_may_have_acted", lambda *_: False)
    with pytest.raises(AssertionError, match="not asked about"):
        await check_cut(SEED, whole, started + 1, tmp_path / "cut", random.Random(0))


@pytest.mark.slow
async def test_the_random_agents_cover_what_may_die(tmp_path: Path) -> None:
    """The property says something: the agents are cut in all that a run may be in the middle of."""
    kinds: set[str] = set()
    tools: set[str] = set()
    for seed in range(24):
        await live(seed, tmp_path / str(seed))
        for owner in load_recording(tmp_path / str(seed) / "run.jsonl").owners.values():
            kinds |= {record.kind for record in owner.records}
            tools |= {call.started.tool for call in owner.calls.values() if call.completed and call.completed.ok}
    assert kinds >= {
        "agent-started", "approval-decided", "budget-reserved", "emission-changed", "hook-fired", "killswitch-fired",
        "llm-retried", "nudge-issued",
    }  # fmt: skip
    assert tools >= {"agent1", "inner", "outer", "pay", "remember", "sneaky", "write", "write_sync"}
