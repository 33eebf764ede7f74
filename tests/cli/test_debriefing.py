"""`debrief` and `stats`: the same facts as text, Markdown and JSON; damage is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.diagnose.debrief import build_debrief
from playhead.diagnose.debrief_view import debrief_document
from playhead.diagnose.statistics import run_statistics
from playhead.replay import load_recording
from tests.cli.command_line import objects, playhead

TRACES = Path(__file__).parents[2] / "traces"
SAMPLES = sorted(TRACES.glob("*.jsonl"))[::4]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_debrief_in_every_form(path: Path) -> None:
    """Text fits eighty columns; JSON and Markdown are those of the library."""
    debrief = build_debrief(load_recording(path))
    result = playhead("debrief", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line for line in result.stdout.splitlines() if len(line) > 80 and path.stem not in line] == []
    assert "Agent's claim: success | " in result.stdout or "Outcome: " in result.stdout
    assert objects(playhead("debrief", path, "--json")) == [debrief.model_dump(mode="json")]
    assert playhead("debrief", path, "--markdown").stdout.rstrip("\n") == debrief_document(debrief).markdown().rstrip(
        "\n"
    )


def test_a_damaged_file_is_shown_and_said(store: Path) -> None:
    """Exit 1 and a sentence on stderr, in every form; an open one is said too, and is no failure."""
    content = (store / "good.jsonl").read_bytes()
    (store / "damaged.jsonl").write_bytes(content.replace(b"Mount Zed", b"Mount Ted"))
    (store / "open.jsonl").write_bytes(b"".join(content.splitlines(keepends=True)[:-1]))
    for form in ([], ["--json"], ["--markdown"]):
        damaged = playhead("debrief", str(store / "damaged.jsonl"), *form)
        assert damaged.exit_code == 1
        assert damaged.stderr.startswith("damaged.jsonl is damaged")
        assert damaged.stdout
        unended = playhead("debrief", str(store / "open.jsonl"), *form)
        assert (unended.exit_code, unended.stderr) == (0, "open.jsonl has no end: it is still running, or was killed\n")


def test_statistics_of_named_runs() -> None:
    """One or several, each once; the figures are those of the library."""
    for chosen in (SAMPLES[:1], SAMPLES, [*SAMPLES, *SAMPLES]):
        result = playhead("stats", *chosen, "--json")
        assert result.exit_code == 0
        expected = run_statistics(map(load_recording, dict.fromkeys(chosen)))
        assert objects(result) == [expected.model_dump(mode="json")]
    assert playhead("stats", *SAMPLES).stdout.startswith(f"Statistics of {len(SAMPLES)} runs\n")


def test_statistics_of_the_newest_runs(store: Path) -> None:
    """Twenty by default, or as many as asked for; what is no trace is said and not counted."""
    content = (store / "good.jsonl").read_bytes()
    for number in range(25):
        (store / f"more{number}.jsonl").write_bytes(content)
    assert objects(playhead("stats", "--json"))[0]["runs"] == 20
    assert objects(playhead("stats", "--last", "3", "--json"))[0]["runs"] == 3
    (store / "zzz.jsonl").write_text("no trace")
    result = playhead("stats", "--last", "100", "--json")
    assert objects(result)[0]["runs"] == 26
    assert (result.exit_code, result.stderr.startswith("not read: zzz.jsonl")) == (0, True)
    (store / "good.jsonl").write_bytes(content.replace(b"Mount Zed", b"Mount Ted"))
    named = playhead("stats", "zzz", "good", "--json")
    assert (named.exit_code, objects(named)[0]["recordings"]) == (3, {"damaged": 1})
    damaged = playhead("stats", "good")
    assert (damaged.exit_code, damaged.stderr.startswith("good.jsonl is damaged")) == (1, True)
