"""A child that is forked in a tool while the first runs of a process go on can do whatever its parent can, and never hangs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.findings.forking import WHAT
from tests.proving import sample

ROUNDS = int(os.environ.get("PLAYHEAD_TEST_ROUNDS", "1"))


@pytest.mark.parametrize("what", sample(list(WHAT), list(WHAT)[::4]))
def test_no_child_hangs(what):
    """Four first runs beside each other fork six children each, and every child comes to its end."""
    command = [sys.executable, "-m", "tests.findings.forking", what, str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr[-2000:]) == (f"children {24 * ROUNDS} hung 0 wrong []\n", "")
