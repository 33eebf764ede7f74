"""`export` of runs whose process cannot be seen: containers have another name each time, and machines share a disk."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from playhead.trace.control import Control
from tests.cli.command_line import objects, playhead
from tests.cli.test_export import collector, no_telemetry  # noqa: F401 - fixtures
from tests.spans.spans import ids_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spans.collector import Collector

HOST = "container-a1b2"


@pytest.fixture
def elsewhere(store: Path) -> Path:
    """The trace of a run of another machine, which was killed before its last two events."""
    path = store / "open.jsonl"
    path.write_bytes(b"".join((store / "good.jsonl").read_bytes().splitlines(keepends=True)[:-2]))
    control = Control.create(path)
    said = json.loads(control.process_file.read_bytes())
    control.process_file.write_text(json.dumps({**said, "host": HOST}))
    assert control._lock is not None
    os.close(control._lock)  # as its death does
    return path


def test_open_spans_wait_as_long_as_it_may_go_on(elsewhere: Path, collector: Collector) -> None:  # noqa: F811
    """It names the machine and the way out, and is no success; then the way is gone, and all spans are there."""
    result = playhead("export", elsewhere, "--to", collector.address, "--resume")
    assert (result.exit_code, "it may still go on elsewhere" in result.stdout) == (1, True)
    assert (
        f"open: it began on the machine '{HOST}', and whether it is still running there cannot be seen" in result.stderr
    )
    assert "Its open spans are sent with --assume-dead" in result.stderr
    result = playhead("export", elsewhere, "--to", collector.address, "--resume", "--assume-dead", "--json")
    said = objects(result)[0]
    assert (result.exit_code, result.stderr) == (0, "")
    assert (said["sent"], said["interrupted"], said["perhaps_on"], said["running"]) == (1, 1, None, False)
    assert collector.counts == Counter(ids_of(elsewhere))


def test_one_whose_lock_is_held_goes_on_whatever_is_assumed(
    elsewhere: Path,
    collector: Collector,  # noqa: F811
) -> None:
    """As a container on the same machine: its lock is seen, whatever its name is."""
    import fcntl

    control = Control.of(elsewhere)
    assert control is not None
    with control.process_file.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = playhead("export", elsewhere, "--to", collector.address, "--assume-dead", "--json")
    said = objects(result)[0]
    assert (said["running"], said["perhaps_on"], said["interrupted"], result.exit_code) == (True, None, 0, 0)
