"""Kills processes while they write traces, and looks at what is left.

    python -m tests.trace.killed_writers FOLDER COUNT

A program of its own, because forking is only safe in a process without threads. Prints one JSON object.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import NotATraceError, TraceNotFoundError
from playhead.trace.clock import SystemClock
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.trace.traces import header, read, thought

if TYPE_CHECKING:
    from playhead.trace.events import EventBase

EVENTS = 400
LONGEST_LIFE_S = 0.01
BORN = 0.9
NONE = -1


def event(number: int) -> EventBase:
    """Return the event of this number: mostly small, some of many pages, some with a blob."""
    size = 300_000 if number % 40 == 39 else 50_000 if number % 10 == 9 else number % 7 * 100
    return thought(number, size) if number else header()


def kill_one(path: Path, acknowledged: memoryview, life_s: float, *, born: bool) -> int:
    """Start a writer, kill it, and return the number of the last event that was acknowledged to it.

    Its life is counted from its first event when it is to be `born`, else from the fork.
    """
    acknowledged[0] = NONE
    pid = os.fork()
    if pid == 0:
        clock = SystemClock()
        recorder = Recorder(clock, TraceWriter(path, clock.now_us))
        for number in range(EVENTS):
            if not recorder.emit(event(number), "root"):
                os._exit(1)
            acknowledged[0] = number
        signal.pause()
    while born and acknowledged[0] == NONE:
        time.sleep(0)
    time.sleep(life_s)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, (path.name, status)
    return int(acknowledged[0])


def what_is_left(path: Path, last: int) -> str:
    """Return how the file ends; raise when it lacks an acknowledged event or holds anything that was not written."""
    try:
        records, problems = read(path)
    except (NotATraceError, TraceNotFoundError):
        assert last == NONE, (path.name, last)
        return "unborn"
    written = {last + 1, last + 2}  # the last one perhaps before its writer could tell
    assert len(records) in written, (path.name, len(records), last)
    assert [record.event for record in records] == [event(number) for number in range(len(records))]
    assert [problem.kind for problem in problems] in ([], ["truncated"]), (path.name, problems)
    return "truncated" if problems else "open"


def main(folder: Path, count: int) -> None:
    """Kill `count` writers at random moments."""
    dice = random.Random(20260101)
    acknowledged = memoryview(mmap.mmap(-1, 8)).cast("q")  # shared; written at once, so that no kill comes between
    endings: Counter[str] = Counter()
    total = 0
    for number in range(count):
        path = folder / f"{number}.jsonl"
        last = kill_one(path, acknowledged, dice.uniform(0, LONGEST_LIFE_S), born=dice.random() < BORN)
        endings[what_is_left(path, last)] += 1
        total += last + 1
        path.unlink(missing_ok=True)
        shutil.rmtree(folder / f"{number}.blobs", ignore_errors=True)
    print(json.dumps({"endings": endings, "acknowledged": total}))  # noqa: T201 - this is its answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
