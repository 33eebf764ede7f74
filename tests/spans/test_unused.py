"""Variables of services that are set where nothing sends any span are named, with the two ways that work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.spans.spans import record_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spans.collector import Collector

KEY = "hunter22-hunter22"
NO_SPANS = "no spans are sent to"
CALL = "before the run, so that its tracer provider takes them, or set"
ENDPOINT, HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "and its key in OTEL_EXPORTER_OTLP_HEADERS"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:6006/v1/traces"},
            f"Phoenix (PHOENIX_COLLECTOR_ENDPOINT): call phoenix.otel.register() {CALL} {ENDPOINT}=http://localhost:6006",
        ),
        (
            {"PHOENIX_COLLECTOR_ENDPOINT": "http://localhost:4317"},
            f"Phoenix (PHOENIX_COLLECTOR_ENDPOINT): call phoenix.otel.register() {CALL} {ENDPOINT} to its OTLP over HTTP",
        ),
        (
            {"LANGFUSE_PUBLIC_KEY": KEY},
            f"Langfuse (LANGFUSE_PUBLIC_KEY): call Langfuse() {CALL} {ENDPOINT}=https://cloud.langfuse.com/api/public/otel {HEADERS}",
        ),
        (
            {"LANGFUSE_HOST": "http://own/", "LANGFUSE_PUBLIC_KEY": KEY, "LANGFUSE_SECRET_KEY": KEY},
            f"Langfuse (LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY): call Langfuse() {CALL} {ENDPOINT}=http://own/api/public/otel {HEADERS}",
        ),
        (
            {"LANGFUSE_BASE_URL": f"https://ann:{KEY}@langfuse.example"},
            f"Langfuse (LANGFUSE_BASE_URL): call Langfuse() {CALL} {ENDPOINT} to its OTLP over HTTP {HEADERS}",
        ),
        (
            {"LOGFIRE_TOKEN": KEY},
            f"Logfire (LOGFIRE_TOKEN): call logfire.configure() {CALL} {ENDPOINT} to its OTLP over HTTP {HEADERS}",
        ),
    ],
)
def test_a_service_is_named_once_in_a_process(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variables: dict[str, str],
    said: str,
) -> None:
    """At the first run: which variables, its package's own line, and the endpoint where that is certain; never the value of a key."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for run_id in "ab":
        record_run(tmp_path, run_id)
    assert caplog.messages == [f"{NO_SPANS} {said}"]
    assert not re.search(KEY, caplog.text)


def test_several_services_are_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each with its own two ways."""
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://localhost:6006")
    monkeypatch.setenv("LOGFIRE_TOKEN", KEY)
    record_run(tmp_path)
    (said,) = caplog.messages
    assert said.split("; ")[1] == (
        f"{NO_SPANS} Logfire (LOGFIRE_TOKEN): call logfire.configure() {CALL} {ENDPOINT} to its OTLP over HTTP {HEADERS}"
    )


@pytest.mark.parametrize("variable", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {}])
def test_nothing_is_said_where_spans_are_sent_or_not_wanted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    collector: Collector,
    variable: dict[str, str],
) -> None:
    """A program that turns tracing off knows what it does."""
    monkeypatch.setenv("LANGFUSE_HOST", "http://localhost:3000")
    for name, value in (variable or {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}).items():
        monkeypatch.setenv(name, value)
    record_run(tmp_path)
    if not variable:
        collector.wait_for(8)
    assert caplog.messages == []
