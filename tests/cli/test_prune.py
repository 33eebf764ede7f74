"""`playhead prune`: what it removes, what it keeps, and that it only says so without --yes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from playhead.kernel.lifecycle.own_control import OwnControl
from playhead.trace.events import MessageAdded
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter
from tests.cli.command_line import objects, playhead
from tests.trace.traces import Ticks, ending, header

if TYPE_CHECKING:
    from pathlib import Path

DAY_US = 86_400_000_000


def written(folder: Path, run_id: str, days: int, *, end: bool = True, size: int = 0, **fields: Any) -> Path:
    """Write a run that began so many days ago."""
    path = folder / f"{run_id}.jsonl"
    path.parent.mkdir(exist_ok=True)
    clock = Ticks(time.time_ns() // 1000 - days * DAY_US - DAY_US // 2)
    recorder = Recorder(clock, TraceWriter(path, clock.now_us))
    recorder.emit(header(run_id=run_id).model_copy(update=fields), "root")
    recorder.emit(MessageAdded(id=0, role="user", content="." * size), "root")
    if end:
        recorder.emit(ending(), "root")
    recorder.seal()
    return path


def left(folder: Path) -> set[str]:
    """Return the runs that are left."""
    return {path.name.partition(".")[0] for path in folder.glob("*.jsonl*")}


@pytest.fixture
def runs(folder: Path) -> Path:
    """A folder with five runs, of which `e` is the newest; `b` has no end."""
    for days, run_id in enumerate("edcba"):
        written(folder, run_id, days, end=run_id != "b")
    return folder


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ("--older-than 2d", "abc"), ("--older-than 9d", ""), ("--keep 2", "abc"), ("--keep 9", ""),
        ("--older-than 1d --keep 3", "ab"), ("--older-than 3d --keep 1", "ab"), ("--ended interrupted", "b"),
        ("--ended answered", "acde"), ("--ended answered --keep 1", "acd"), ("--ended answered --older-than 3d", "a"),
        ("--max-size 0", "abcde"), ("--max-size 1GB", ""), ("a c", "ac"), ("latest --older-than 2d", ""),
        ("--ended answered --ended interrupted --keep 4", "a"),
    ],
)  # fmt: skip
def test_conditions_add_up(runs: Path, options: str, gone: str):
    """Each narrows the runs; without --yes they are listed only."""
    dry = playhead("prune", *options.split(), "--json")
    assert (dry.exit_code, {each["run_id"] for each in objects(dry)}, left(runs)) == (0, {*gone}, {*"abcde"})
    assert playhead("prune", *options.split(), "--yes").exit_code == 0
    assert left(runs) == {*"abcde"} - {*gone}


def test_the_setting_is_a_condition_where_none_is_given(runs: Path, monkeypatch: pytest.MonkeyPatch):
    """It removes on request only, and narrows neither named runs nor another condition."""
    refused = playhead("prune", "--yes")
    assert (refused.exit_code, left(runs)) == (2, {*"abcde"})
    assert "PLAYHEAD_RETENTION_DAYS" in refused.stderr
    monkeypatch.setenv("PLAYHEAD_RETENTION_DAYS", "4")
    dry = playhead("prune", "--json")
    assert (dry.exit_code, {each["run_id"] for each in objects(dry)}, left(runs)) == (0, {"a"}, {*"abcde"})
    assert dry.stderr.startswith("runs that began more than 4 days ago (PLAYHEAD_RETENTION_DAYS)\n1 run, ")
    assert playhead("prune", "e", "--yes").exit_code == 0
    assert left(runs) == {*"abcd"}
    assert playhead("prune", "--yes").exit_code == 0
    assert left(runs) == {*"bcd"}


def test_the_oldest_go_until_the_rest_fits(folder: Path):
    """Large values count, and so does what is not chosen."""
    paths = [written(folder, run_id, days, size=10_000) for days, run_id in enumerate("cba")]
    size = sum(path.stat().st_size for path in paths)
    assert playhead("prune", "--max-size", str(size), "--yes").exit_code == 0
    assert left(folder) == {*"abc"}
    playhead("prune", "--max-size", f"{size - 1}B", "--yes")
    assert left(folder) == {*"bc"}
    (folder / "c.blobs").mkdir()
    (folder / "c.blobs" / ("0" * 64)).write_bytes(b"x" * 2_000_000)
    playhead("prune", "--max-size", "1.9MiB", "--yes")
    assert left(folder) == set()


def test_everything_about_a_run_goes(folder: Path):
    """Its large values, drafts, cursors and control files, and its head; nothing of another run; the folders stay private."""
    written(folder, "old", 5, size=300_000)
    written(folder, "new", 0, size=300_000)
    for run in ("old", "new"):
        for name in (f".export/collector/{run}.json", f".export/collector/{run}.claim", f".control/{run}/kill"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("{}")
    (folder / "old.jsonl.0a1b2c3d.tmp").write_text("draft")
    playhead("check", "--heads", folder / ".heads")
    result = playhead("prune", "--older-than", "1d", "--yes")
    assert (result.exit_code, result.stderr) == (0, "1 run, 0.3 MB removed\n")
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert [name for name in names if "old" in name] == []
    assert len(names) == 6
    assert not (folder / "old.blobs").exists()
    assert [json.loads(line)["run"] for line in (folder / ".heads").read_text().splitlines()] == ["new"]


def test_a_running_run_is_never_touched(folder: Path):
    """Neither by a condition nor by its name; nor is one that may be running elsewhere."""
    path = written(folder, "busy", 9, end=False)
    control = OwnControl.create(path)
    result = playhead("prune", "busy", "--older-than", "1d", "--yes")
    assert (result.exit_code, left(folder)) == (0, {"busy"})
    assert "busy is kept: it is running, or may be on another machine" in result.stderr
    control.close()
    assert playhead("prune", "busy", "--yes").exit_code == 0
    assert left(folder) == set()


def test_what_another_run_needs_is_kept(folder: Path):
    """The origin of a replay or a resumed run, however far back; with them it goes."""
    written(folder, "origin", 9)
    written(folder, "middle", 8, resumed_from="origin")
    written(folder, "newest", 0, resumed_from="middle")
    written(folder, "alone", 9)
    written(folder, "played", 9)
    written(folder / "replays", "replay", 9, replay_of="played")
    result = playhead("prune", "--older-than", "1d", "--yes")
    assert left(folder) == {"origin", "middle", "newest", "played"}
    assert set(result.stderr.splitlines()) == {
        "middle is kept: newest.jsonl continues it, and stays",
        "origin is kept: middle.jsonl continues it, and stays",
        "played is kept: replay.jsonl replays it, and stays",
        "1 run, 0.0 MB removed",
    }
    playhead("prune", "--older-than", "1d", "--replays", "--yes")
    assert (left(folder), left(folder / "replays")) == ({"origin", "middle", "newest"}, set())
    playhead("prune", "--max-size", "0", "--yes")
    assert left(folder) == set()


def test_two_files_of_a_run_share_their_large_values(folder: Path):
    """Removing one of them would break the other."""
    path = written(folder, "twice", 3, size=300_000)
    (folder / "twice.jsonl.gz").write_bytes(path.read_bytes())
    result = playhead("prune", path, "--yes")
    assert "twice is kept: twice.jsonl.gz has it, and stays" in result.stderr
    assert path.exists()


def test_what_is_no_run_is_left_alone(folder: Path):
    """A chat, a list of heads: a file with a run's suffix that is none; by its name it can be removed."""
    (folder / "chat.jsonl").write_text('{"format": "playhead-chat/1"}\n')
    assert playhead("prune", "--max-size", "0", "--yes").stderr == "0 runs, 0.0 MB removed\n"
    assert left(folder) == {"chat"}
    playhead("prune", "--ended", "unreadable", "--yes")
    assert left(folder) == set()


