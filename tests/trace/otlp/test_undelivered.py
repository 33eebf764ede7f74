"""What is said of spans that were not delivered is one sentence, and ends in a command that sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.trace.otlp.run_export import RunExport
from playhead.trace.otlp.sources import QueueSource, TraceSource
from playhead.trace.otlp.undelivered import Undelivered, count_undelivered, message
from playhead.trace.spans import SpanBuilder
from tests.trace.otlp.spans import record_run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

WHERE = "http://h/v1/traces"


def export_of(run_id: str, path: Path | None) -> RunExport:
    """Return the export of a run, of which nothing was read yet."""
    if path is None:
        return RunExport(run_id, None, lambda: QueueSource(lambda: False), SpanBuilder)
    return RunExport(run_id, path, lambda: TraceSource(path), SpanBuilder)


def test_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its id, in the folder that is read anyway; with the folder, in another."""
    runs = (export_of("a", tmp_path / "a.jsonl"),)
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    said = f"1 span of run a could not be delivered to {WHERE} (why). The trace keeps them; to send them: "
    assert message(Undelivered(runs, 1, True), WHERE, "why", None) == f"{said}playhead export a --resume"
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", "/elsewhere")
    said = f"at least 1,200 spans of run a could not be delivered to {WHERE}. The trace keeps them; to send them: "
    assert message(Undelivered(runs, 1200, False), WHERE, None, "--to x") == (
        f"{said}playhead export a --resume --to x --trace-dir {tmp_path}"
    )


def test_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time of the first of them."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    runs = tuple(export_of(name, record_run(tmp_path, name)) for name in "abcd")
    assert message(count_undelivered(runs, float("inf")), WHERE, "why", None) == (
        f"32 spans of 4 runs could not be delivered to {WHERE} (why). The trace keeps them; "
        "to send them: playhead export --since 2026-09-21T14:13:20Z --resume"
    )


def test_runs_of_several_folders(tmp_path: Path) -> None:
    """By their files."""
    runs = tuple(export_of(name, tmp_path / name / "r.jsonl") for name in ("a", "b b"))
    said = message(Undelivered(runs, 2, True), WHERE, None, None)
    assert said.endswith(f"playhead export {tmp_path}/a/r.jsonl '{tmp_path}/b b/r.jsonl' --resume")


def test_a_run_without_a_trace_is_lost() -> None:
    """No command brings it back, so none is named."""
    said = message(Undelivered((export_of("a", None),), 3, False), WHERE, "why", None)
    assert said == (
        f"at least 3 spans of run a could not be delivered to {WHERE} (why); they are lost, for nothing was recorded in a file"
    )


def test_what_cannot_be_counted_in_time_is_not_guessed(tmp_path: Path) -> None:
    """`at least` says so; and a file that is gone has no number at all."""
    path = record_run(tmp_path)
    late = count_undelivered([export_of("run", path)], 0.0)
    assert (len(late.runs), late.spans, late.all_counted) == (1, 0, False)
    assert count_undelivered([export_of("gone", tmp_path / "gone.jsonl")], float("inf")).all_counted is False
