"""A backtest of a recorded run stops where the live switch stops the same script."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from playhead.replay.backtest import backtest
from playhead.trace.events import KillswitchFired, ToolCallCompleted, ToolCallStarted
from tests.proving import sample
from tests.replay.switched_runs import run_pair

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording
    from playhead.replay.backtest_model import RunBacktest, Stop

SEEDS = range(sample(220, 45))
FOUND = (
    "none", "below", "budget_limit request", "tool_limit call", "circuit_breaker result", "circuit_breaker response",
    "max_iterations phase", "require_approval_for approval",
)  # fmt: skip
"""What has to be among all of them: each kind of stop, some in agents below, and runs that no switch stops."""


async def test_a_backtest_stops_where_the_live_switch_stops(tmp_path: Path):
    """Over random scripts and stacks of switches: same switch, agent, turn, request or call; or neither stops.

    So it is for the run that was recorded without the switches, and for the one that had them.
    """
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        pair = await run_pair(seed, tmp_path)
        live = live_stop(pair.switched)
        told = backtest(pair.plain, pair.switches)
        if depends_on_the_order(told, pair.plain):
            seen["depends"] += 1
            assert live is None or told.verdict != "untouched", (seed, told)
            continue
        assert told_stop(told) == live, (seed, [each.text for each in pair.switches], told)
        assert told.verdict == ("untouched" if live is None else "stopped")
        again = backtest(pair.switched, pair.switches)
        assert told_stop(again) == live, (seed, [each.text for each in pair.switches], again)
        if live is None or live["at"] != "approval":  # to ask somebody takes time, in which others go on
            assert left(told) == spent(again), (seed, [each.text for each in pair.switches], told)
        seen[live["switch"] + " " + live["at"] if live else "none"] += 1
        seen["below"] += live is not None and live["owner"] != "root"
    assert min(seen[each] for each in FOUND) > sample(2, -1), seen
    assert seen["depends"] < len(SEEDS) / 8


def depends_on_the_order(told: RunBacktest, plain: Recording) -> bool:
    """Return whether live somebody had to wait while others went on: for a budget, or for an approver.

    The recording cannot know what the others do in that time.
    """
    stop = told.stop
    return told.verdict == "unknown" or (
        stop is not None and stop.at == "approval" and (_runs_beside(stop, plain) or _others_begin(stop, plain))
    )


def _runs_beside(stop: Stop, plain: Recording) -> bool:
    """Return whether other calls than those around it were under way at a stop."""
    running = 0
    for record in plain.records[: stop.seq]:
        running += isinstance(record.event, ToolCallStarted) - isinstance(record.event, ToolCallCompleted)
    return running > stop.owner.count("/")


def _others_begin(stop: Stop, plain: Recording) -> bool:
    """Return whether other calls began while this one ran."""
    for record in plain.records[stop.seq + 1 :]:
        event = record.event
        if isinstance(event, ToolCallCompleted) and (record.owner, event.call_id) == (stop.owner, stop.call_id):
            return False
        if isinstance(event, ToolCallStarted) and not record.owner.startswith(f"{stop.owner}/{stop.tool}@"):
            return True
    return False


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
    reason = None if fired.at == "approval" else fired.reason  # there it is the approver's
    return {"switch": fired.switch, "on_trigger": fired.on_trigger, "at": fired.at, "reason": reason}


def left(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls that the backtest does not count as saved."""
    return tuple(getattr(told.took, name) - getattr(told.saved, name) for name in ("tokens", "requests", "calls"))


def spent(told: RunBacktest) -> tuple[int, ...]:
    """Return the tokens, requests and calls of a run."""
    assert told.took.tokens is not None
    return told.took.tokens, told.took.requests, told.took.calls
