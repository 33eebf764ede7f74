"""The first divergence of a planted change is at the planted change, in runs of random agents."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from playhead import PlayheadError, load_recording
from playhead.diagnose.diff import diff_recordings
from tests.diagnose.edits import apply_edits, tool_sequence
from tests.diagnose.planted import Planted, plant, renamed
from tests.proving import sample
from tests.replay.random_agents import Outside, random_agent

if TYPE_CHECKING:
    from playhead.diagnose.recording import Recording

AGENTS = sample(55, 12)
PLANTED_EACH = 12


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """Runs of random agents."""
    folder = tmp_path_factory.mktemp("random")
    for seed in range(AGENTS):
        with suppress(PlayheadError):
            random_agent(seed, Outside(), trace=folder).run_sync("Do it.", run_id=f"run-{seed}")
    return [load_recording(path) for path in sorted(folder.glob("*.jsonl"))]


@pytest.mark.slow
def test_a_run_is_the_same_as_itself_under_other_ids_and_times(recordings: list[Recording]) -> None:
    """Ids of providers, ids of runs and times are no difference, in both directions."""
    for recording in recordings:
        other = renamed(recording)
        for diff in (
            diff_recordings(recording, recording),
            diff_recordings(recording, other),
            diff_recordings(other, recording),
        ):
            assert (diff.first_divergence, diff.first_decision, diff.tool_sequence) == (None, None, ())
            assert (diff.identical, diff.inputs, diff.results, diff.rationale_changes) == (True, (), (), ())


@pytest.mark.slow
def test_the_first_divergence_is_where_the_change_was_planted(recordings: list[Recording]) -> None:
    """Whatever was changed, put in or left out: the diff names that event, and its edits make the other sequence."""
    chance = random.Random(7)
    planted: Counter[str] = Counter()
    for recording in recordings:
        for _ in range(PLANTED_EACH):
            change = plant(recording, chance)
            if change is None:
                continue
            planted[change.kind.split()[0]] += 1
            check(recording, change)
    assert planted.total() >= sample(500, 100)
    assert min(planted.values()) >= sample(10, 2), planted


def check(recording: Recording, change: Planted) -> None:
    """Compare with the changed run as another run would have recorded it."""
    other = renamed(change.replay)
    diff = diff_recordings(recording, other)
    found = diff.first_divergence
    assert found is not None, change.kind
    where = (recording.run_id, change.kind, found.change, found.what)
    if change.original_seq is None:
        assert found.replay_seq == change.replay_seq, where
    elif found.original_seq != change.original_seq:
        assert change.kind.startswith("missing"), where
        assert is_equal_neighbour(recording, change.original_seq, found.original_seq), where
    assert apply_edits(diff.tool_sequence, tool_sequence(recording)) == tool_sequence(other), where
    back = diff_recordings(other, recording)
    assert back.identical == diff.identical, where
    assert back.first_divergence is not None, where


def is_equal_neighbour(recording: Recording, one: int | None, other: int | None) -> bool:
    """Return whether two events of an owner are the same: then nobody can say which of them is missing."""
    if one is None or other is None:
        return False
    left, right = recording.records[one], recording.records[other]
    return (left.owner, left.iteration, left.event) == (right.owner, right.iteration, right.event)
