"""Replays on a local Ray cluster (`make test-ray`): two workers give the verdict of one, in less time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead import Agent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ray


def test_two_workers_beat_one(tmp_path: Path) -> None:
    """Thirty replays with a model that takes a tenth of a second."""
    from examples.many_runs.ray_cluster import SlowModel, replay_on_ray

    agent = Agent(SlowModel(), trace=tmp_path)
    for _ in range(30):
        agent.run_sync("6 * 7?")
    one, seconds = replay_on_ray(tmp_path, 1)
    two, fewer_seconds = replay_on_ray(tmp_path, 2)
    assert (one.verdict.verdict, one.verdict.judged, two.verdict.judged) == ("PASS", 30, 30)
    assert fewer_seconds < seconds
