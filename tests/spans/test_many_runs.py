"""Many runs and a collector that is not there: they wait for it together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playhead.cli import exporting
from tests.cli.command_line import objects, playhead
from tests.proving import bound
from tests.spans.spans import record_run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

DEAD = "http://127.0.0.1:9"


def test_runs_do_not_each_wait_for_a_dead_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time to try and the time to count are for all of them, and how many got nowhere is said."""
    monkeypatch.setattr(exporting, "TO_COUNT_S", 0.0)
    paths = [record_run(tmp_path, f"run-{number}") for number in range(8)]
    started = time.monotonic()
    result = playhead("export", *paths, "--to", DEAD, "--retry-for", "300ms")
    assert time.monotonic() - started < bound(3)
    assert result.exit_code == 1
    assert "run-7  0 spans sent, the rest not delivered" in result.stdout
    assert "takes nothing: connection refused. Nothing of 8 runs was delivered. " in result.stderr


def test_what_was_counted_in_time_is_said_as_such(tmp_path: Path) -> None:
    """A number is never less than it seems."""
    paths = [record_run(tmp_path, name) for name in ("a", "b")]
    said = objects(playhead("export", *paths, "--to", DEAD, "--retry-for", "10ms", "--json"))
    assert [(run["undelivered"], run["all_counted"]) for run in said] == [(8, True), (8, True)]