def test_no_link_is_followed(folder: Path, tmp_path: Path):
    """A folder of large values that leads elsewhere: what is there belongs to somebody else."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    written(folder, "evil", 3)
    (folder / "evil.blobs").symlink_to(tmp_path / "mine")
    assert playhead("prune", "evil", "--yes").exit_code == 0
    assert (tmp_path / "mine" / "letter").read_text() == "dear"
    written(folder, "evil", 3)
    assert playhead("forget", "evil", "--value", "dear").exit_code == 0
    assert (tmp_path / "mine" / "letter").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "name runs, or a condition"), ("--yes", "name runs, or a condition"), ("--max-size 2XB", "write a size"),
        ("--keep 0", "0 is not in the range"), ("--ended running", "is not one of"), ("--older-than soon", "a length of time"),
    ],
)  # fmt: skip
def test_refusals(runs: Path, options: str, said: str):
    """Nothing is removed by a command that says nothing, or nonsense."""
    result = playhead("prune", *options.split())
    assert (result.exit_code, said in result.stderr, left(runs)) == (2, True, {*"abcde"})


def test_a_file_of_heads_that_cannot_be_read_keeps_everything(runs: Path):
    """Otherwise runs were gone, and nothing said which."""
    (runs / ".heads").write_text("no heads")
    result = playhead("prune", "--keep", "1", "--yes")
    assert (result.exit_code, "is not a file of heads" in result.stderr, left(runs)) == (3, True, {*"abcde"})
