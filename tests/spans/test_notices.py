"""The words for spans that did not arrive as they are, and the command that sends them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

from playhead import Agent, tool
from playhead.spans import SpanBuilder, delivery, export_to, live, live_export
from playhead.spans.delivery import Delivered, Pump, Sink
from playhead.spans.run_export import RunExport, Undelivered, count_undelivered, message
from playhead.spans.sources import QueueSource, TraceSource
from playhead.testing import ScriptedModel, call, text
from tests.cli.command_line import playhead
from tests.spans.collector import Collector, Received, Reply, rejecting
from tests.spans.spans import agent, ids_of, record_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest
    from opentelemetry.sdk.trace import ReadableSpan

DEAD = "http://127.0.0.1:9"
WHERE = "http://h/v1/traces"


def export_of(run_id: str, path: Path | None) -> RunExport:
    """Return the export of a run, of which nothing was read yet."""
    if path is None:
        return RunExport(run_id, None, lambda: QueueSource(lambda: False), SpanBuilder)
    return RunExport(run_id, path, lambda: TraceSource(path), SpanBuilder)


def test_what_was_not_delivered_is_one_sentence_with_the_command_that_sends_it(tmp_path: Path) -> None:
    """A few runs are named by their traces, many by the time of the first; those of another folder have their own command."""
    kept = "The trace keeps them; to send them: playhead export"
    one = (export_of("a", tmp_path / "a.jsonl"),)
    start = f"at least 1,200 spans of run a could not be delivered to {WHERE}"
    assert message(Undelivered(one, 1200, False), WHERE, None, "--resume --to x") == (
        f"{start}. {kept} {tmp_path}/a.jsonl --resume --to x"
    )
    runs = tuple(export_of(name, record_run(tmp_path / "many", name)) for name in "abcd")
    assert message(count_undelivered((*runs, *one), float("inf")), WHERE, "why", "--resume") == (
        f"at least 32 spans of 5 runs could not be delivered to {WHERE} (why). {kept} --since 2026-09-21T14:13:20Z --resume "
        f"--trace-dir {tmp_path}/many; playhead export {tmp_path}/a.jsonl --resume"
    )
    assert message(Undelivered((export_of("a", None),), 1, True), WHERE, None, "--resume") == (
        f"1 span of run a could not be delivered to {WHERE}; they are lost, as these runs have no trace"
    )


def test_what_cannot_be_counted_in_time_is_not_guessed(tmp_path: Path) -> None:
    """`at least` says so; and a file that is gone has no number at all."""
    late = count_undelivered([export_of("run", record_run(tmp_path))], 0.0)
    assert (len(late.runs), late.spans, late.all_counted) == (1, 0, False)
    assert count_undelivered([export_of("gone", tmp_path / "gone.jsonl")], float("inf")).all_counted is False


def test_spans_of_a_processor_are_sent_by_the_command_that_is_named(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """No command hands them to it, so the message names what a collector can be sent; with an address, it works."""

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
    assert "The trace keeps them; to send them: playhead export " in said
    collector = collect()
    result = playhead(*said.partition("playhead ")[2].replace("URL", collector.address).split())
    assert (result.exit_code, result.stderr) == (0, "")
    assert collector.counts == Counter(ids_of(path))


def test_runs_that_are_not_taken_are_named_by_a_command_that_sends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """Memory is bounded, however long a collector is away: once, with the address and the time of the first of them."""
    monkeypatch.setattr(live, "MAX_RUNS", 0)
    collector = collect()
    handle = live_export(collector.address)
    paths = [record_run(tmp_path, name) for name in "abcd"]
    handle.shutdown(0.5)
    (said,) = caplog.messages
    assert said.startswith(f"runs that begin now are not sent to {handle.name} (too many runs wait); to send them: ")
    assert playhead(*said.partition("playhead ")[2].split()).exit_code == 0
    assert collector.counts == Counter(span for path in paths for span in ids_of(path))


def test_every_lost_span_of_a_run_without_a_trace_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Those that wait for a request, those whose events still wait to be read, and those that are open."""
    handle = live_export(DEAD)

    @tool
    def wait() -> str:
        """Wait until the first spans could not be delivered."""
        late_at = time.monotonic() + 5
        while handle._pump is None or handle._pump.stopped is None:
            assert time.monotonic() < late_at
            time.sleep(0.005)
        return "over"

    model = ScriptedModel([call("wait"), call("wait"), text("done")])
    result = Agent(model, tools=[wait], trace=None).run_sync("go")
    handle.shutdown(1.0)
    (said,) = caplog.messages
    assert said == (
        f"6 spans of run {result.run_id} could not be delivered to {DEAD}/v1/traces (connection refused); "
        "they are lost, as these runs have no trace"
    )


