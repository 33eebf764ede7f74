"""Random programs reproduce, whatever order their tasks and threads take, and planted changes are noticed."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import playhead
from playhead.replay.strands import strands_of
from tests.instrument import random_programs as made_up
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

    from playhead import Recording


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record into a folder of the test."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))


def answered_differently(recording: Recording) -> bool:
    """Return whether several strands of an owner did the same, and were answered differently."""
    found: dict[Any, set[Any]] = defaultdict(set)
    for owner, strands in strands_of(recording, {"request", "call", "fact"}).items():
        for each in strands.entries:
            found[owner, each.kind, each.name, each.key].add((each.strand, each.outcome()))
    return any(len({strand for strand, _ in each}) > 1 < len({answer for _, answer in each}) for each in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("seed", sample(range(400), range(12)))
async def test_a_random_program_reproduces_or_is_inconclusive_for_a_reason(seed: int, *, pauses: bool) -> None:
    """Nothing real is called, no result is another call's, and *inconclusive* has its one reason; a pause of its own is one more."""
    rng, tasks = random.Random(seed), asyncio.all_tasks()
    node = made_up.made(rng)
    made_up.JITTER.seed(seed)
    made_up.PAUSES[0] = pauses
    with suppress(ValueError):
        await made_up.program(made_up.encoded(node))
    await made_up.drain(tasks)
    found = (playhead.load_recording(f"latest~{number}") for number in range(20))
    recording = next(
        each for each in found if each.header.agent.name == "program"
    )  # tasks left at work are runs of their own
    for again in range(2):
        before = made_up.SERVERS.asked, len(made_up.RAN)
        made_up.JITTER.seed(-seed - again - 1)
        outcome = await recording.reproduce(program=made_up.program)
        await made_up.drain(tasks)
        assert (made_up.SERVERS.asked, len(made_up.RAN)) == before
        if outcome.ambiguous:
            raced = ("may vary" in each or "is not now" in each for each in outcome.ambiguous)
            assert answered_differently(recording) or (pauses and any(raced))
        else:
            assert (outcome.divergences, outcome.identical) == ((), True)

    if "raise" in str(made_up.encoded(node)):
        return  # what follows an error is not reached
    changed = made_up.planted(rng, node)
    outcome = await recording.reproduce(program=made_up.program, args={"node": made_up.encoded(changed)})
    assert not outcome.identical
    if not outcome.ambiguous:
        noticed = (
            "planted" in f"{each.actual}" or "of the call of nested differs" in each.what
            for each in outcome.divergences
        )
        assert any(noticed)
