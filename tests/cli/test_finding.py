"""Choosing among many runs: every question is one command, with an index or without, and whatever the index says."""

from __future__ import annotations

import gzip
import os
import shlex
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from playhead.diagnose.finding import Query, find
from playhead.diagnose.run_index import NAME
from playhead.trace.store import TraceStore
from tests.cli.command_line import objects, playhead
from tests.cli.finding import QUESTIONS, write_run, write_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def chosen(options: str) -> str:
    """Return the ids of the runs that `list` finds."""
    return " ".join(run["run_id"] for run in objects(playhead("list", "--json", *shlex.split(options))))


def answers() -> dict[str, str]:
    """Return what is found for each question."""
    return {question: chosen(question) for question in QUESTIONS}


@pytest.fixture
def runs(folder: Path) -> Path:
    """A folder of seven runs."""
    write_runs(folder)
    return folder


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is an hour ahead: all files have been as they are for long, and go into the index."""
    now_ns = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now_ns() + 3_600_000_000_000)


def test_every_question_is_one_command(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that changed a moment ago are read, and nothing of them is kept."""
    now_ns = min(path.stat().st_mtime_ns for path in runs.iterdir())
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    assert answers() == QUESTIONS
    assert rows_of(runs / NAME) == 0


def rows_of(index: Path) -> int:
    """Return how many runs an index has."""
    with closing(sqlite3.connect(index)) as database:
        return int(database.execute("SELECT count(*) FROM runs").fetchone()[0])


def garbage(index: Path) -> None:
    """Replace it by what only begins like one."""
    index.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)


def torn(index: Path) -> None:
    """Change bytes in the middle."""
    content = index.read_bytes()
    index.write_bytes(content[:5000] + b"\xff" * 64 + content[5064:])


def a_folder(index: Path) -> None:
    """Put a folder in its place."""
    index.unlink()
    index.mkdir()


def a_link(index: Path) -> None:
    """Put a link to another file in its place."""
    index.unlink()
    index.symlink_to(index.with_name("elsewhere"))


def edited(*statements: str) -> Callable[[Path], None]:
    """Return what runs these statements on an index."""

    def edit(index: Path) -> None:
        with closing(sqlite3.connect(index)) as database, database:
            for each in statements:
                database.execute(each)

    return edit


WAYS = {
    "nothing": lambda _: None,
    "deleted": lambda index: index.unlink(),
    "emptied": lambda index: index.write_bytes(b""),
    "garbage": garbage,
    "torn": torn,
    "a folder": a_folder,
    "a link": a_link,
    "no rows": edited("DELETE FROM runs"),
    "other figures": edited("UPDATE runs SET figures = replace(figures, 'end_turn', 'llm_error')"),
    "other keys": edited("UPDATE runs SET keys = x'00'"),
    "other types": edited("UPDATE runs SET figures = 1, keys = NULL, checksum = 'x'"),
    "rows exchanged": edited("UPDATE runs SET figures = (SELECT figures FROM runs WHERE name = 'broken.jsonl')"),
    "another version": edited("PRAGMA user_version = 99", "DROP TABLE runs", "CREATE TABLE runs (other)"),
    "another table": edited("DROP TABLE runs", "CREATE TABLE runs (other)"),
    "a view without end": edited(
        "DROP TABLE runs",
        "CREATE VIEW runs AS WITH RECURSIVE n(name) AS (SELECT 1 UNION ALL SELECT name + 1 FROM n) "
        "SELECT name, name AS stamp, 1 AS figures, 1 AS keys, 1 AS checksum FROM n WHERE name < 0",
    ),
}
"""What may have become of an index."""


@pytest.mark.parametrize("way", WAYS)
def test_the_index_is_never_the_truth(runs: Path, settled: None, way: str) -> None:
    """Whatever became of it, the answers are right, and it serves again afterwards, where nothing else has its place."""
    assert answers() == QUESTIONS
    assert (runs / NAME).stat().st_mode & 0o777 == 0o600
    WAYS[way](runs / NAME)
    assert answers() == QUESTIONS
    if not way.startswith("a folder") and way != "a link":
        assert rows_of(runs / NAME) == len(list(runs.glob("*.jsonl"))) - 1
    assert not (runs / "elsewhere").exists()


