"""`diff`: two runs, or a replay and its original; the exit code is that of diff(1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.diff import diff_recordings
from playhead.replay import load_recording
from playhead.replay.engine import replay_sync
from playhead.testing import ScriptedModel, text
from tests.cli.command_line import objects, playhead
from tests.cli.recorded import record_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def replayed(store: Path) -> str:
    """The id of a replay of `good` whose model answers at once."""
    model = ScriptedModel([text("I do not know.")], name="scripted/model")
    return replay_sync(store / "good.jsonl", {"model": model, "task": "How high?"}, trace=store).run.run_id


def test_two_runs_that_differ(store: Path) -> None:
    """Exit 1; the answers stand beside each other; as JSON it is the diff of the two recordings."""
    record_run(store, "other", answer="5,199 metres.")
    result = playhead("diff", "good", "other")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "- 4,180 feet." in result.stdout
    assert "+ 5,199 metres." in result.stdout
    as_json = playhead("diff", "good", "other", "--json")
    assert as_json.exit_code == 1
    assert objects(as_json) == [diff_recordings(load_recording("good"), load_recording("other")).as_json()]


def test_a_replay_alone_is_compared_with_its_original(store: Path, replayed: str, tmp_path: Path) -> None:
    """From the folder that it is in, also when it is named by its path."""
    both = playhead("diff", "good", replayed)
    assert both.exit_code == 1
    assert playhead("diff", replayed).stdout == both.stdout
    (store / "good.jsonl").rename(tmp_path / "good.jsonl")
    (store / "replays" / f"{replayed}.jsonl").rename(tmp_path / f"{replayed}.jsonl")
    assert playhead("diff", tmp_path / f"{replayed}.jsonl").stdout == both.stdout


def test_a_replay_whose_original_is_gone(store: Path, replayed: str) -> None:
    """It says which run is missing, and where it was looked for."""
    (store / "good.jsonl").unlink()
    result = playhead("diff", replayed)
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"no run 'good' in {store}" in result.stderr


def test_what_cannot_be_told(store: Path) -> None:
    """A run without an end and a damaged file: exit 4, said on stderr, and shown as far as it goes."""
    lines = (store / "good.jsonl").read_bytes().splitlines(keepends=True)
    (store / "open.jsonl").write_bytes(b"".join(lines[:-2]))
    (store / "damaged.jsonl").write_bytes(b"".join(lines).replace(b"Mount Zed", b"Mount Ted"))
    for name, said in (("open", "has no end"), ("damaged", "is damaged")):
        result = playhead("diff", "good", str(store / f"{name}.jsonl"))
        assert result.exit_code == 4
        assert result.stderr.startswith(f"{name}.jsonl {said}")
        assert "First divergence" in result.stdout
        assert playhead("diff", str(store / f"{name}.jsonl"), "good", "--json").exit_code == 4
