"""A backtest of a recorded run stops where the live switch stops the same script."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from playhead.replay.backtest import backtest
from playhead.trace.events import KillswitchFired
from tests.proving import sample
from tests.replay.switched_runs import run_pair

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording
    from playhead.replay.backtest import RunBacktest

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
    assert min(seen[each] for each in FOUND) > sample(2, -1), seen
    assert seen["unknown"] < len(SEEDS) / 8


def live_stop(recording: Recording) -> dict[str, Any] | None:
    """Return where a switch ended the run."""
    for record in recording.records:
        event = record.event
        if isinstance(event, KillswitchFired) and (event.ends or record.owner) == "root":
            where = {"owner": record.owner, "turn": record.iteration, "request": event.request}
            return {**_fired(event), **where, "attempt": event.attempt, "call_id": event.call_id or None}
    return None


def told_stop(told: RunBacktest) -> dict[str, Any] | None:
    """Return where the backtest says that it would have."""
    if told.stop is None:
        return None
    return {
        **_fired(told.stop),
        **told.stop.model_dump(include={"owner", "turn", "request", "attempt", "call_id"}),
    }


def _fired(fired: Any) -> dict[str, Any]:
    return {"switch": fired.switch, "on_trigger": fired.on_trigger, "at": fired.at, "reason": fired.reason}


def left(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls that the backtest does not count as saved."""
    return tuple(getattr(told.took, name) - getattr(told.saved, name) for name in ("tokens", "requests", "calls"))


def spent(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls of a run."""
    assert told.took.tokens is not None
    return told.took.tokens, told.took.requests, told.took.calls
