"""`export` when something is not as it should be: nothing is left out, emptied or waited for without a word."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_line import objects, playhead
from tests.cli.test_export import collector, no_telemetry  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spans.collector import Collector


def test_a_trace_that_cannot_be_read_is_named_when_runs_are_chosen_by_time(
    store: Path,
    collector: Collector,  # noqa: F811
) -> None:
    """It does not say when it began, so the last time that it was written counts; the others are sent."""
    for name in ("bad", "old"):
        (store / f"{name}.jsonl").write_bytes(b"x" + (store / "good.jsonl").read_bytes()[1:])
    os.utime(store / "old.jsonl", (0, 0))
    result = playhead("export", "--since", "2026-09-01", "--to", collector.address, "--json")
    assert result.exit_code == 3
    assert {run["run"]: run["sent"] for run in objects(result)} == {"good": 4, "bad": 0}
    assert "bad: its spans cannot be sent: bad.jsonl is not a Playhead trace" in result.stderr


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "is a directory"),
        ("no/x.json", "No such file or directory"),
        ("good.jsonl/x.json", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error_of_the_command_line(store: Path, output: str, said: str) -> None:
    """It says why, and what would be right."""
    result = playhead("export", "good", "--format", "otlp-json", "-o", store / output)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{str(store / output).rstrip('/')}'" in result.stderr
    assert said in result.stderr
