"""Servers of backends, each started once and sent every scene."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.mlflow_server import mlflow
from tests.backends.phoenix import phoenix
from tests.backends.scenes import TREES, record_all
from tests.backends.servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playhead import RunResult
    from tests.backends.mlflow_server import Mlflow
    from tests.backends.phoenix import Phoenix
    from tests.backends.seen import SeenTrace

PLACE = "mountains"
"""The project, or experiment, that everything is sent to."""
MORE = ("live", "gen-ai", "dead")
"""Runs that tests send beside the scenes."""
STORED_S = 30.0
"""Seconds in which what was accepted has to be stored."""
SERVERS: dict[str, Any] = {"phoenix": phoenix, "mlflow": mlflow}


@dataclass(frozen=True)
class Sent:
    """A backend that was sent every scene."""

    server: Phoenix | Mlflow
    environment: dict[str, str]
    """The variables that name it."""
    runs: dict[str, RunResult]
    """What each run returned."""
    spans: int
    """Spans that were sent."""

    def traces(self) -> dict[str, SeenTrace]:
        """Return the trace of each scene."""
        found = self.server.traces(PLACE, self.spans)
        return {scene: trace for scene, trace in found.items() if scene not in MORE}

    def one_more(self, run_id: str, spans: int) -> SeenTrace:
        """Return the trace of another run, once it has so many spans."""
        late_at = time.monotonic() + STORED_S
        while time.monotonic() < late_at:
            trace = self.server.traces(PLACE, self.spans).get(run_id)
            if trace is not None and len(trace.spans) >= spans:
                return trace
        pytest.fail(f"{run_id} is not there")

    def export(self, *options: str, paths: Sequence[Path] = ()) -> str:
        """Send runs with the command, those of all scenes unless told otherwise, and return what it said."""
        named = [str(path) for path in paths or (run.trace_path for run in self.runs.values())]
        return self.python("-m", "playhead", "export", *named, *options)

    def python(self, *arguments: str) -> str:
        """Run a program that sends to the backend, and return what it printed."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in SERVERS],
)
def sent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    """Start a backend, and send every scene with `playhead export`."""
    folder = tmp_path_factory.mktemp(request.param)
    runs = record_all(_made(folder / "traces"))
    with SERVERS[request.param](_made(folder / "server")) as server:
        backend = Sent(server, server.place(PLACE), runs, sum(len(TREES[scene]) for scene in runs))
        backend.export()
        yield backend


@pytest.fixture(scope="session")
def seen(sent: Sent) -> dict[str, SeenTrace]:
    """What the backend tells of every scene."""
    return sent.traces()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
