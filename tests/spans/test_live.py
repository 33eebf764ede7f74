"""Live export: runs are sent while they go on, and nothing that happens to the spans happens to the agent."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from playhead import Agent, tool
from playhead.errors import UsageError
from playhead.spans import LiveExport, SpanBuilder, SpanOptions, export_to, live, live_export
from playhead.spans.cursor import Cursor
from playhead.spans.delivery import Otlp
from playhead.spans.destination import named
from playhead.spans.run_export import RunExport, message
from playhead.testing import ScriptedModel, call, text
from playhead.trace.store import TraceStore
from tests.cli.command_line import playhead
from tests.proving import bound
from tests.spans.collector import Collector, Received, Reply, rejecting
from tests.spans.spans import agent, id_of, ids_of, record_run
from tests.trace.traces import read

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def handle(collector: Collector) -> LiveExport:
    """Export to the collector, live."""
    return live_export(collector.address)


def run(folder: Path) -> Path:
    """Run an agent, and return its trace."""
    path = agent(folder).run_sync("Find it.").trace_path
    assert path is not None
    return path


def test_a_run_is_sent_when_an_endpoint_is_set(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every span arrives once, and the cursor says so."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    path = run(tmp_path)
    assert live._Current.export is not None
    assert live._Current.export.flush(5)
    assert collector.counts == Counter(ids_of(path))
    live._Current.export.shutdown()  # a flush waits for the spans, not for the mark that none is to come
    assert Cursor(path, named(collector.address)).load(read(path)[0][0].h).complete


async def test_spans_arrive_while_the_run_goes_on(tmp_path: Path, collector: Collector, handle: LiveExport) -> None:
    """One that has closed need not wait for the end of the run."""
    waiting = anyio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await waiting.wait()
        return "over"

    model = ScriptedModel([call("wait"), text("done")])
    async with anyio.create_task_group() as group:
        group.start_soon(Agent(model, tools=[wait], trace=tmp_path).run, "go")
        await anyio.to_thread.run_sync(lambda: collector.wait_for(1))
        waiting.set()
    assert handle.flush(5)
    (path,) = TraceStore(tmp_path).paths()
    assert collector.counts == Counter(ids_of(path))


def test_a_run_whose_tracing_is_suppressed_is_not_sent(
    tmp_path: Path, collector: Collector, handle: LiveExport
) -> None:
    """Nor is one inside a trace of the application that is not sampled; the next one is."""
    token = otel_context.attach(otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True))
    run(tmp_path)
    otel_context.detach(token)
    outer = otel_trace.SpanContext(1, 1, is_remote=False, trace_flags=otel_trace.TraceFlags(0))
    with otel_trace.use_span(otel_trace.NonRecordingSpan(outer)):
        run(tmp_path)
    assert not handle.pending
    path = run(tmp_path)
    assert handle.flush(5)
    assert collector.counts == Counter(ids_of(path))


def test_a_setting_that_cannot_be_is_said_once_and_hurts_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent does not fail because of its spans."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")
    for _ in range(2):
        assert agent(tmp_path).run_sync("Find it.").output == "done"
    (said,) = caplog.messages
    assert said.startswith("spans are not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector")


@pytest.mark.parametrize(
    "usual",
    [Reply(500), Reply(400), Reply(429, {"Retry-After": "60"}), Reply(hang_up=True), Reply(delay_s=5.0)],
    ids=["breaks", "refuses", "throttles", "hangs up", "slow"],
)
def test_a_collector_that_takes_nothing_hurts_no_run_and_what_is_missing_is_said(
    tmp_path: Path, collector: Collector, handle: LiveExport, caplog: pytest.LogCaptureFixture, usual: Reply
) -> None:
    """How many spans, of which run, to where, why, and the command that sends them; within the time that is given."""
    collector.usual = usual
    result = agent(tmp_path).run_sync("Find it.")
    assert result.output == "done"
    time.sleep(0.1)
    started = time.monotonic()
    handle.shutdown(1.0)
    assert time.monotonic() - started < bound(1.5)
    said = caplog.messages[-1]
    assert said.startswith(f"8 spans of run {result.run_id} could not be delivered to {collector.address}/v1/traces (")
    assert said.endswith(f"playhead export {result.trace_path} --resume --to {collector.address}/v1/traces")


def test_a_collector_that_fails_for_a_moment_gets_everything(
    tmp_path: Path, collector: Collector, handle: LiveExport
) -> None:
    """It is asked again, and nothing is said; where its answer was lost, it has the same spans twice."""
    collector.replies = [Reply(503, {"Retry-After": "0"}), Reply(429, {"Retry-After": "0"}), Reply(hang_up=True)]
    path = run(tmp_path)
    for _ in range(3):
        handle.flush(0.2)
    assert handle.flush(5)
    assert collector.counts.keys() == set(ids_of(path))


def test_a_run_without_a_trace_is_not_sent_and_that_is_said_once(
    collector: Collector, handle: LiveExport, caplog: pytest.LogCaptureFixture
) -> None:
    """Playhead sends spans from traces; a tracer provider takes those of every run."""
    for _ in range(2):
        assert agent(None).run_sync("Find it.").output == "done"
    assert (handle.flush(5), collector.requests) == (True, [])
    why = "those with trace=None, which need a tracer provider"
    assert caplog.messages == [f"runs that begin now are not sent to {handle.name} ({why})"]


def test_many_runs_at_once_are_all_sent(tmp_path: Path, collector: Collector, handle: LiveExport) -> None:
    """Each of them whole, from several threads."""
    threads = [threading.Thread(target=lambda: [run(tmp_path) for _ in range(3)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert handle.flush(10)
    assert collector.counts == Counter(span for path in tmp_path.glob("*.jsonl") for span in ids_of(path))


def test_spans_go_through_a_processor_of_the_applications_own(tmp_path: Path) -> None:
    """Each is handed over once, whatever kind of processor it is; `flush` flushes that, too."""
    memory = InMemorySpanExporter()
    handle = export_to(provider_of(BatchSpanProcessor(memory)))
    path = run(tmp_path)
    assert handle.flush(5)
    assert Counter(map(id_of, memory.get_finished_spans())) == Counter(ids_of(path))
    assert not (tmp_path / ".export").exists()


def provider_of(processor: SpanProcessor) -> TracerProvider:
    """Return a provider with a processor."""
    made = TracerProvider()
    made.add_span_processor(processor)
    return made


def test_a_processor_that_raises_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What it did not take is said."""

    class Broken(SimpleSpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("broken")

    handle = export_to(provider_of(Broken(InMemorySpanExporter())))
    assert agent(tmp_path).run_sync("Find it.").output == "done"
    handle.flush(5)
    (said,) = caplog.messages
    assert said.startswith(
        "spans are not handed over to opentelemetry.sdk.trace.TracerProvider: it raised RuntimeError for a span; "
    )


def test_what_spans_show_can_be_said(tmp_path: Path, collector: Collector) -> None:
    """Whose they are, and whether their content is shown."""
    handle = live_export(collector.address, service_name="shop", options=SpanOptions(content=False))
    agent(tmp_path).run_sync("A secret task.")
    assert handle.flush(5)
    for received in collector.requests:
        (resource,) = received.request.resource_spans
        assert {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"] == "shop"
        assert b"A secret task." not in received.request.SerializeToString()


def test_a_second_export_is_refused_until_the_first_is_shut_down(handle: LiveExport) -> None:
    """Else half of the runs would go where nobody looks."""
    with pytest.raises(UsageError, match=r"spans are exported to http://127\.0\.0\.1:"):
        live_export(DEAD)
    handle.shutdown()
    live_export(DEAD).shutdown()


def test_what_sends_spans_makes_no_spans(
    tmp_path: Path, collector: Collector, handle: LiveExport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that instruments its HTTP client does not see the requests of the export."""
    seen: list[Any] = []
    before = Otlp.post

    def post(self: Otlp, body: bytes, **options: Any) -> Any:
        seen.append(otel_context.get_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY))
        return before(self, body, **options)

    monkeypatch.setattr(Otlp, "post", post)
    run(tmp_path)
    assert handle.flush(5)
    assert set(seen) == {True}


def test_no_log_line_holds_a_key(tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    """Not at any level, of any logger, whatever goes wrong; nor does any file."""
    key = "sk-hunter22-hunter22"
    caplog.set_level(logging.DEBUG)
    collector.usual = Reply(401, body=key.encode())
    handle = live_export(f"{collector.address}/?token={key}", headers={"x-api-key": key})
    run(tmp_path)
    time.sleep(0.1)
    handle.shutdown(1.0)
    assert "could not be delivered" in caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name == "playhead"]
    assert key not in "".join(ours)
    assert key not in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())


# --- flush ---


@pytest.mark.parametrize("in_file", [True, False], ids=["in files", "without a trace"])
def test_it_returns_however_busy_the_application_is(
    tmp_path: Path, collector: Collector, handle: LiveExport, in_file: bool
) -> None:
    """While each request is under way another agent runs, so there are always new spans: it waits for those before it alone."""

    def one_more(_: Received) -> Reply:
        agent(tmp_path / "busy" if in_file else None).run_sync("Find it.")
        return Reply()

    collector.rule = one_more
    path = run(tmp_path)
    assert handle.flush(10)
    assert collector.counts.keys() >= set(ids_of(path))
    collector.rule = None
    handle.shutdown(1.0)


def test_it_returns_when_its_time_is_over(tmp_path: Path, collector: Collector, handle: LiveExport) -> None:
    """And says that not everything has arrived."""
    collector.usual = Reply(503)
    run(tmp_path)
    started = time.monotonic()
    assert not handle.flush(0.1)
    assert time.monotonic() - started < bound(1)
    handle.shutdown(0.2)


def test_a_provider_is_flushed_within_the_rest_of_the_time(tmp_path: Path) -> None:
    """It gets the time that is left, and its answer is that of `flush`."""
    given: list[int] = []
    answers = [True, False]

    class Processor(SpanProcessor):
        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            given.append(timeout_millis)
            return answers.pop(0)

    handle = export_to(provider_of(Processor()))
    run(tmp_path)
    assert [handle.flush(5) for _ in range(2)] == [True, False]
    assert 3000 < given[0] <= 5000
    answers.append(True)
    handle.shutdown(0.2)


# --- what is said ---


WHERE = "http://h/v1/traces"


def test_what_was_not_delivered_is_one_sentence_with_the_command_that_sends_it(tmp_path: Path) -> None:
    """A few runs are named by their traces, many by the time of the first; those of another folder have their own command."""
    kept = "The trace keeps them; to send them: playhead export"
    one = RunExport(tmp_path / "a.jsonl", SpanBuilder)
    assert message([(one, 1200)], WHERE, None, "--resume --to x") == (
        f"1,200 spans of run a could not be delivered to {WHERE}. {kept} {tmp_path}/a.jsonl --resume --to x"
    )
    runs = [RunExport(record_run(tmp_path / "many", name), SpanBuilder) for name in "abcd"]
    counted = [(each, each.count_rest(float("inf"))) for each in (*runs, one)]
    assert message(counted, WHERE, "why", "--resume") == (
        f"at least 32 spans of 5 runs could not be delivered to {WHERE} (why). {kept} --since 2026-09-21T14:13:20Z --resume "
        f"--trace-dir {tmp_path}/many; playhead export {tmp_path}/a.jsonl --resume"
    )


def test_the_command_that_is_named_sends_a_run_to_its_own_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """Also from a shell that does not know it."""
    with monkeypatch.context() as patch:
        patch.setenv("PHOENIX_PROJECT_NAME", "alps")
        handle = live_export(DEAD)
        run(tmp_path)
        handle.shutdown(0.5)
    (said,) = caplog.messages
    result = playhead(*said.partition("playhead ")[2].replace(f"{DEAD}/v1/traces", collector.address).split())
    assert (result.exit_code, result.stderr) == (0, "")
    (sent,) = [resource for each in collector.requests for resource in each.request.resource_spans]
    told = {each.key: each.value.string_value for each in sent.resource.attributes}
    assert told["openinference.project.name"] == "alps"


def test_what_cannot_be_counted_in_time_is_not_guessed(tmp_path: Path) -> None:
    """Nor has a file that is gone a number."""
    assert RunExport(record_run(tmp_path), SpanBuilder).count_rest(0.0) is None
    assert RunExport(tmp_path / "gone.jsonl", SpanBuilder).count_rest(float("inf")) is None


def test_spans_of_a_processor_are_sent_by_the_command_that_is_named(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """No command hands them to it, so the message names what a collector can be sent; with an address, it works."""

    class Stuck(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            del span
            stuck.wait(5)

    stuck = threading.Event()
    handle = export_to(provider_of(Stuck()))
    path = record_run(tmp_path)
    handle.shutdown(0.2)
    stuck.set()
    (said,) = caplog.messages
    assert said.startswith(
        "spans are not handed over to opentelemetry.sdk.trace.TracerProvider: it did not take the last spans in time; "
    )
    result = playhead(*said.partition("playhead ")[2].replace("URL", collector.address).split())
    assert (result.exit_code, "handed over to" in result.stderr) == (0, True)
    assert collector.counts == Counter(ids_of(path))


def test_runs_that_are_not_taken_are_named_by_a_command_that_sends_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    collector: Collector,
    handle: LiveExport,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Memory is bounded, however long a collector is away: once, with the address and the time of the first of them."""
    monkeypatch.setattr(live, "MAX_RUNS", 0)
    paths = [record_run(tmp_path, name) for name in "abcd"]
    handle.shutdown(0.5)
    (said,) = caplog.messages
    assert said.startswith(f"runs that begin now are not sent to {handle.name} (too many runs wait); to send them: ")
    assert playhead(*said.partition("playhead ")[2].split()).exit_code == 0
    assert collector.counts == Counter(span for path in paths for span in ids_of(path))


def test_every_undelivered_span_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
    result = Agent(model, tools=[wait], trace=tmp_path).run_sync("go")
    handle.shutdown(1.0)
    (said,) = caplog.messages
    assert said.startswith(
        f"6 spans of run {result.run_id} could not be delivered to {DEAD}/v1/traces (connection refused). The trace keeps them"
    )


def test_refused_spans_are_named_by_their_reason(
    tmp_path: Path, collector: Collector, handle: LiveExport, caplog: pytest.LogCaptureFixture
) -> None:
    """The run's other spans arrive, and the spans of one reason are one line."""
    collector.rule = _no_tools
    result = agent(tmp_path, 7).run_sync("Find it.")
    assert handle.flush(5)
    handle.shutdown(5)  # its thread has ended then, with everything that it had to say
    assert {each.name.partition(":")[0] for each in collector.taken} == {"llm", "agent"}
    (said,) = caplog.messages
    assert said.startswith(f"run {result.run_id}: {handle.name} refused 7 spans: 422 Unprocessable")
    assert (said.count("tool:lookup "), said.endswith(", …)")) == (5, True)


def _no_tools(received: Received) -> Reply:
    return Reply(422 if any(span.name.startswith("tool:") for span in received.spans) else 200)


def test_warnings_of_a_collector_that_takes_everything_are_passed_on(
    tmp_path: Path, collector: Collector, handle: LiveExport, caplog: pytest.LogCaptureFixture
) -> None:
    """A partial success that rejects nothing has a text all the same; each text once, as one plain line, and ten at most."""
    texts = ["kept for \x1b[1m1 hour\nonly", "cut", "cut", *map(str, range(9))]
    collector.replies = [rejecting(0, said) for said in texts]
    for _ in texts:
        run(tmp_path)
        assert handle.flush(5)
    said = ["kept for  [1m1 hour only", "cut", *map(str, range(8))]
    assert caplog.messages == [f"{handle.name} takes the spans, and says: {each}" for each in said]


def test_what_is_wrong_with_a_trace_is_said_by_live_export_and_by_the_command_alike(
    tmp_path: Path,
    collector: Collector,
    handle: LiveExport,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Damage, and events that belong to nothing that began."""
    path = tmp_path / "run.jsonl"

    @tool
    def harm() -> str:
        """Take out the line that says that this call began, and write junk."""
        *lines, last = path.read_bytes().splitlines(keepends=True)
        assert b'"tool-call-started"' in last
        with path.open("r+b") as file:
            file.write(b"".join(lines) + b"x" * (len(last) - 1) + b"\n")
        return "done"

    written, work = threading.Event(), handle._work
    monkeypatch.setattr(handle, "_work", lambda: (written.wait(5), work()))  # it reads when all is written
    Agent(ScriptedModel([call("harm"), text("done")]), tools=[harm], trace=tmp_path).run_sync("go", run_id="run")
    written.set()
    assert handle.flush(5)
    handle.shutdown(5)
    said = [each.removeprefix("run run: ") for each in caplog.messages]
    assert [each.partition(": ")[2].partition(":")[0] for each in said[:3]] == ["bad-line", "chain", "gap"]
    assert said[3].startswith("events that are part of no span")
    shown = playhead("export", path, "--to", collector.address)
    assert [each.removeprefix("run: ") for each in shown.stderr.splitlines()] == said
