"""An acknowledged event survives SIGKILL."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

KILLS = sample(1000, 100)


def test_every_kill(tmp_path: Path):
    """Writers killed at random moments (a thousand under `make prove`) lose no acknowledged event, and every file loads."""
    program = [sys.executable, "-m", "tests.trace.killed_writers", str(tmp_path), str(KILLS)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=110, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    result = json.loads(done.stdout)
    assert sum(result["endings"].values()) == KILLS
    assert set(result["endings"]) <= {"open", "truncated", "unborn"}
    assert result["endings"]["open"] > KILLS / 2, "most have to live long enough to write something"
    assert result["acknowledged"] > 10 * KILLS
