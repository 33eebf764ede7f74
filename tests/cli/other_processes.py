"""Runs in processes of their own, for the tests that reach them from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.testing import TickingClock
from playhead.trace.events import RunCompleted, RunStarted
from playhead.trace.header import AgentHeader
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[2]

PROGRAM = """
import sys, time
from pathlib import Path
from playhead.kernel.lifecycle.own_control import OwnControl
from tests.cli.other_processes import begin, end
manner, *paths = sys.argv[1:]
runs = [(begin(Path(path)), OwnControl.create(Path(path))) for path in paths]
print("ready", flush=True)
while manner != "ends":
    for recorder, control in runs:
        why = control.kill_requested()
        if why is not None and manner == "obeys":
            end(recorder, why)
            control.close()
            print("ended", flush=True)
            time.sleep(60)
        if why is not None and manner == "dies":
            sys.exit(3)
    time.sleep(0.005)
"""


def begin(path: Path) -> Recorder:
    """Begin a trace."""
    clock = TickingClock()
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    header = AgentHeader(name="agent", model="x/y")
    recorder.emit(RunStarted(format="2.0", run_id=path.stem, agent=header, task="go"), "root")
    return recorder


def end(recorder: Recorder, why: str) -> None:
    """End a trace as a run does that was asked to."""
    event = RunCompleted(status="done", terminated_by="kill", terminated_source="kill", terminated_because=why)
    recorder.emit(event, "root")
    recorder.seal()


@contextmanager
def running(manner: str, *paths: Path) -> Iterator[subprocess.Popen[Any]]:
    """Run runs in a process that obeys, ignores or dies of a request to end; or `ends` at once, without clearing up."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, manner, *map(str, paths)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if manner == "ends":
            process.wait(30)
        yield process
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