def test_refused_spans_are_named_by_their_reason(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """The run's other spans arrive, and the spans of one reason are one line."""
    collector = collect(rule=_no_tools)
    handle = live_export(collector.address)
    result = agent(tmp_path, 7).run_sync("Find it.")
    assert handle.flush(5)
    assert {each.name.partition(":")[0] for each in collector.taken} == {"llm", "agent"}
    (said,) = caplog.messages
    assert said.startswith(f"run {result.run_id}: {handle.name} refused 7 spans: 422 Unprocessable")
    assert (said.count("tool:lookup "), said.endswith(", …)")) == (5, True)


def _no_tools(received: Received) -> Reply:
    return Reply(422 if any(span.name.startswith("tool:") for span in received.spans) else 200)


def test_a_warning_of_a_collector_that_takes_everything_is_passed_on_once(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """A partial success that rejects nothing has a text all the same; each text once, as one plain line."""
    collector = collect(rejecting(0, "kept for \x1b[1m1 hour\nonly"), usual=rejecting(0, "cut"))
    handle = live_export(collector.address)
    for _ in range(3):
        agent(tmp_path).run_sync("Find it.")
        assert handle.flush(5)
    assert caplog.messages == [
        f"{handle.name} takes the spans, and says: kept for  [1m1 hour only",
        f"{handle.name} takes the spans, and says: cut",
    ]


def test_warnings_of_a_collector_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that counts something in each is not passed on for ever."""
    monkeypatch.setattr(delivery, "MAX_SPANS", 1)

    class Talkative(Sink):
        calls = 0

        def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
            self.calls += 1
            return Delivered(len(spans), remarks=[f"{self.calls} cut"] * 2)

        def close(self) -> None:
            """Nothing is open."""

    pump = Pump(Talkative())
    pump.runs.append(export_of("run", record_run(tmp_path, steps=20)))
    while pump.step() == "sent":
        pass
    assert pump.remarks == [f"{number} cut" for number in range(1, delivery.MAX_REMARKS + 1)]


def test_what_is_wrong_with_a_trace_is_said_by_live_export_and_by_the_command_alike(
    tmp_path: Path,
    collect: Callable[..., Collector],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damage, and events that belong to nothing that began."""
    collector = collect()
    handle = live_export(collector.address)
    path = tmp_path / "run.jsonl"

    @tool
    def harm() -> str:
        """Take out the line that says that this call began, and write junk."""
        *lines, last = path.read_bytes().splitlines(keepends=True)
        assert b'"tool-call-started"' in last
        with path.open("r+b") as file:
            file.write(b"".join(lines) + b"x" * (len(last) - 1) + b"\n")
        return "done"

    monkeypatch.setattr(live.LiveExport, "_start", lambda _: None)  # it reads when all is written
    Agent(ScriptedModel([call("harm"), text("done")]), tools=[harm], trace=tmp_path).run_sync("go", run_id="run")
    monkeypatch.undo()
    handle._start()
    assert handle.flush(5)
    said = [each.removeprefix("run run: ") for each in caplog.messages]
    assert [each.partition(": ")[2].partition(":")[0] for each in said[:3]] == ["bad-line", "chain", "gap"]
    assert said[3].startswith("events that are part of no span")
    shown = playhead("export", path, "--to", collector.address)
    assert [each.removeprefix("run: ") for each in shown.stderr.splitlines()] == said
