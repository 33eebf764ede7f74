"""Live export: runs are sent while they go on, and nothing that happens to the spans happens to the agent."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from playhead import Agent, tool
from playhead.errors import UsageError
from playhead.spans import SpanOptions, export_to, live, live_export, sources
from playhead.spans.destination import named
from playhead.spans.run_export import Cursor
from playhead.testing import ScriptedModel, call, text
from playhead.trace.store import TraceStore
from tests.proving import bound
from tests.spans.collector import Collector, Reply
from tests.spans.spans import agent, id_of, ids_of
from tests.trace.traces import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
DEAD = "http://127.0.0.1:9"


def exported() -> live.LiveExport:
    """Return the live export of this process."""
    assert live._Current.export is not None
    return live._Current.export


def test_a_run_is_sent_when_an_endpoint_is_set(
    tmp_path: Path, collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every span arrives once, and the cursor says so."""
    collector = collect()
    monkeypatch.setenv(ENDPOINT, collector.address)
    path = agent(tmp_path).run_sync("Find it.").trace_path
    assert path is not None
    assert exported().flush(5)
    assert collector.counts == Counter(ids_of(path))
    assert Cursor(path, named(collector.address)).load(read(path)[0][0].h).complete


async def test_spans_arrive_while_the_run_goes_on(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """One that has closed need not wait for the end of the run."""
    collector = collect()
    handle = live_export(collector.address)
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


@pytest.mark.slow
def test_without_an_endpoint_nothing_is_loaded_and_no_thread_starts(tmp_path: Path) -> None:
    """Who does not use it does not pay for it."""
    code = (
        "import sys, threading\n"
        "from playhead import Agent\n"
        "from playhead.testing import ScriptedModel, text\n"
        f"Agent(ScriptedModel([text('hi')]), trace={str(tmp_path)!r}).run_sync('x')\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'openinference', 'requests',"
        " 'playhead.spans'))])\n"
        "print([each.name for each in threading.enumerate() if 'export' in each.name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


@pytest.mark.parametrize("switch", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}], ids=str)
def test_the_standard_switches_turn_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: dict[str, str]
) -> None:
    """As they do for any SDK."""
    monkeypatch.setenv(ENDPOINT, DEAD)
    for name, value in switch.items():
        monkeypatch.setenv(name, value)
    agent(tmp_path).run_sync("Find it.")
    assert live._Current.export is None
    assert live_export().stopped


def test_a_run_whose_tracing_is_suppressed_is_not_sent(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """Nor is one inside a trace of the application that is not sampled; the next one is."""
    collector = collect()
    handle = live_export(collector.address)
    token = otel_context.attach(otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True))
    agent(tmp_path).run_sync("Find it.")
    otel_context.detach(token)
    outer = otel_trace.SpanContext(1, 1, is_remote=False, trace_flags=otel_trace.TraceFlags(0))
    with otel_trace.use_span(otel_trace.NonRecordingSpan(outer)):
        agent(tmp_path).run_sync("Find it.")
    assert not handle.pending
    path = agent(tmp_path).run_sync("Find it.").trace_path
    assert path is not None
    assert handle.flush(5)
    assert collector.counts == Counter(ids_of(path))


def test_a_setting_that_cannot_be_is_said_once_and_hurts_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent does not fail because of its spans."""
    monkeypatch.setenv(ENDPOINT, "localhost:4318")
    for _ in range(2):
        assert agent(tmp_path).run_sync("Find it.").output == "done"
    (said,) = caplog.messages
    assert said.startswith("spans are not exported: OTEL_EXPORTER_OTLP_ENDPOINT is no URL of a collector")


@pytest.mark.parametrize(
    "usual",
    [Reply(500), Reply(400), Reply(429, {"Retry-After": "60"}), Reply(hang_up=True), Reply(delay_s=5.0)],
    ids=["breaks", "refuses", "throttles", "hangs up", "slow"],
)
def test_a_collector_that_takes_nothing_hurts_no_run_and_what_is_missing_is_said(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture, usual: Reply
) -> None:
    """How many spans, of which run, to where, why, and the command that sends them; within the time that is given."""
    collector = collect(usual=usual)
    handle = live_export(collector.address)
    result = agent(tmp_path).run_sync("Find it.")
    assert result.output == "done"
    time.sleep(0.1)
    started = time.monotonic()
    handle.shutdown(1.0)
    assert time.monotonic() - started < bound(1.5)
    said = caplog.messages[-1]
    assert said.startswith(f"8 spans of run {result.run_id} could not be delivered to {collector.address}/v1/traces (")
    assert said.endswith(f"playhead export {result.trace_path} --resume --to {collector.address}/v1/traces")


def test_a_collector_that_fails_for_a_moment_gets_everything(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """It is asked again, and nothing is said; where its answer was lost, it has the same spans twice."""
    collector = collect(Reply(503, {"Retry-After": "0"}), Reply(429, {"Retry-After": "0.05"}), Reply(hang_up=True))
    handle = live_export(collector.address)
    path = agent(tmp_path).run_sync("Find it.").trace_path
    assert path is not None
    for _ in range(3):
        handle.flush(0.2)
    assert handle.flush(5)
    assert collector.counts.keys() == set(ids_of(path))


def test_a_run_without_a_trace_is_sent_from_memory(collect: Callable[..., Collector]) -> None:
    """As one with a trace is: the same spans, for they follow from the events."""
    collector = collect()
    handle = live_export(collector.address)
    agent(None).run_sync("Find it.", run_id="01M81D74MPJV3BNR36438FYQGA")
    assert handle.flush(5)
    assert len(collector.counts) == 8
    assert set(collector.counts.values()) == {1}


def test_a_queue_that_overflows_loses_spans_and_says_so(
    collect: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a run without a trace has a queue; what came before the loss is delivered, and nothing wrong after it."""
    monkeypatch.setattr(sources, "MAX_QUEUED", 10)
    monkeypatch.setattr(live.LiveExport, "_start", lambda _: None)  # a thread that is never scheduled
    collector = collect()
    handle = live_export(collector.address)
    result = agent(None).run_sync("Find it.")
    monkeypatch.undo()
    handle._start()
    handle.flush(5)
    assert 0 < len(collector.counts) < 8
    assert caplog.messages == [
        f"run {result.run_id}: it has no trace, and too many of its events waited: its later spans are lost"
    ]


