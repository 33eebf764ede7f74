"""OpenTelemetry's sampler variables decide which runs are sent live, as its SDK reads them; what is not sent is recorded all the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace

from playhead.spans import live_export
from tests.cli.command_line import playhead
from tests.spans.spans import ids_of, record_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spans.collector import Collector

LOW, HIGH = "01M81D74MP" + "0" * 16, "01M81D74MP" + "Z" * 16
"""Ids of runs whose traces a ratio takes first, and last."""


@pytest.mark.parametrize(
    ("sampler", "argument", "outer", "sent"),
    [
        ("always_on", None, 0, [LOW, HIGH]),
        ("always_off", None, 1, []),
        ("traceidratio", "0.5", None, [LOW]),
        ("TraceIdRatio", "0", None, []),
        ("parentbased_always_off", None, None, []),
        ("parentbased_always_off", None, 1, [LOW, HIGH]),
        ("parentbased_traceidratio", "0.5", None, [LOW]),
        ("parentbased_traceidratio", "1", 0, []),
        ("", None, 0, []),
        ("", None, None, [LOW, HIGH]),
    ],
)
def test_the_sampler_decides_for_the_whole_run(
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    sampler: str,
    argument: str | None,
    outer: int | None,
    sent: list[str],
) -> None:
    """By its trace and by the application's current span (sampled, not sampled or none); an empty variable is one that is not set."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    if argument is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    handle = live_export(collector.address)
    above = trace.SpanContext(1, 1, is_remote=False, trace_flags=trace.TraceFlags(outer or 0))
    with trace.use_span(trace.INVALID_SPAN if outer is None else trace.NonRecordingSpan(above)):
        paths = {run: record_run(tmp_path, run) for run in (LOW, HIGH)}
    assert handle.flush(5)
    assert collector.counts == Counter(span for run in sent for span in ids_of(paths[run]))


def test_a_run_that_is_sampled_out_is_recorded_and_can_be_sent(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is logged about it, and `playhead export` sends any run that it is given."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    handle = live_export(collector.address)
    path = record_run(tmp_path)
    assert (handle.flush(5), handle.pending, caplog.messages, collector.counts) == (True, 0, [], {})
    assert playhead("export", path, "--to", collector.address).exit_code == 0
    assert collector.counts == Counter(ids_of(path))


def test_a_sampler_that_is_none_is_said_once_and_everything_is_sent(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As OpenTelemetry's SDK does, in its words."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "sometimes")
    handle = live_export(collector.address)
    paths = [record_run(tmp_path, name) for name in "ab"]
    assert handle.flush(5)
    assert caplog.messages == ["Couldn't recognize sampler sometimes."]
    assert collector.counts == Counter(span for path in paths for span in ids_of(path))
