"""docs/cli.md is made of the commands' help, and is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playhead.cli.main import COMMANDS

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_reference_is_current() -> None:
    """`make reference` writes it, whatever the environment; whoever changes an option or a help text runs it."""
    environment = {"COLUMNS": "33", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "playhead.cli.reference"], env=environment, capture_output=True, text=True, check=True,
        cwd=DOCS.parents[1], encoding="utf-8",
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (DOCS.read_text(encoding="utf-8"), "")
    assert all(f"\n## playhead {name}\n" in done.stdout for name in COMMANDS)
