"""The recordings in `traces/`: real models, kept as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jsonlines
import pytest

from playhead.diagnose.integrity import check_trace
from playhead.replay import load_recording

if TYPE_CHECKING:
    from playhead.replay.pytest_plugin import PlayheadRun

FOLDER = Path(__file__).parents[1] / "traces"
SAMPLES = sorted(FOLDER.glob("*.jsonl"))


def test_there_are_samples_and_each_is_described() -> None:
    """The folder holds what the README of the folder describes, and nothing else."""
    described = [
        line.split("`")[1] for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| `")
    ]
    assert described == [path.name for path in SAMPLES]
    assert len(SAMPLES) >= 5


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_it_is_whole_and_unchanged(path: Path) -> None:
    """Nobody has edited a sample, and any JSON Lines reader reads it."""
    assert check_trace(path).verdict == "ok"
    with jsonlines.open(path) as lines:
        assert [line["seq"] for line in lines] == list(range(len(load_recording(path).records)))


@pytest.mark.parametrize(
    "name", [pytest.param(path.stem, marks=pytest.mark.playhead(f"traces/{path.name}")) for path in SAMPLES]
)
def test_the_code_still_does_what_was_recorded(name: str, playhead_run: PlayheadRun) -> None:
    """Every event of a run of a real model comes out the same, without that model."""
    ending = playhead_run.recording.ending
    assert ending is not None
    assert playhead_run() == ending.output, name
