"""`list` says how each run ended: what was stopped is not done, and running, dead and resumed are three things."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead import tool
from playhead.compose.killswitches import budget_limit, max_iterations
from playhead.testing import call, error, text
from playhead.trace.store import TraceStore
from tests.cli.other_processes import begin, end, running
from tests.findings.adapter import agent, cli, run

if TYPE_CHECKING:
    from pathlib import Path


@tool(read_only=True)
def lookup(key: str) -> str:
    """Look up."""
    return key


def endings(folder: Path) -> dict[str, str]:
    """Return how each run ended, by its id, as the JSON of `list` says."""
    lines = cli("list", "--json", "--trace-dir", folder).stdout.splitlines()
    return {each["run_id"]: each["ending"] for each in map(json.loads, lines)}


def continued(path: Path, earlier: str, by: str) -> None:
    """Write a run that says of itself that it continues another one, and that ended by this reason."""
    recorder = begin(path)
    end(recorder, "")
    lines = path.read_text().replace('"task":"go"', f'"task":"go","resumed_from":"{earlier}"')
    path.write_text(lines.replace('"terminated_by":"kill"', f'"terminated_by":"{by}"'))


@pytest.mark.parametrize(
    ("turns", "options", "ending"),
    [
        ([text("done")], {}, "answered"),
        ([call("lookup", key="a")] * 3, {"max_iterations": 2}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [max_iterations(1)]}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [budget_limit(max_tokens=1)]}, "stopped"),
        ([call("lookup", key="a")] * 3, {"compose": [max_iterations(1, on_trigger="terminate")]}, "failed"),
        ([error("gone")], {"retries": 0}, "failed"),
    ],
)
def test_a_run_that_has_an_end(tmp_path: Path, turns: list[Any], options: dict[str, Any], ending: str) -> None:
    """Only what the model answered is `answered`; a limit is a stop, with its name."""
    run(agent(turns, [lookup], trace=tmp_path, rationale=False, **options), run_id="mine")
    (summary,) = TraceStore(tmp_path).summaries()
    assert summary.ending == ending
    shown = cli("list", "--trace-dir", tmp_path, env={"COLUMNS": "160"}).stdout
    assert (f"  {ending}: {summary.terminated_by}" in shown) == (ending != "answered")


@pytest.mark.slow
def test_running_dead_resumed_and_killed_are_four_things(tmp_path: Path) -> None:
    """By its process, by another run that continues it, by its own end."""
    with running("ignores", tmp_path / "alive.jsonl"):
        for name in ("dead", "resumed", "tried"):
            begin(tmp_path / f"{name}.jsonl").seal()
        end(begin(tmp_path / "killed.jsonl"), "enough")
        continued(tmp_path / "later.jsonl", "resumed", "end_turn")
        continued(tmp_path / "stuck.jsonl", "tried", "replay_stopped")
        with running("ends", tmp_path / "crashed.jsonl"):
            found = endings(tmp_path)
    assert found == {
        "alive": "running",
        "dead": "interrupted",
        "resumed": "resumed",
        "tried": "interrupted",
        "killed": "stopped",
        "later": "answered",
        "stuck": "stopped",
        "crashed": "interrupted",
    }
    assert endings(tmp_path)["alive"] == "interrupted"
