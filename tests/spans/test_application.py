"""Spans through the application's own tracer provider, as those of any instrumentor."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from openinference.instrumentation import suppress_tracing, using_session, using_tags
from opentelemetry import baggage, context, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from playhead import Agent, UsageError, load_recording, recorded, tool
from playhead.replay import reproduce
from playhead.spans import HandedOver, SpanOptions, export_to, spans_of
from playhead.testing import ScriptedModel, call, calls, error, text
from playhead.trace.events import SpansHandedOver
from tests.cli.command_line import playhead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan, Span

    from playhead.compose import Harness
    from playhead.trace.types import Completion, Request
    from tests.spans.collector import Collector

SCOPE = "openinference.instrumentation.playhead"
NOTE = "app.note"
"""An attribute that a tool's body adds to the current span."""


class Application:
    """A program with a tracer provider, and what it has exported."""

    def __init__(self, *processors: SpanProcessor, **options: Any) -> None:
        self.provider = TracerProvider(resource=Resource({"service.name": "shop"}), **options)
        for each in processors:
            self.provider.add_span_processor(each)
        self.exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("shop")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Return what has ended, in that order."""
        return self.exporter.get_finished_spans()

    def tree(self) -> list[str]:
        """Return each span with its parent, in the order in which they began."""
        names = {span.context.span_id: span.name for span in self.spans}
        began = sorted(self.spans, key=lambda span: span.start_time or 0)
        return [f"{names[each.parent.span_id] if each.parent else '-'} > {each.name}" for each in began]

    def ours(self) -> list[ReadableSpan]:
        """Return Playhead's spans, in the order in which they ended."""
        return [each for each in self.spans if each.instrumentation_scope.name == SCOPE]  # type: ignore[union-attr]


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Application:
    """Configure a provider, as a program does once."""
    return configured(monkeypatch, Application())


def configured(monkeypatch: pytest.MonkeyPatch, made: Application) -> Application:
    """Make a provider the one of this process."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made.provider)
    return made


def traveller(folder: Path | None, application: Application) -> Agent:
    """Return an agent with a tool whose body traces, a tool in a thread that traces, and a sub-agent."""

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        with application.tracer.start_as_current_span(f"query {key}"):
            await asyncio.sleep(0)
        return key

    @tool(read_only=True)
    def read(key: str) -> str:
        """Read, in a thread."""
        trace.get_current_span().set_attribute(NOTE, key)
        with application.tracer.start_as_current_span(f"read {key}"):
            return key

    scout = Agent(ScriptedModel([call("look", key="c"), text("Found.")]), name="scout", tools=[look])
    turns = [calls(call("look", key="a"), call("read", key="b")), call("scout", task="Find it."), text("Done.")]
    return Agent(ScriptedModel(turns), name="guide", tools=[look, read, scout], trace=folder)


TREE = [
    "- > request",
    "request > agent:guide",
    "agent:guide > llm:scripted/model",
    "agent:guide > tool:look",
    "tool:look > query a",
    "agent:guide > tool:read",
    "tool:read > read b",
    "agent:guide > llm:scripted/model",
    "agent:guide > tool:scout",
    "tool:scout > agent:scout",
    "agent:scout > llm:scripted/model",
    "agent:scout > tool:look",
    "tool:look > query c",
    "agent:scout > llm:scripted/model",
    "agent:guide > llm:scripted/model",
]


async def test_a_configured_provider_gets_the_spans(tmp_path: Path, application: Application) -> None:
    """Nothing has to be set: they nest under the open span, and the application's own nest under a tool's, threads included."""
    with application.tracer.start_as_current_span("request"):
        await traveller(tmp_path, application).run("Go.")
    assert sorted(application.tree()) == sorted(TREE)
    assert {each.attributes[NOTE] for each in application.ours() if each.name == "tool:read"} == {"b"}  # type: ignore[index]
    assert {each.resource.attributes["service.name"] for each in application.ours()} == {"shop"}


async def test_a_request_and_a_hook_have_a_current_span(tmp_path: Path, application: Application) -> None:
    """What an adapter traces while it asks, streamed or not, nests under the request; what a hook traces, under the agent."""

    class Asking(ScriptedModel):
        async def complete(self, request: Request) -> Completion:
            with application.tracer.start_as_current_span("POST /chat"):
                return await super().complete(request)

    def watch(harness: Harness) -> None:
        harness.tap("lifecycle.completed", lambda *_: application.tracer.start_span("note").end())

    agent = Agent(Asking([text("Done.")]), name="guide", compose=[watch], trace=tmp_path)
    await agent.run("Go.")
    assert sorted(application.tree()) == [
        "- > agent:guide",
        "agent:guide > llm:scripted/model",
        "agent:guide > note",
        "llm:scripted/model > POST /chat",
    ]


def test_what_a_recorded_function_traces_is_in_its_span(
    tmp_path: Path, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also below a tool, in a recorded function inside, and between the steps of a generator; never in the consumer's."""
    monkeypatch.setenv("PLAYHEAD_TRACE_DIR", str(tmp_path))
    tracer = application.tracer

    @tool(read_only=True)
    def look(key: str) -> str:
        """Look."""
        with tracer.start_as_current_span("query"):
            return key

    @recorded
    def inner(key: str) -> str:
        with tracer.start_as_current_span("inside"):
            return look(key)

    @recorded
    def steps(key: str) -> Iterator[str]:
        with tracer.start_as_current_span("step"):
            pass
        yield inner(key)

    for _ in steps("a"):
        with tracer.start_as_current_span("consumer"):
            pass
    assert sorted(application.tree()) == [
        "- > agent:steps",
        "- > consumer",
        "agent:inner > inside",
        "agent:inner > tool:look",
        "agent:steps > step",
        "agent:steps > tool:inner",
        "tool:inner > agent:inner",
        "tool:look > query",
    ]


