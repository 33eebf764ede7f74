"""What a backtest says of one run, and of many."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from playhead import Agent, Context, tool
from playhead.compose.killswitches.expressions import parse_switch
from playhead.replay import load_recording
from playhead.replay.backtest import Figures, Summary, backtest
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.clock import SystemClock
from playhead.trace.events import KillswitchFired
from playhead.trace.types import Prices, Usage
from tests.kernel.runs import record
from tests.proving import sample
from tests.replay.switched_runs import run_pair

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording
    from playhead.replay.backtest import RunBacktest


@tool(read_only=True)
async def look(key: str) -> str:
    """Look."""
    return f"found {key}"


LOOKS = [replace(call("look", key=key), usage=Usage(input_tokens=100, output_tokens=20)) for key in "abcd"]
SCRIPT = [*LOOKS, text("The end.", usage=Usage(input_tokens=100, output_tokens=20))]


class Priced(ScriptedModel):
    """A scripted model with a price."""

    known: Prices | None = Prices(input_usd=1e-6, output_usd=2e-6)

    async def prices(self) -> Prices | None:
        return self.known

    async def complete(self, request: Any) -> Any:
        completion = await super().complete(request)
        return replace(completion, cost_usd=None)


async def recording_of(folder: Path, turns: Any = SCRIPT, *tools: Any, **options: Any) -> Recording:
    """Record a run of a script."""
    return (await record(folder, turns, *(tools or (look,)), **options)).recording


def told(recording: Recording, *switches: str) -> RunBacktest:
    """Return what a backtest says of a run."""
    return backtest(recording, [parse_switch(each) for each in switches])


async def test_a_run_that_is_not_stopped(tmp_path: Path):
    """It is untouched; it is said what it took, and nothing is saved."""
    run = told(await recording_of(tmp_path), "max_iterations(5)", "tool_limit('look', 4)")
    assert (run.verdict, run.stop, run.lost, run.ended_by, run.ended_well) == (
        "untouched",
        None,
        False,
        "end_turn",
        True,
    )
    assert (run.took.tokens, run.took.requests, run.took.calls, run.took.cost_usd) == (600, 5, 4, 0.0)
    assert run.saved == Figures()


async def test_what_a_stop_saves_and_loses(tmp_path: Path):
    """All that had not begun: the call at which it stops, the requests and calls after it, and the time from there on."""
    recording = await recording_of(tmp_path)
    run = told(recording, "tool_limit('look', 2)")
    assert run.stop is not None
    record = recording.records[run.stop.seq]
    assert (record.kind, record.event.model_dump()["call_id"]) == ("tool-call-started", "call_2_0")
    where = ("owner", "turn", "request", "attempt", "call_id", "seq", "after_ms")
    assert run.stop.model_dump(include=set(where)) == {
        "owner": "root", "turn": 2, "request": None, "attempt": None, "call_id": "call_2_0",
        "seq": record.seq, "after_ms": (record.ts - recording.records[0].ts) / 1000,
    }  # fmt: skip
    assert (run.verdict, run.lost) == ("stopped", True)
    assert (run.saved.tokens, run.saved.requests, run.saved.calls) == (240, 2, 2)
    assert run.saved.seconds == pytest.approx((recording.records[-1].ts - record.ts) / 1e6)


async def test_an_answer_that_would_have_been_cut(tmp_path: Path):
    """The live run would have gone another way there: that is said, and nothing is said to be saved."""
    turns = [LOOKS[0], text("Long.", usage=Usage(input_tokens=100, output_tokens=300))]
    run = told(
        await recording_of(tmp_path, turns), "budget_limit(max_tokens=2000, output_cap=200)", "max_iterations(9)"
    )
    assert (run.verdict, run.stop, run.lost, run.saved) == ("unknown", None, False, Figures())
    assert run.why_unknown == (
        "the answer to request 1 of root would have been cut at 200 tokens; it has 300, so what the run would have done "
        "is not known"
    )


async def test_a_call_that_would_have_been_refused(tmp_path: Path):
    """With `refuse` the model is told and goes on: nobody knows how."""
    run = told(await recording_of(tmp_path), "tool_limit('look', 1, on_trigger='refuse')", "max_iterations(1)")
    assert run.stop is not None
    assert run.stop.switch == "max_iterations"
    changed = told(await recording_of(tmp_path / "b"), "tool_limit('look', 1, on_trigger='refuse')")
    assert changed.verdict == "unknown"
    assert changed.why_unknown == (
        "at call call_1_0 of the tool look by root: look was not called: 1 call of look is all it may have; what the run "
        "would have done then is not known"
    )


async def test_prices_that_are_not_known(tmp_path: Path):
    """Nothing is free for that: the run cannot be judged, unless prices are given."""
    model = Priced(SCRIPT, name="my/model")
    model.known = None
    recording = await recording_of(tmp_path, model)
    run = told(recording, "budget_limit(max_cost_usd=1)")
    assert (run.verdict, run.stop) == ("unknown", None)
    assert (run.why_unknown or "").startswith("the price of my/model is not known")
    run = told(recording, "budget_limit(max_cost_usd=0.00019, output_cap=20, prices={'my/model': [0, 2e-6]})")
    assert run.stop is not None
    assert (run.verdict, run.stop.request) == ("stopped", 4)
    assert (run.took.cost_usd, run.saved.cost_usd) == pytest.approx((2e-4, 4e-5))


async def test_a_request_that_would_have_waited(tmp_path: Path):
    """Requests beside each other that do not fit together: what would have come of that is not recorded."""

    def child(name: str, steps: int) -> Agent:
        @tool
        async def work(key: str) -> str:
            """Work."""
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            return key

        turns = [text("Done.", usage=Usage(input_tokens=900, output_tokens=10), delay_s=0.01 * steps)]
        return Agent(ScriptedModel(turns), name=name, tools=[work], context=Context(rationale=False, meta_tools=()))

    both = calls(call("one", task="a"), call("two", task="b"), usage=Usage(input_tokens=600, output_tokens=5))
    tools = [child("one", 1).as_tool(read_only=True), child("two", 2).as_tool(read_only=True)]
    recording = await recording_of(tmp_path, [both, text("The end.")], *tools)
    # The first request takes 605; each below is taken to be 1,100 to 1,300, and takes 910.
    run = told(recording, "budget_limit(max_tokens=2400, output_cap=64, min_output_tokens=64)")
    assert (run.verdict, run.why_unknown) == (
        "unknown",
        "request 0 of root/two@0.1 would have waited for concurrent requests, whose order may differ in a live run",
    )
    enough = told(recording, "budget_limit(max_tokens=6000, output_cap=64)")
    assert (enough.verdict, enough.notes) == ("untouched", ())


async def test_files_that_are_not_whole(tmp_path: Path):
    """What has no end is told as far as it goes; what is damaged is not judged."""
    whole = (await recording_of(tmp_path)).path
    lines = whole.read_bytes().splitlines(keepends=True)
    half = tmp_path / "half.jsonl"
    half.write_bytes(b"".join(lines[: len(lines) // 2]))
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:40])
    bent = tmp_path / "bent.jsonl"
    bent.write_bytes(b"".join(lines).replace(b"found a", b"found b"))
    for path in (half, torn):
        assert told(load_recording(path), "max_iterations(1)").verdict == "stopped"
        run = told(load_recording(path), "max_iterations(4)")
        assert (run.verdict, run.why_unknown) == (
            "unknown",
            "the file has no end, and no switch fires in what it holds",
        )
    damaged = told(load_recording(bent), "max_iterations(1)")
    assert (damaged.verdict, damaged.why_unknown) == ("unknown", "the file is damaged")


@pytest.mark.parametrize(
    ("switch", "requests", "after_s"), [("timeout_after(0.05)", 1, 0.05), ("watchdog(0.15)", 0, 0.35)]
)
async def test_what_is_cut_off(tmp_path: Path, switch: str, requests: int, after_s: float):
    """A switch that looks at the time stops where its time is over; what was running then does not count as saved."""

    @tool(read_only=True)
    async def slow() -> str:
        """Take some time."""
        await anyio.sleep(0.1)
        return "so"

    turns = [replace(call("slow"), delay_s=0.1), text("The end.", delay_s=0.3)]
    run = told(await recording_of(tmp_path, turns, slow, clock=SystemClock), switch)
    assert run.stop is not None
    assert (run.verdict, run.lost, run.stop.at) == ("stopped", True, "outside")
    assert run.stop.after_ms == pytest.approx(after_s * 1000, abs=0 if requests else 100)
    assert run.saved.requests == requests
    assert run.saved.seconds == pytest.approx(run.took.seconds - run.stop.after_ms / 1000)


async def test_tokens_that_nobody_counted(tmp_path: Path):
    """A budget of the run's own set something aside for them; without one, nobody knows what a cap would have cut."""
    switch = parse_switch("budget_limit(max_tokens=9000, output_cap=500)")
    silent = [replace(call("look", key="a"), usage=Usage()), text("42", usage=Usage())]
    run = backtest(await recording_of(tmp_path / "with", silent, compose=[switch.block]), [switch])
    assert (run.verdict, run.took.tokens, run.took.usage_unknown) == ("untouched", None, 2)
    run = backtest(await recording_of(tmp_path / "without", silent), [switch])
    assert (run.verdict, str(run.why_unknown)[:40]) == ("unknown", "the tokens of the answer to request 0 of")


