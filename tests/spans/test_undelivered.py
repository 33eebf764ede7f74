"""What is said of spans that were not delivered is one sentence, and ends in a command that sends them."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

from playhead.spans import SpanBuilder, export_to, live, live_export, notices, pump
from playhead.spans.notices import Again, Undelivered, command, count_undelivered, message
from playhead.spans.pump import Pump
from playhead.spans.run_export import RunExport
from playhead.spans.sources import QueueSource, TraceSource
from tests.cli.command_line import playhead
from tests.spans.spans import ids_of, record_run
from tests.spans.test_resuming import Backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.spans.collector import Collector

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
    assert message(Undelivered(runs, 1, True), WHERE, "why", Again()) == f"{said}playhead export a --resume"
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", "/elsewhere")
    said = f"at least 1,200 spans of run a could not be delivered to {WHERE}. The trace keeps them; to send them: "
    assert message(Undelivered(runs, 1200, False), WHERE, None, Again("--resume --to x")) == (
        f"{said}playhead export a --resume --to x --trace-dir {tmp_path}"
    )


def test_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time of the first of them."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    runs = tuple(export_of(name, record_run(tmp_path, name)) for name in "abcd")
    assert message(count_undelivered(runs, float("inf")), WHERE, "why", Again()) == (
        f"32 spans of 4 runs could not be delivered to {WHERE} (why). The trace keeps them; "
        "to send them: playhead export --since 2026-09-21T14:13:20Z --resume"
    )


def test_a_run_without_a_trace_is_lost() -> None:
    """No command brings it back, so none is named."""
    said = message(Undelivered((export_of("a", None),), 3, False), WHERE, "why", Again())
    assert said == (
        f"at least 3 spans of run a could not be delivered to {WHERE} (why); they are lost, for nothing was recorded in a file"
    )


def test_what_cannot_be_counted_in_time_is_not_guessed(tmp_path: Path) -> None:
    """`at least` says so; and a file that is gone has no number at all."""
    path = record_run(tmp_path)
    late = count_undelivered([export_of("run", path)], 0.0)
    assert (len(late.runs), late.spans, late.all_counted) == (1, 0, False)
    assert count_undelivered([export_of("gone", tmp_path / "gone.jsonl")], float("inf")).all_counted is False


def test_many_runs_of_several_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each folder its command, and for no more than three: no run is left out without a word."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", "/elsewhere")
    paths = [record_run(tmp_path / folder, name) for folder in "ab" for name in "qrst"]
    paths += [tmp_path / folder / "r.jsonl" for folder in "cdef"]
    assert command(paths, Again()).split("; ") == [
        f"playhead export --since 2026-09-21T14:13:20Z --resume --trace-dir {tmp_path}/a",
        f"playhead export --since 2026-09-21T14:13:20Z --resume --trace-dir {tmp_path}/b",
        f"playhead export r --resume --trace-dir {tmp_path}/c",
        "and the same for 3 more folders",
    ]


def test_the_time_that_is_named_is_that_of_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the runs took turns, for a destination that takes nothing: only the first of them are asked."""
    monkeypatch.setattr(notices, "_EARLIEST", 2)
    monkeypatch.setattr(pump, "MAX_SPANS", 1)
    paths = [record_run(tmp_path, name, 0) for name in "abcde"]
    for number, path in enumerate(paths):
        monkeypatch.setitem(STARTED, path, 1_000_000 * (number + 1))
    monkeypatch.setattr(notices, "summarise", lambda path: SimpleNamespace(started_us=STARTED[path]))
    sending = Pump(Backend())
    sending.runs.extend(export_of(path.stem, path) for path in paths)
    for _ in range(3):
        assert sending.step() == "sent"
    left = Undelivered(tuple(sending.runs), 1, False)
    assert " --since 1970-01-01T00:00:01Z " in message(left, WHERE, None, Again())
    for run in sending.runs:
        run.close()


STARTED: dict[Path, int] = {}


def test_spans_of_a_processor_are_sent_by_the_command_that_is_named(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """No command hands them to it, so it says what a collector can be sent: with an address, it works."""

    class Stuck(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            del span
            stuck.wait(5)

    stuck = threading.Event()
    handle = export_to(Stuck())
    path = record_run(tmp_path)
    handle.shutdown(0.2)
    stuck.set()
    (said,) = caplog.messages
    assert "a processor is handed no recorded run, but a collector can be sent all of it: playhead export run" in said
    collector = collect()
    result = playhead(*said.partition("playhead ")[2].replace("URL", collector.address).split())
    assert (result.exit_code, result.stderr) == (0, "")
    assert collector.counts == Counter(ids_of(path))


def test_runs_that_were_turned_away_are_named_by_a_command_that_sends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """With the address that the program gave, and the time of the first of them."""
    monkeypatch.setattr(live, "MAX_RUNS", 0)
    collector = collect()
    handle = live_export(collector.address)
    paths = [record_run(tmp_path, name) for name in "abcd"]
    handle.shutdown(0.5)
    (said,) = caplog.messages
    assert said.startswith(f"4 more runs were not sent to {handle.name}; to send them: playhead export --since ")
    assert playhead(*said.partition("playhead ")[2].split()).exit_code == 0
    assert collector.counts == Counter(span for path in paths for span in ids_of(path))