async def test_many_runs_at_once_keep_their_spans_apart(tmp_path: Path, application: Application) -> None:
    """Each nests under the span that was open where it began, and one thread ends the spans of all."""

    async def request(number: int) -> str:
        with application.tracer.start_as_current_span(f"request {number}"):
            return (await traveller(tmp_path, application).run("Go.", run_id=f"run-{number}")).run_id

    before = [each.name for each in threading.enumerate()].count("playhead-spans")
    await asyncio.gather(*map(request, range(5)))
    for number in range(5):
        recorded = [*spans_of(load_recording(f"run-{number}", tmp_path).records)]
        mine = [each for each in application.ours() if each.context.trace_id == recorded[0].context.trace_id]
        assert by_id(recorded) == by_id(mine)
    assert [each.name for each in threading.enumerate()].count("playhead-spans") == before + 1


def facts(span: ReadableSpan) -> dict[str, Any]:
    """Return what two exports of one span have in common."""
    assert span.attributes is not None
    return {
        "name": span.name,
        "ids": (span.context.trace_id, span.context.span_id, span.parent and span.parent.span_id),
        "times": (span.start_time, span.end_time),
        "attributes": {
            name: [*each] if isinstance(each, tuple) else each for name, each in span.attributes.items() if name != NOTE
        },
        "status": (span.status.status_code, span.status.description),
        "events": [(each.name, dict(each.attributes or {}), each.timestamp) for each in span.events],
        "links": [each.context.span_id for each in span.links],
        "kind": span.kind,
        "scope": span.instrumentation_scope,
    }


def by_id(spans: list[ReadableSpan]) -> dict[int, dict[str, Any]]:
    """Return the facts of spans: calls beside each other may be recorded and handed over in different orders."""
    return {each.context.span_id: facts(each) for each in spans}


@pytest.mark.parametrize("nested", [True, False])
async def test_a_later_export_sends_the_same_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nested: bool
) -> None:
    """Ids, times, attributes, events: the recording alone gives what the provider got, also where it opened the trace."""
    application = configured(monkeypatch, Application(id_generator=Counting()))
    scout = Agent(ScriptedModel([error("down")]), name="look")
    turns = [
        call("look", task="a"),
        call("absent", key="b"),
        text("Done."),
        text("No: too short."),
        *[text("Done now.")] * 5,
    ]
    agent = Agent(ScriptedModel(turns), tools=[scout], strategy="reflexion", trace=tmp_path)
    with application.tracer.start_as_current_span("request") if nested else using_tags(["x"]):
        await agent.run("Go.", run_id="run")
    recording = load_recording("run", tmp_path)
    assert [facts(each) for each in spans_of(recording.records)] == [facts(each) for each in application.ours()]
    assert {each.context.trace_id for each in application.spans} == {1}  # the application's generator made it


def test_the_command_says_who_has_the_spans_already(
    tmp_path: Path, application: Application, collector: Collector
) -> None:
    """They were handed over, not acknowledged; it sends the same ones, and that is no failure."""
    Agent(ScriptedModel([text("Done.")]), name="guide", trace=tmp_path).run_sync("Go.", run_id="run")
    result = playhead("export", tmp_path / "run.jsonl", "--resume", "--to", collector.address)
    who = "its spans were handed over to opentelemetry.sdk.trace.TracerProvider, which acknowledges none"
    assert (result.exit_code, result.stderr) == (0, f"run: {who}; they keep their ids\n")
    assert sorted(collector.counts) == sorted(f"{each.context.span_id:016x}" for each in application.ours())