async def test_all_of_them(tmp_path: Path):
    """The summary counts what was told of each, and what cannot be told counts for nothing else."""
    good = await recording_of(tmp_path / "a")
    failed = await recording_of(tmp_path / "b", [error("gone")])
    short = await recording_of(tmp_path / "c", [text("The end.")])
    switches = [parse_switch("max_iterations(2)")]
    runs = [backtest(each, switches) for each in (good, failed, short)]
    runs.append(runs[0].model_copy(update={"verdict": "unknown", "stop": None}))
    summary = Summary(switches=tuple(each.text for each in switches))
    for run in runs:
        summary.add(run)
    assert summary.model_dump(exclude={"took", "saved"}) == {
        "kind": "summary", "switches": ("max_iterations(2)",), "runs": 4, "untouched": 2, "stopped": 1,
        "unknown": 1, "ended_well": 2, "lost": 1,
    }  # fmt: skip
    assert summary.saved == runs[0].saved
    assert (summary.took.tokens, summary.took.requests) == (605, 7)


def _rechained(content: bytes) -> bytes:
    """Return lines whose hashes fit again."""
    previous, lines = b"", []
    for line in content.splitlines():
        body, _, _ = line.rpartition(b',"h":"')
        h = hashlib.sha256(previous + body).hexdigest()
        lines.append(b'%b,"h":"%b"}\n' % (body, h.encode()))
        previous = h.encode()
        json.loads(lines[-1])
    return b"".join(lines)


