"""`export` when something is not as it should be: nothing is left out, emptied or waited for without a word."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_line import objects, playhead
from tests.cli.test_export import collector, no_telemetry  # noqa: F401 - fixtures
from tests.spans.collector import Collector, Reply

if TYPE_CHECKING:
    from pathlib import Path


def test_a_trace_that_cannot_be_read_is_named_when_runs_are_chosen_by_time(
    store: Path,
    collector: Collector,  # noqa: F811
) -> None:
    """It does not say when it began, so the last time that it was written counts; the others are sent."""
    for name in ("bad", "old"):
        (store / f"{name}.jsonl").write_bytes(b"x" + (store / "good.jsonl").read_bytes()[1:])
    os.utime(store / "old.jsonl", (0, 0))
    result = playhead("export", "--since", "2026-09-01", "--to", collector.address, "--json")
    assert result.exit_code == 3
    assert {run["run"]: run["sent"] for run in objects(result)} == {"good": 4, "bad": 0}
    assert "bad: its spans cannot be sent: bad.jsonl is not a Playhead trace" in result.stderr


def test_a_file_stays_as_it_is_until_there_are_spans_to_write(store: Path, tmp_path: Path) -> None:
    """A trace that cannot be read costs no earlier export; and nothing is left beside it."""
    (store / "bad.jsonl").write_bytes(b"junk\n")
    folder = tmp_path / "out"
    folder.mkdir()
    output = folder / "a.json"
    output.write_text("kept")
    result = playhead("export", "bad", "--format", "otlp-json", "-o", output)
    assert (result.exit_code, "bad  0 spans written" in result.stdout) == (3, True)
    assert ([each.name for each in folder.iterdir()], output.read_text()) == (["a.json"], "kept")
    assert playhead("export", "bad", "good", "--format", "otlp-json", "-o", output).exit_code == 3
    assert ([each.name for each in folder.iterdir()], "resourceSpans" in output.read_text()) == (["a.json"], True)
    playhead("export", "good", "--format", "otlp-json", "-o", tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o600
    link = folder / "link.json"
    link.symlink_to(output)
    assert playhead("export", "good", "--format", "otlp-json", "-o", link).exit_code == 0
    assert link.is_symlink()
    assert playhead("export", "good", "--format", "otlp-json", "-o", "/dev/null").exit_code == 0


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "is a directory"),
        ("no/x.json", "No such file or directory"),
        ("good.jsonl/x.json", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error_of_the_command_line(store: Path, output: str, said: str) -> None:
    """It says why, and what would be right."""
    result = playhead("export", "good", "--format", "otlp-json", "-o", store / output)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{str(store / output).rstrip('/')}'" in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("https://u:p@there.example:4/v1/traces?key=k\x1b", "https://there.example:4/v1/traces"),
        ("/other", "{here}/other"),
    ],
)
def test_a_redirect_says_where_to(store: Path, location: str, place: str) -> None:
    """Nothing is sent there, but it may be named instead; what may be a key is not shown."""
    answers = Collector(usual=Reply(302, {"Location": location}))
    result = playhead("export", "good", "--to", answers.address)
    assert (result.exit_code, "takes nothing: 302 Found" in result.stderr) == (1, True)
    assert f"302 Found; it leads to {place.replace('{here}', answers.address)}: if that is" in result.stderr
    assert not any(each in result.stderr for each in ("u:p", "key", "\x1b"))
    answers.close()


def test_the_time_to_try_includes_the_last_request(store: Path) -> None:
    """A server that never answers takes no longer than that, though a request may take ten seconds."""
    answers = Collector(usual=Reply(delay_s=4.0))
    started = time.monotonic()
    result = playhead("export", "good", "--to", answers.address, "--retry-for", "500ms")
    assert time.monotonic() - started < 2
    assert (result.exit_code, "it did not answer in time" in result.stderr) == (1, True)
    answers.close()


def test_a_file_that_is_no_trace_is_no_run(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That it is there is said, and what a trace is called."""
    (tmp_path / "app.py").write_text("")
    monkeypatch.chdir(tmp_path)
    result = playhead("export", "app.py", "--to", "http://h")
    assert result.exit_code == 3
    assert "There is a file of this name here, but a trace is named by its path only if that ends in .jsonl" in (
        result.stderr
    )