class Counting(RandomIdGenerator):
    """Numbers the traces."""

    traces = 0

    def generate_trace_id(self) -> int:
        """Return the next number."""
        self.traces += 1
        return self.traces


class Stamping(SpanProcessor):
    """Adds to each span what the application propagates, as the processors of Langfuse and of baggage do."""

    def on_start(self, span: Span, parent_context: context.Context | None = None) -> None:
        """Stamp a span."""
        user = baggage.get_baggage("user", parent_context)
        span.set_attributes({"session.id": "chat-7", "langfuse.environment": "staging", "app.seat": 4})
        if isinstance(user, str):
            span.set_attribute("user.id", user)


async def test_what_the_application_propagates_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session and user are on every span, live and later; the run's id is a session only where there is none."""
    application = configured(monkeypatch, Application(Stamping()))
    token = attach(baggage.set_baggage("user", "ann"))
    try:
        await traveller(tmp_path, application).run("Go.", run_id="run")
    finally:
        detach(token)
    recorded = load_recording("run", tmp_path).records
    handed = [each.event for each in recorded if isinstance(each.event, SpansHandedOver)]
    assert handed == [
        SpansHandedOver(
            to="opentelemetry.sdk.trace.TracerProvider",
            trace_id=f"{application.spans[0].context.trace_id:032x}",
            sampled=True,
            attributes={"session.id": "chat-7", "user.id": "ann", "langfuse.environment": "staging", "app.seat": 4},
        )
    ]
    for span in (*application.ours(), *spans_of(recorded)):
        assert span.attributes is not None
        assert {name: span.attributes[name] for name in ("session.id", "user.id", "langfuse.environment")} == {
            "session.id": "chat-7",
            "user.id": "ann",
            "langfuse.environment": "staging",
        }


async def test_the_session_of_the_open_span_wins(tmp_path: Path, application: Application) -> None:
    """An application may state session and user on its own span alone."""
    with application.tracer.start_as_current_span("chat", attributes={"session.id": "s", "user.id": "ann"}):
        await traveller(tmp_path, application).run("Go.")
    assert {(each.attributes["session.id"], each.attributes["user.id"]) for each in application.ours()} == {  # type: ignore[index]
        ("s", "ann")
    }


async def test_the_sampler_is_the_applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace that it drops has no span of ours nor, inside a tool, of the application; the recording says so."""
    application = configured(monkeypatch, Application(sampler=sampling.ParentBased(sampling.ALWAYS_OFF)))
    result = await traveller(tmp_path, application).run("Go.", run_id="run")
    assert result.output == "Done."
    assert application.spans == ()
    event = next(each.event for each in load_recording("run", tmp_path).records if each.kind == "spans-handed-over")
    assert isinstance(event, SpansHandedOver)
    assert not event.sampled


async def test_an_endpoint_comes_first(
    tmp_path: Path, application: Application, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an endpoint and a provider Playhead sends the spans itself, and the provider gets none of them: never both.

    The application's spans inside a tool still nest beneath the tool's.
    """
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    from playhead.spans import live

    with application.tracer.start_as_current_span("request"):
        await traveller(tmp_path, application).run("Go.", run_id="run")
    export = live._Current.export
    assert export is not None
    assert export.flush()
    assert application.ours() == []
    sent = {each.span_id.hex(): each.name for each in collector.taken}
    beneath = {each.name: sent.get(f"{each.parent.span_id:016x}") for each in application.spans if each.parent}
    assert beneath == {"query a": "tool:look", "query c": "tool:look", "read b": "tool:read"}
    assert not [each for each in load_recording("run", tmp_path).records if each.kind == "spans-handed-over"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4317")],
)
def test_an_endpoint_for_grpc_is_the_applications(
    tmp_path: Path,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    value: str,
) -> None:
    """Playhead does not speak gRPC: the variables are those of the exporter of the provider, which gets the spans of every run."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    for run_id in "ab":
        Agent(ScriptedModel([text("Done.")]), name="guide", trace=tmp_path).run_sync("Go.", run_id=run_id)
    assert [each.name for each in application.ours()] == ["llm:scripted/model", "agent:guide"] * 2
    assert caplog.messages == []


async def test_a_run_without_a_trace_goes_through_the_provider(
    application: Application, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Playhead sends from traces alone, so beside an endpoint such a run is left to the provider."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    await traveller(None, application).run("Go.")
    assert len(application.ours()) == len(TREE) - 4
    assert collector.taken == []


async def test_a_provider_may_be_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`export_to` takes a provider that is not the configured one, and flushes and leaves it."""
    application = Application()
    with export_handed_over(application) as export:
        await traveller(tmp_path, application).run("Go.")
        assert export.flush()
        assert len(application.ours()) == len(TREE) - 4
        export.shutdown()
        await traveller(tmp_path, application).run("Go.")
        assert len(application.ours()) == len(TREE) - 4
        assert [each.message.partition(": ")[2] for each in caplog.records] == ["shutdown() was called"]


