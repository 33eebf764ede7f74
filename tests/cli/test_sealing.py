"""`playhead check --heads`, `check --key` and `sign`: what they write, what they compare, and what they exit with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_line import objects, playhead
from tests.cli.recorded import record_run
from tests.diagnose.test_heads import make_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(folder: Path) -> Path:
    """The folder that the commands read by default, with two runs."""
    record_run(folder, "one")
    record_run(folder, "two")
    return folder


def cut(path: Path) -> None:
    """Remove the last three lines."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))


def test_heads_are_kept_and_compared(store: Path, home: Path):
    """The first call writes the file, and says so; the next ones compare, and add what is new only with --write."""
    first = playhead("check", "--heads", "kept")
    assert (first.exit_code, first.stdout) == (0, "two: ok: 16 events\none: ok: 16 events\n")
    assert first.stderr == "heads are kept in kept: store it where nobody who can change traces can write\n"
    record_run(store, "three")
    cut(store / "two.jsonl")
    kept = (home / "kept").read_text()
    second = playhead("check", "--heads", "kept")
    assert (second.exit_code, (home / "kept").read_text()) == (1, kept)
    assert set(second.stdout.splitlines()) == {
        "one: ok: 16 events, the kept head covers them up to 15",
        "two: other-head: events were cut off: it ends with event 12, and the kept head is of event 15",
        "three: ok: 16 events",
    }
    assert playhead("check", "--heads", "kept", "--write").exit_code == 1
    assert [line.split('"')[3] for line in (home / "kept").read_text().splitlines()] == ["one", "three", "two"]
    (store / "two.jsonl").unlink()
    third = playhead("check", "--heads", "kept", "--json")
    assert (third.exit_code, [each["verdict"] for each in objects(third)]) == (1, ["ok", "ok", "missing"])
    assert playhead("check", "one", "--heads", "kept").exit_code == 0


def test_signed_heads_lie_beside_the_traces(store: Path, home: Path):
    """The public key verifies; a run that nobody signed, and a removed file of heads, are no success."""
    make_key(home / "seal", "ed25519")
    signed = playhead("sign", "--key", "seal")
    assert (signed.exit_code, signed.stderr) == (0, f"heads are kept in {store / '.heads'}\n")
    assert playhead("check", "--key", "seal.pub").exit_code == 0
    record_run(store, "three")
    result = playhead("check", "--key", "seal.pub")
    assert (result.exit_code, "three: other-head: no signed head was kept" in result.stdout) == (1, True)
    (store / ".heads").unlink()
    assert playhead("check", "--key", "seal.pub").exit_code == 1
    assert not (store / ".heads").exists()


def test_a_forgery_is_not_signed_again(store: Path, monkeypatch: pytest.MonkeyPatch):
    """A daily `sign` reports it, and goes on with the others; nor does it sign over a head that somebody else wrote."""
    monkeypatch.setenv("SEAL", "s" * 32)
    playhead("sign", "--key", "env:SEAL")
    cut(store / "two.jsonl")
    record_run(store, "three")
    assert playhead("sign", "--key", "env:SEAL").exit_code == 1
    assert playhead("check", "three", "--key", "env:SEAL").exit_code == 0
    assert playhead("check", "two", "--key", "env:SEAL").exit_code == 1
    (store / ".heads").unlink()
    playhead("check", "--heads", store / ".heads")
    assert playhead("sign", "--key", "env:SEAL").exit_code == 1
    assert playhead("check", "two", "--key", "env:SEAL").exit_code == 1


def test_several_runs_are_checked_without_heads(store: Path):
    """A run without an end fails as it does alone; what cannot be read is said, and the others are checked."""
    assert playhead("check").exit_code == 0
    cut(store / "two.jsonl")
    (store / "none.jsonl").write_text("nothing\n")
    result = playhead("check")
    assert (result.exit_code, set(result.stdout.splitlines())) == (1, {"one: ok: 16 events", "two: open: 13 events"})
    assert "not read: none.jsonl is not a Playhead trace" in result.stderr
    (store / os.fsdecode(b"n\xff.jsonl")).write_bytes((store / "one.jsonl").read_bytes())
    result = playhead("check", "--heads", store / "heads")
    assert (result.exit_code, "udcff.jsonl' is no name that heads can be kept under" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["check", "sign --key env:SEAL", "leaks", "grep seq>=0", "sql select(1)"])
def test_nothing_to_look_at_is_no_success(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str):
    """A misspelt folder is not one without faults."""
    monkeypatch.setenv("SEAL", "s" * 32)
    result = playhead(*command.split())
    assert (result.exit_code, f"no runs in {folder}" in result.stderr) == (3, True)
    for each in ("list", "approvals", "prune --keep 1"):
        assert playhead(*each.split(), "--trace-dir", "nowhere").stderr == "playhead: nowhere: no such folder\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--write"], "--write writes the file of --heads"),
        (["check", "--key", "nothing"], "--key nothing: No such file or directory"),
        (["sign", "--key", "env:NOTHING"], "a secret has at least 32 bytes"),
        (["check", "one", "two", "--head", "0" * 64], "--head is of one run"),
    ],
)
def test_refusals(store: Path, arguments: list[str], said: str):
    """What cannot be meant is an error of usage."""
    result = playhead(*arguments)
    assert (result.exit_code, said in result.stderr, store.exists()) == (2, True, True)
