"""Replays are recorded in `replays/`: lists, `latest` and figures speak of real runs unless asked, an id finds both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording, tool
from playhead.errors import TraceNotFoundError
from playhead.testing import call, text
from tests.findings.adapter import agent, cli, replay, run

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of traces with one run, `first`, and two replays of it, the second a replay of the first replay."""
    turns = [call("lookup", key="a"), text("done")]
    result = run(agent(turns, [lookup], trace=tmp_path / "traces", rationale=False), run_id="first")
    once = replay(result.trace_path, turns, trace=tmp_path / "traces")
    replay(once.run.trace_path, turns, trace=tmp_path / "traces")
    return tmp_path / "traces"


def said(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON objects that a command writes about the folder."""
    result = cli(*arguments, "--json", "--trace-dir", folder)
    return [json.loads(line) for line in result.stdout.splitlines()]


def replays_in(folder: Path) -> list[str]:
    """Return the ids of the replays, oldest first."""
    return sorted(path.stem for path in (folder / "replays").glob("*.jsonl"))


def test_where_they_are(folder: Path) -> None:
    """Runs in the folder, replays in its folder `replays`, those of replays too."""
    assert [path.stem for path in folder.glob("*.jsonl")] == ["first"]
    assert len(replays_in(folder)) == 2


@pytest.mark.parametrize(("arguments", "runs"), [(["list"], 1), (["list", "--replays"], 3)])
def test_list(folder: Path, arguments: list[str], runs: int) -> None:
    """Real runs; all with --replays, and each says what it replays."""
    found = said(folder, *arguments)
    assert len(found) == runs
    assert [each["run_id"] for each in found if each["replay_of"] is None] == ["first"]


def test_stats(folder: Path) -> None:
    """Figures over the newest runs are those of real runs."""
    assert [each["runs"] for each in said(folder, "stats")] == [1]
    assert [(each["runs"], each["replays"]["runs"]) for each in said(folder, "stats", "--replays")] == [(3, 2)]


def test_latest(folder: Path) -> None:
    """The newest real run; with --replays the newest of all; in Python the real one."""
    newest = replays_in(folder)[-1]
    assert said(folder, "check", "latest")[0]["run_id"] == "first"
    assert said(folder, "check", "latest", "--replays")[0]["run_id"] == newest
    assert said(folder, "check", "latest~2", "--replays")[0]["run_id"] == "first"
    assert load_recording("latest", folder).run_id == "first"
    with pytest.raises(TraceNotFoundError, match="holds 1 runs: no latest~1; its 2 replays count with --replays"):
        load_recording("latest~1", folder)


def test_an_id_finds_a_replay(folder: Path) -> None:
    """By its whole id, in every command and in Python."""
    for name in replays_in(folder):
        assert load_recording(name, folder).run_id == name
        for command in ("show", "check", "debrief", "stats", "reproduce"):
            assert cli(command, name, "--trace-dir", folder).returncode == 0, command


def test_diff_finds_the_original(folder: Path) -> None:
    """`diff` finds the original of a replay, and of a replay of a replay."""
    once, twice = sorted(replays_in(folder), key=lambda name: load_recording(name, folder).header.replay_of != "first")
    for name, original in ((once, "first"), (twice, once)):
        (diff,) = said(folder, "diff", name)
        assert (diff["original_run_id"], diff["replay_run_id"]) == (original, name)
