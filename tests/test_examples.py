"""Every example runs, and prints what it is there to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "tools"))
EXPECTED = {
    "approval": ["I paid 20 back.", "paid: [20.0]"],
    "record_and_reproduce": [
        "Mount Zed is 4,180 feet high, that is 1,274 metres.",
        "end_turn: 3 turns, 34 tokens",
        "check: ok",
        "lookup: the height is asked for",
        "calculator: no reason stated",
        "identical: True",
    ],
    "sub_agents": [
        "root: Thanks.",
        "root/researcher@0.0: Mount Zed is 4,180 feet high.",
        "root/researcher@0.1: Lake Quill is 61 metres deep and 9 square kilometres large.",
        "identical: True",
    ],
}


def test_every_example_is_here() -> None:
    """No example is left out."""
    assert sorted(EXPECTED) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str, tmp_path: Path) -> None:
    """An example works as it stands, in a new process with an empty home."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.{name}"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = [line for line in done.stdout.splitlines() if not line.startswith("kind=")]
    assert printed == EXPECTED[name]
