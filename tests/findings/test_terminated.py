"""A process that is told to end at any moment, or killed, leaves closed traces or such as load as interrupted, and no litter."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.trace.control import FOLDER
from tests.findings.terminating import WHAT
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("PLAYHEAD_TEST_ROUNDS", "1"))
CREATES = """
import os, sys
from pathlib import Path
from playhead.kernel.lifecycle.own_control import OwnControl
made = [OwnControl.create(Path(name)) for name in sys.argv[1:]]
print("made", flush=True)
sys.stdin.read()
os._exit(9)
"""


MOMENTS = [(how, signal) for how in WHAT for signal in ("SIGTERM", "SIGKILL")]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "signal"), sample(MOMENTS, MOMENTS[1::3]))
def test_a_signal_at_any_moment(how, signal):
    """Every file loads, open ones are sound, and the next run removes what is left."""
    command = [sys.executable, "-m", "tests.findings.terminating", how, signal, str(sample(15, 4) * ROUNDS), "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (kinds,) = done.stdout.splitlines()
    assert done.returncode == 0
    assert ("'closed'" in kinds, "'open'" in kinds) == (True, signal == "SIGKILL" or how == "in_threads")


@pytest.fixture
def leaves(tmp_path: Path):
    """Return what makes control folders in another process, which lives until the test ends, or is killed."""
    programs: list[subprocess.Popen[str]] = []

    def make(*names: str, dies: bool) -> None:
        paths = [str(tmp_path / f"{name}.jsonl") for name in names]
        command = [sys.executable, "-c", CREATES, *paths]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        programs.append(program)
        assert program.stdout is not None
        program.stdout.readline()
        if dies:
            program.kill()
            program.wait()

    yield make
    for program in programs:
        program.kill()
        program.communicate()


def folders(folder: Path) -> list[str]:
    """Return the runs that have a control folder."""
    return sorted(path.name for path in (folder / FOLDER).iterdir()) if (folder / FOLDER).exists() else []


@pytest.mark.slow
def test_the_folders_of_dead_runs_are_cleared(tmp_path, leaves):
    """The next process that records a run there removes what killed ones have left, and nothing of one that lives."""
    leaves("dead", "dead-too", dies=True)
    leaves("alive", dies=False)
    half = tmp_path / FOLDER / "half"
    half.mkdir(mode=0o700)
    (half / "process.json").write_bytes(b'{"pid"')
    elsewhere = tmp_path / FOLDER / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "process.json").write_bytes(b'{"pid": 1, "created_us": 1, "host": "another-machine"}')
    control = OwnControl.create(tmp_path / "own.jsonl")
    assert folders(tmp_path) == ["alive", "elsewhere", "own"]
    control.close()
    assert folders(tmp_path) == ["alive", "elsewhere"]
