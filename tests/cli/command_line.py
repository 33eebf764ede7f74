"""Ways to run a command line, for the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from playhead.cli.main import commands

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def playhead(*arguments: str | Path, **options: Any) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], **options)


def objects(result: Result) -> list[dict[str, Any]]:
    """Return the JSON objects that a command wrote, one a line."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own, its output in pipes."""
    return subprocess.run(
        [sys.executable, "-m", "playhead", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