def test_a_stale_index_is_noticed(runs: Path, settled: None) -> None:
    """A run that is replaced, also by one of the same size and time, is read again; one that is gone is not found."""
    assert answers() == QUESTIONS
    late = runs / "late.jsonl"
    before = late.stat()
    late.write_bytes(late.read_bytes().replace(b'"guide"', b'"clerk"'))
    os.utime(late, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert late.stat().st_size == before.st_size
    (runs / "broken.jsonl").unlink()
    assert (chosen("--agent guide"), chosen("--ended damaged"), chosen("--failed")) == ("", "late", "")
    write_run(runs, "broken", minute=4)
    assert (chosen("--failed"), chosen("--ended answered --last 2")) == ("", "listed broken")


def test_two_processes_write_the_index_at_once(runs: Path, settled: None) -> None:
    """Whoever finds it locked does without, removes nothing, and answers the same; two that make it make one."""
    assert chosen("--failed") == "broken"
    with closing(sqlite3.connect(runs / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        write_run(runs, "new", minute=9, ended="llm_error", status="failed")
        inode = (runs / NAME).stat().st_ino
        assert chosen("--failed") == "new broken"
        assert (runs / NAME).stat().st_ino == inode
        other.execute("ROLLBACK")
        assert other.execute("SELECT count(*) FROM runs").fetchone() == (6,)
    (runs / NAME).unlink()
    with ThreadPoolExecutor(4) as threads:
        racing = [threads.submit(lambda: list(find(TraceStore(runs), Query(endings=["failed"])))) for _ in range(8)]
        assert [[run.run_id for run in each.result()] for each in racing] == [["new", "broken"]] * 8
    assert chosen("--failed") == "new broken"


def test_the_index_holds_no_texts_and_forget_removes_it(runs: Path, settled: None) -> None:
    """Figures, codes, ids and hashes only; what is forgotten leaves not even a hash there, and prune removes it too."""
    assert answers() == QUESTIONS
    content = (runs / NAME).read_bytes()
    for text in (b"send_mail", b"billing", b"clerk", b"small"):  # shorter ones occur by chance
        assert text not in content
    assert playhead("forget", "paid", "--value", "billing").exit_code == 0
    assert not (runs / NAME).exists()
    assert (chosen("--tag team=billing"), chosen("--tag beta")) == ("", "paid")
    assert playhead("prune", "broken", "--yes").exit_code == 0
    assert not (runs / NAME).exists()


def test_the_same_options_choose_runs_in_other_commands(runs: Path) -> None:
    """`stats`, `check`, `debrief`, `reproduce`, `export` and `backtest` read the runs that `list` shows."""
    options = ("--tool", "send_mail", "--last", "2", "--json")
    assert objects(playhead("stats", *options))[0]["run_ids"] == ["dead", "listed"]
    assert [each["run_id"] for each in objects(playhead("check", *options))] == ["dead", "listed"]
    assert [each["run_id"] for each in objects(playhead("debrief", *options))] == ["dead", "listed"]
    again = objects(playhead("reproduce", "--tool", "send_mail", "--run-arg", "amount=420", "--last", "2", "--json"))
    assert [each["run_id"] for each in again] == ["dead", "listed"]
    judged = objects(playhead("backtest", "--switch", "max_iterations(1)", *options))
    assert [each["run_id"] for each in judged[:-1]] == ["dead", "listed"]


def test_whatever_the_files_are_like(runs: Path, settled: None) -> None:
    """Compressed runs, large arguments, continued runs, replays and odd names are found, with the index as without it."""
    path = runs / "split.jsonl"
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    write_run(runs, "large", ("store", {"amount": 1, "body": "y" * 300_000 + "end"}), minute=7)
    write_run(runs / "replays", "again", ("refund", {}), minute=8)
    write_run(runs, "odd", ("store", {}), minute=9).rename(runs / "odd\udcff.jsonl")  # a name that is not UTF-8
    for _ in range(3):
        assert chosen("--tool refund") == "split"
        assert chosen("--text yyyend") == "large"
        assert chosen("--tool store --arg amount=1") == "large"
        assert chosen("--tool store") == "odd\udcff large"
        assert (
            chosen("--tool refund --replays") == "split again"
        )  # a compressed file without a ULID counts by its own time
    (runs / "large.blobs").rename(runs / "away")
    assert chosen("--arg amount=1") == ""
    (runs / "away").rename(runs / "large.blobs")
    assert chosen("--arg amount=1") == "large"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("list --ended timeout_aftr", 0, "is as the options say. Did you mean 'timeout_after'?"),
        ("list --ended interupted", 0, "is as the options say. Did you mean 'interrupted'?"),
        ("list --ended cancelled --ended resumed", 0, "is as the options say.\n"),
        ("stats --tool nosuch", 3, "no run in"),
        ("debrief", 2, "name runs, or choose them with --last"),
        ("check paid --last 1", 2, "not both"),
        ("list --sort price", 2, "'started', 'cost', 'time', 'tokens'"),
        ("list --arg amount", 2, "write NAME=VALUE"),
        ("list --min-cost -1", 2, "-1"),
    ],
)
def test_what_chooses_nothing_is_said(runs: Path, command: str, code: int, said: str) -> None:
    """No run, no condition, or one that cannot be."""
    result = playhead(*command.split())
    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.slow
def test_ten_thousand_runs(folder: Path, settled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the index no more files are read than are shown, and one, whatever is asked; 80 columns show what tells runs apart."""
    write_runs(folder / "seven")
    several = [path.read_bytes().splitlines() for path in (folder / "seven").glob("[!dl]*.jsonl")]
    for number in range(10_000):
        copied(folder / f"{number:026}.jsonl", several[number % len(several)], number)
    assert chosen("--failed --last 1") != ""
    opened: set[str] = set()
    sys.addaudithook(lambda name, given: opened.add(str(given[0])) if name == "open" and counts else None)
    counts = True
    for question in (
        "--failed",
        "--tool send_mail --arg to=Ann",
        "--tag user_id=ann",
        "--sort cost",
        "--agent none",
    ):
        opened.clear()
        found = chosen(question).split()
        assert len(found) == (0 if question == "--agent none" else 20)
        read = {path for path in opened if path.endswith(".jsonl")}
        assert read >= {str(folder / f"{run}.jsonl") for run in found}
        assert len(read) <= len(found) + 1  # the one after them says that there are more
    counts = False
    lines = playhead("list", "--min-cost", "1", "--last", "1", env={"COLUMNS": "80"}).stdout.splitlines()
    assert [len(lines[1]) <= 80, lines[1].split()[2:7]] == [True, ["failed", "13.0ms", "$2.0000", "clerk", "Pay"]]


def copied(path: Path, lines: list[bytes], number: int) -> None:
    """Write a copy of a run that began so many seconds later."""
    content, last = [], b""
    for line in lines:
        ts = line.partition(b'"ts":')[2].partition(b",")[0]
        body = line[:-72].replace(ts, b"%d" % (int(ts) + number * 1_000_000), 1)
        last = sha256(last + body).hexdigest().encode()
        content.append(body + b',"h":"' + last + b'"}\n')
    path.write_bytes(b"".join(content))
