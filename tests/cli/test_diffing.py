"""`diff`: two runs, or a replay and its original; the exit code is that of diff(1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.diff import diff_recordings
from playhead.replay import load_recording
from playhead.testing import ScriptedModel, text
from tests.again import replay_sync
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


def test_a_replay_whose_original_is_gone(store: Path, replayed: str) -> None:
    """It says which run is missing, and where it was looked for."""
    (store / "good.jsonl").unlink()
    result = playhead("diff", replayed)
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"no run 'good' in {store}" in result.stderr


def test_a_page_of_a_run_of_two_and_of_many(store: Path, home: Path) -> None:
    """`report` writes the page of a run, of two side by side, or of those that conditions choose; a damaged run exits 1."""
    other = record_run(store, "other", answer="5,199 metres.")
    written = playhead("report", "good", "--json")
    assert (written.exit_code, written.stderr) == (0, "")
    assert objects(written) == [
        {"path": "report.html", "runs": ["good"], "bytes": (home / "report.html").stat().st_size}
    ]
    assert "5,199 metres" not in (home / "report.html").read_text()
    assert playhead("report", "good", "--against", "other", "-o", "pair.html").stdout == "wrote pair.html\n"
    assert "5,199 metres" in (home / "pair.html").read_text()
    many = playhead("report", "--tool", "lookup", "-o", "many.html", "--json")
    assert (many.exit_code, sorted(objects(many)[0]["runs"])) == (0, ["good", "other"])
    assert playhead("report", "good", "other", "--against", "good").exit_code == 2
    other.write_text(other.read_text().replace("5,199", "5,198"))
    assert [playhead("report", *runs).exit_code for runs in (["other"], ["good", "other"])] == [1, 1]