def test_many_runs_at_once_are_all_sent(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """Each of them whole, from several threads."""
    collector = collect()
    handle = live_export(collector.address)

    def run() -> None:
        for _ in range(3):
            agent(tmp_path).run_sync("Find it.")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert handle.flush(10)
    assert collector.counts == Counter(span for path in tmp_path.glob("*.jsonl") for span in ids_of(path))


def test_spans_go_through_a_processor_of_the_applications_own(tmp_path: Path) -> None:
    """Each is handed over once, whatever kind of processor it is; `flush` flushes that, too."""
    memory = InMemorySpanExporter()
    handle = export_to(BatchSpanProcessor(memory))
    path = agent(tmp_path).run_sync("Find it.").trace_path
    assert path is not None
    assert handle.flush(5)
    assert _ids(memory.get_finished_spans()) == Counter(ids_of(path))
    assert not (tmp_path / ".export").exists()


def test_a_processor_that_raises_hurts_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What it did not take is said."""

    class Broken(SimpleSpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("broken")

    handle = export_to(Broken(InMemorySpanExporter()))
    assert agent(tmp_path).run_sync("Find it.").output == "done"
    handle.flush(5)
    assert "the span processor Broken refused 8 spans: RuntimeError (llm:" in caplog.text


def test_what_spans_show_can_be_said(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """Whose they are, and whether their content is shown."""
    collector = collect()
    handle = live_export(collector.address, service_name="shop", options=SpanOptions(content=False))
    agent(tmp_path).run_sync("A secret task.")
    assert handle.flush(5)
    for received in collector.requests:
        (resource,) = received.request.resource_spans
        assert {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"] == "shop"
        assert b"A secret task." not in received.request.SerializeToString()


def test_a_second_export_is_refused_until_the_first_is_shut_down(collect: Callable[..., Collector]) -> None:
    """Else half of the runs would go where nobody looks."""
    first = live_export(collect().address)
    with pytest.raises(UsageError, match=r"spans are exported to http://127\.0\.0\.1:"):
        live_export(DEAD)
    first.shutdown()
    live_export(DEAD).shutdown()


def test_what_sends_spans_makes_no_spans(tmp_path: Path, collect: Callable[..., Collector]) -> None:
    """An application that instruments its HTTP client does not see the requests of the export."""
    seen: list[Any] = []
    collector = collect()
    handle = live_export(collector.address)
    from playhead.spans.delivery import Otlp

    before = Otlp.post

    def post(self: Otlp, body: bytes, **options: Any) -> Any:
        seen.append(otel_context.get_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY))
        return before(self, body, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Otlp, "post", post)
        agent(tmp_path).run_sync("Find it.")
        assert handle.flush(5)
    assert set(seen) == {True}


def test_no_log_line_holds_a_key(
    tmp_path: Path, collect: Callable[..., Collector], caplog: pytest.LogCaptureFixture
) -> None:
    """Not at any level, of any logger, whatever goes wrong; nor does any file."""
    key = "sk-hunter22-hunter22"
    caplog.set_level(logging.DEBUG)
    collector = collect(usual=Reply(401, body=key.encode()))
    handle = live_export(f"{collector.address}/?token={key}", headers={"x-api-key": key})
    agent(tmp_path).run_sync("Find it.")
    time.sleep(0.1)
    handle.shutdown(1.0)
    assert "could not be delivered" in caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name == "playhead"]
    assert key not in "".join(ours)
    assert key not in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())


def _ids(spans: tuple[ReadableSpan, ...]) -> Counter[str]:
    return Counter(id_of(each) for each in spans)
