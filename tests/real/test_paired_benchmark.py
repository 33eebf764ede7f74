"""The paired benchmark on the real model (`make test-real`): a bare loop and Playhead's kernel, with native calls and in text.

It is about an hour's work for a 1.5B model on two quiet cores. REAL_TASKS=3 and REAL_REPEATS=1 make a
quick look of it. Runs are kept in `build/real_tasks/`: after a crash, the same command goes on where it stopped.
"""

from __future__ import annotations

import json
import os

import pytest

from benchmarks.real_tasks.__main__ import paired
from benchmarks.real_tasks.arms import BARE, IN_TEXT, KERNEL
from benchmarks.real_tasks.report import by_arm, difference, endings, paired_report
from benchmarks.real_tasks.setting import REPEATS
from benchmarks.real_tasks.tasks import TASKS
from playhead.diagnose.integrity import check_trace
from tests.again import reproduce_sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(3 * 3600)]


def test_paired_runs_of_all_arms_are_recorded_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Every task is run by all arms as often as asked; every run is on disk, and each of Playhead's is reproduced.

    Which loop is better is printed, not asserted: that is a measurement.
    """
    tasks = int(os.environ.get("REAL_TASKS", len(TASKS)))
    repeats = int(os.environ.get("REAL_REPEATS", REPEATS))
    with capsys.disabled():
        print()  # noqa: T201 - an hour's work is to be seen
        runs, folder = paired(tasks, repeats)
        print(f"\n{paired_report(runs)}\n\n{endings(runs)}")  # noqa: T201 - that is what it is for
    arms = by_arm(runs)
    assert {name: len(each) for name, each in arms.items()} == dict.fromkeys((BARE, KERNEL, IN_TEXT), tasks * repeats)
    for arm in (KERNEL, IN_TEXT):
        found = difference(runs, arm)
        assert (found.tasks, found.pairs) == (tasks, tasks * repeats)
        assert found.low <= found.mean <= found.high
    for run in arms[BARE]:
        assert [json.loads(line) for line in (folder / run.recording).read_text().splitlines()]
    for run in arms[KERNEL] + arms[IN_TEXT]:
        path = folder / run.recording
        assert check_trace(path).ok, path
        assert reproduce_sync(path).divergences == (), path
