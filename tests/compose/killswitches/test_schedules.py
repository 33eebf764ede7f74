"""Random concurrent schedules under random stacks of killswitches. Each failure prints its seed."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from playhead import PlayheadError, load_recording
from playhead.replay import reproduce
from tests.compose.killswitches import oracle
from tests.compose.killswitches.agents import Schedule
from tests.compose.killswitches.provider import Provider
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = sample(20, 1)
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "exact": (sample(600, 30), {}),
    "bytes": (sample(200, 10), {"bound": "bytes", "counts": None}),
    "undercounted": (sample(100, 10), {"counts": 2 / 3}),
    "outside": (sample(100, 10), {"outside": True}),
}
"""How many schedules of which kind."""
LIMIT_S = 20
"""Seconds in which a schedule ends, also on a machine that does much else; they take some milliseconds."""


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("kind", KINDS)
async def test_every_schedule(kind: str, group: int, tmp_path: Path):
    """Budgets and limits hold, one cause ends an agent, nothing starts after it, and the file alone repeats the run.

    With an exact count, and with `prompt_bound="bytes"`, nothing is spent above a budget; else at most the prompt
    tokens that were counted too low in requests that were under way together.
    """
    schedules, options = KINDS[kind]
    for number in range(group * schedules // GROUPS, (group + 1) * schedules // GROUPS):
        seed = f"{kind} {number}"
        try:
            await _check(seed, options, tmp_path)
        except BaseException as error:
            error.add_note(f"seed: {seed!r}")
            raise


async def _check(seed: str, options: dict[str, Any], folder: Path) -> None:
    schedule = Schedule(random.Random(seed), Provider(), **options)
    agent = schedule.agent(folder)
    run_id = seed.replace(" ", "-")
    with suppress(PlayheadError), anyio.fail_after(LIMIT_S):
        await agent.run("task", run_id=run_id)
    recording = load_recording(folder / f"{run_id}.jsonl")
    oracle.check_whole(recording)
    oracle.check_causes(recording)
    oracle.check_calls(recording, schedule)
    exact = schedule.counts in (None, 1)
    oracle.check_spending(recording, schedule, 0 if exact else schedule.provider.undercounted)
    if exact:
        oracle.check_refusals(recording, schedule)
    outcome = await reproduce(recording)
    assert outcome.divergences == (), outcome.divergences[0]
    (folder / f"{run_id}.jsonl").unlink()