class export_handed_over:  # noqa: N801 - a context manager
    """Hands spans to a provider for a while."""

    def __init__(self, application: Application, options: SpanOptions | None = None) -> None:
        self.application, self.options = application, options

    def __enter__(self) -> HandedOver:
        """Begin."""
        self.export = export_to(self.application.provider, options=self.options)
        return self.export

    def __exit__(self, *_: object) -> None:
        """End."""
        self.export.shutdown()


class Foreign(trace.TracerProvider):
    """A provider that is not built on the SDK."""

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        """Return a tracer of its own."""
        return ForeignTracer()


class ForeignTracer(trace.NoOpTracer):
    """Has no generator of ids."""


def test_what_cannot_take_spans_is_refused_at_once() -> None:
    """`export_to` says what it takes, and which provider it cannot use."""
    with pytest.raises(UsageError, match="spans cannot be handed to str: give a TracerProvider"):
        export_to("http://localhost:4318")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Foreign is not built on the SDK of OpenTelemetry"):
        export_to(Foreign())


async def test_a_foreign_provider_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs go on, and one warning says why no span goes to the configured provider."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", Foreign())
    for _ in range(2):
        await traveller(tmp_path, Application()).run("Go.")
    assert [each.message for each in caplog.records] == [
        f"spans are not exported: {__name__}.Foreign is not built on the SDK of OpenTelemetry"
    ]


async def test_suppressed_tracing_is_respected(tmp_path: Path, application: Application) -> None:
    """Inside `suppress_tracing` there is no span."""
    with suppress_tracing():
        await traveller(tmp_path, application).run("Go.")
    assert application.ours() == []


async def test_the_essential_attributes_survive_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK keeps 128 attributes a span and drops the first: prompts are cut to fit, so that none is dropped."""
    application = configured(monkeypatch, Application(span_limits=SpanLimits(max_span_attributes=128)))
    steps = [call(f"tool_{number % 28}") for number in range(40)]
    with export_handed_over(application, SpanOptions(max_messages=None)):
        await Agent(ScriptedModel([*steps, text("Done.")]), tools=many(28), trace=tmp_path, max_iterations=50).run(
            "Go."
        )
    essential = {
        "openinference.span.kind",
        "llm.model_name",
        "llm.token_count.prompt",
        "llm.token_count.completion",
        "llm.token_count.total",
        "input.value",
        "output.value",
        "metadata",
        "session.id",
    }
    spans = [each for each in application.ours() if each.name.startswith("llm:")]
    assert len(spans) == 41
    assert all(essential <= set(each.attributes or {}) for each in spans)
    assert {each.dropped_attributes for each in spans} == {0}


def many(count: int) -> list[Any]:
    """Return this many tools."""
    made = []
    for number in range(count):

        def look(key: str = "") -> str:
            """Look."""
            return key

        look.__name__ = look.__qualname__ = f"tool_{number}"
        made.append(tool(read_only=True)(look))
    return made


async def test_a_broken_processor_breaks_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A processor that raises is the application's; the run goes on, and the log says so once."""

    class Broken(SpanProcessor):
        def on_start(self, span: Span, parent_context: context.Context | None = None) -> None:
            raise OSError("no disk")

    application = configured(monkeypatch, Application(Broken()))
    result = await traveller(tmp_path, application).run("Go.")
    assert result.output == "Done."
    assert [each.message.partition(" on ")[0] for each in caplog.records] == ["subscriber ApplicationSpans.take failed"]


@pytest.mark.slow
async def test_an_isolated_body_has_the_span_of_its_call(tmp_path: Path, application: Application) -> None:
    """The current span crosses to the process of an `isolate=True` tool, as `traceparent` does between services."""
    agent = Agent(ScriptedModel([call("whose_span"), text("Done.")]), tools=[whose_span], trace=tmp_path)
    result = await agent.run("Go.", run_id="run")
    assert result.output == "Done."
    called = next(each for each in application.ours() if each.name == "tool:whose_span")
    assert called.attributes is not None
    assert called.attributes["output.value"] == f"{called.context.span_id:016x} remote True"


@tool(read_only=True, isolate=True)
def whose_span() -> str:
    """Say which span is the current one."""
    span = trace.get_current_span().get_span_context()
    return f"{span.span_id:016x} remote {span.is_remote}"


async def test_a_handed_over_run_reproduces(tmp_path: Path, application: Application) -> None:
    """Where its spans went is no part of what a run did."""
    with using_session("s"):
        await traveller(tmp_path, application).run("Go.", run_id="run")
    verdict = await reproduce(load_recording("run", tmp_path))
    assert verdict.identical
