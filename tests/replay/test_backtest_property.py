"""A backtest of a recorded run stops where the live switch stops the same script."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from playhead.replay.backtest import backtest
from playhead.trace.events import KillswitchFired, LlmRequested, LlmResponded
from tests.replay.switched_runs import run_pair

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording
    from playhead.replay.backtest_model import RunBacktest

SEEDS = range(1000)


async def test_a_backtest_stops_where_the_live_switch_stops(tmp_path: Path):
    """Over random scripts and stacks of switches: same switch, agent, turn, request or call; or neither stops.

    So it is for the run that was recorded without the switches, and for the one that had them.
    """
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        pair = await run_pair(seed, tmp_path)
        live = live_stop(pair.switched)
        told = backtest(pair.plain, pair.switches)
        if depends_on_the_order(told):
            seen["depends"] += 1
            assert (live is None) == (told.stop is None), (seed, told)
            continue
        assert told_stop(told) == live, (seed, [each.text for each in pair.switches], told)
        assert told.verdict == ("untouched" if live is None else "stopped")
        again = backtest(pair.switched, pair.switches)
        assert told_stop(again) == live, (seed, [each.text for each in pair.switches], again)
        if live is None or live["at"] != "approval":  # to ask somebody takes time, in which others go on
            assert left(told) == spent(pair.switched), (seed, [each.text for each in pair.switches], told)
        seen[live["switch"] + " " + live["at"] if live else "none"] += 1
        seen["below"] += live is not None and live["owner"] != "root"
    print(seen)
    assert seen["none"] > 50


def depends_on_the_order(told: RunBacktest) -> bool:
    """Return whether live somebody had to wait while others went on: for a budget, or for an approver.

    The recording cannot know what the others do in that time.
    """
    waits = any("would have waited" in note for note in told.notes)
    stop = told.stop
    return waits or (stop is not None and stop.at == "approval" and len(stop.in_flight) > stop.step.owner.count("/"))


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
    return {**_fired(told.stop), **told.stop.step.model_dump(include={"owner", "turn", "request", "attempt", "call_id"})}


def _fired(fired: Any) -> dict[str, Any]:
    reason = None if fired.at == "approval" else fired.reason  # there it is the approver's
    return {"switch": fired.switch, "on_trigger": fired.on_trigger, "at": fired.at, "reason": reason}


def left(told: RunBacktest) -> tuple[int, int]:
    """Return the tokens and requests that the backtest does not count as saved."""
    return told.took.tokens - told.saved.tokens, told.took.requests - told.saved.requests


def spent(recording: Recording) -> tuple[int, int]:
    """Return the tokens and requests of a run."""
    events = [record.event for record in recording.records]
    tokens = sum(event.usage.total_tokens for event in events if isinstance(event, LlmResponded))
    return tokens, sum(isinstance(event, LlmRequested) for event in events)