@pytest.mark.parametrize("seed", range(sample(60, 10)))
async def test_files_that_make_no_sense(tmp_path: Path, seed: int):
    """Sound lines in an order that no run has: something is told, or why nothing can be, and nothing is raised."""
    chance = random.Random(seed)
    pair = await run_pair(seed, tmp_path)
    lines = pair.switched.path.read_bytes().splitlines()
    first, *others, last = lines
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(others))
        others[place : place + 1] = [others[place]] * chance.choice((0, 0, 2))
        if chance.random() < 0.5:
            chance.shuffle(others)
        others = others or [last]
    numbered = [
        re.sub(rb'"seq":\d+', b'"seq":%d' % number, line, count=1) for number, line in enumerate([first, *others, last])
    ]
    path = tmp_path / "odd.jsonl"
    path.write_bytes(_rechained(b"\n".join(numbered)))
    recording = load_recording(path)
    assert recording.status == "closed"
    run = backtest(recording, [*pair.switches, parse_switch("timeout_after(0.02)"), parse_switch("watchdog(1)")])
    assert run.verdict in ("untouched", "stopped", "unknown")
    run.model_dump_json()


# --- random runs, with and without their switches ---------------------------------------------------------------------


SEEDS = range(sample(220, 30))
FOUND = (
    "none", "below", "budget_limit request", "tool_limit call", "circuit_breaker result", "circuit_breaker response",
    "max_iterations phase",
)  # fmt: skip
"""What has to be among all of them: each kind of stop, some in agents below, and runs that no switch stops."""


@pytest.mark.slow
async def test_a_backtest_stops_where_the_live_switch_stops(tmp_path: Path):
    """Over random scripts and stacks of switches: same switch, agent, turn, request or call; or neither stops."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        pair = await run_pair(seed, tmp_path)
        live = live_stop(pair.switched)
        told = backtest(pair.plain, pair.switches)
        if told.verdict == "unknown":  # a budget would have let a request wait for others
            seen["unknown"] += 1
            continue
        assert told_stop(told) == live, (seed, [each.text for each in pair.switches], told)
        assert told.verdict == ("untouched" if live is None else "stopped")
        assert left(told) == spent(backtest(pair.switched, [])), (seed, [each.text for each in pair.switches], told)
        seen[live["switch"] + " " + live["at"] if live else "none"] += 1
        seen["below"] += live is not None and live["owner"] != "root"
    assert min(seen[each] for each in FOUND) > sample(1, -1), seen
    assert seen["unknown"] < len(SEEDS) / 8


def live_stop(recording: Recording) -> dict[str, Any] | None:
    """Return where a switch ended the run."""
    for each in recording.records:
        event = each.event
        if isinstance(event, KillswitchFired) and (event.ends or each.owner) == "root":
            return {**event.model_dump(include=FIRED), "owner": each.owner, "turn": each.iteration}
    return None


FIRED = {"switch", "on_trigger", "at", "reason", "request", "attempt", "call_id"}
"""What the event of a switch and the backtest both say of it."""


def told_stop(told: RunBacktest) -> dict[str, Any] | None:
    """Return where the backtest says that it would have."""
    return None if told.stop is None else told.stop.model_dump(include={*FIRED, "owner", "turn"})


def left(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls that the backtest does not count as saved."""
    return tuple(getattr(told.took, name) - getattr(told.saved, name) for name in ("tokens", "requests", "calls"))


def spent(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls of a run."""
    assert told.took.tokens is not None
    return told.took.tokens, told.took.requests, told.took.calls
