"""A run that begins inside an application's own tracing."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - else the hook of `TracerProvider` waits for ever in the child of any later fork
import json
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from openinference.instrumentation import (
    using_metadata,
    using_prompt_template,
    using_session,
    using_tags,
    using_user,
)
from opentelemetry import trace
from opentelemetry.context import attach, detach, get_current, set_value
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, get_current_span

from playhead import Agent, load_recording, tool
from playhead.agent.ambient import ambient_telemetry
from playhead.replay import reproduce, resume
from playhead.spans import export_to, live_export, spans_of
from playhead.testing import ScriptedModel, call, text
from playhead.trace.header import TelemetryContext
from tests.spans.spans import spans_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROVIDER = TracerProvider(resource=Resource({"service.name": "shop"}))
TRACER = PROVIDER.get_tracer("shop")


def scout(folder: Path) -> Agent:
    """Return an agent that calls a tool once."""

    @tool(read_only=True)
    async def look(key: str) -> str:
        """Look."""
        return key

    return Agent(ScriptedModel([call("look", key="a"), text("Done.")]), tools=[look], trace=folder)


def telemetry_of(folder: Path, run_id: str) -> TelemetryContext | None:
    """Return what a recording holds of it."""
    return load_recording(run_id, folder).header.telemetry


@pytest.fixture
def outer() -> Iterator[SpanContext]:
    """Open a span of the application's."""
    with TRACER.start_as_current_span("request") as span:
        yield span.get_span_context()


async def test_a_run_joins_the_span_that_is_open(tmp_path: Path) -> None:
    """Trace and parent are the application's, and so they are in every export of the recording, whenever."""
    metadata = {"team": "x", "odd": float("inf")}
    with (
        TRACER.start_as_current_span("request") as span,
        using_session("s"),
        using_user("ann"),
        using_tags(["a"]),
        using_metadata(metadata),
    ):
        await scout(tmp_path).run("Go.", run_id="run")
    context = span.get_span_context()
    telemetry = telemetry_of(tmp_path, "run")
    assert telemetry is not None
    assert telemetry == TelemetryContext(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        session_id="s",
        user_id="ann",
        tags=("a",),
        metadata=telemetry.metadata,
        service={"service.name": "shop"},
    )
    assert telemetry.metadata["team"] == "x"
    root = spans_in(load_recording("run", tmp_path).records)[-1]
    assert root.parent is not None
    assert (root.context.trace_id, root.parent.span_id) == (context.trace_id, context.span_id)


def test_it_is_read_where_the_caller_is(tmp_path: Path, outer: SpanContext) -> None:
    """`run_sync`, whose loop runs in another thread, sees the caller's span as well."""
    scout(tmp_path).run_sync("Go.", run_id="run")
    telemetry = telemetry_of(tmp_path, "run")
    assert telemetry is not None
    assert telemetry.span_id == f"{outer.span_id:016x}"


async def test_nothing_is_nothing(tmp_path: Path) -> None:
    """Outside an application's tracing the recording says nothing of it."""
    assert not get_current_span().get_span_context().is_valid
    await scout(tmp_path).run("Go.", run_id="run")
    assert telemetry_of(tmp_path, "run") is None


async def test_metadata_that_is_called_as_ours_is_kept_beside_it(tmp_path: Path) -> None:
    """Metadata that the application calls `playhead` is on every span under another name, and so is Playhead's own."""
    theirs = {"playhead": {"team": "x"}, "seat": 4}
    with using_metadata(theirs):
        await scout(tmp_path).run("Go.", run_id="run")
    for span in spans_in(load_recording("run", tmp_path).records):
        metadata = json.loads(str((span.attributes or {})["metadata"]))
        assert metadata.pop("playhead")["owner"] == "root"
        assert metadata == {"application.playhead": {"team": "x"}, "seat": 4}


async def test_the_template_of_prompts_is_on_model_calls(tmp_path: Path) -> None:
    """What `using_prompt_template` says stands in the trace and on the spans of model calls, as it is in OpenInference."""
    said = {"template": "How high is {peak}?", "version": "v2", "variables": {"peak": "Mount Zed"}}
    with using_prompt_template(**said):  # type: ignore[arg-type]
        await scout(tmp_path).run("Go.", run_id="run")
    assert telemetry_of(tmp_path, "run") == TelemetryContext(
        prompt_template="How high is {peak}?",
        prompt_template_version="v2",
        prompt_template_variables={"peak": "Mount Zed"},
    )
    expected = {
        "llm.prompt_template.template": "How high is {peak}?",
        "llm.prompt_template.version": "v2",
        "llm.prompt_template.variables": '{"peak":"Mount Zed"}',
    }
    for span in spans_in(load_recording("run", tmp_path).records):
        shown = {key: value for key, value in (span.attributes or {}).items() if key.startswith("llm.prompt_template")}
        assert shown == (expected if span.name.startswith("llm:") else {})


@pytest.mark.parametrize("how", ["provider of the process", "provider of the span"])
async def test_a_run_inside_an_application_has_its_service(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it has set its tracing up; the recording holds who it is, and nothing of its machine, so every export says it."""
    who = {"service.name": "shop", "service.version": "2", "openinference.project.name": "alps"}
    resource = Resource.create({**who, "process.command_args": "--key=secret", "host.name": "h"})
    provider = TracerProvider(resource=resource)
    with monkeypatch.context() as patch, ExitStack() as inside:
        if how == "provider of the process":
            patch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
        else:
            inside.enter_context(provider.get_tracer("shop").start_as_current_span("request"))
        await scout(tmp_path).run("Go.", run_id="run")
    told = telemetry_of(tmp_path, "run")
    assert told is not None
    assert told.service.items() >= who.items()
    assert not {name for name in told.service if not name.startswith(("service.", "openinference."))}
    records = load_recording("run", tmp_path).records
    assert {span.resource.attributes["service.name"] for span in spans_of(records)} == {"shop"}
    assert next(spans_of(records)).resource.attributes.items() >= who.items()
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named-by-hand")
    assert next(spans_of(records)).resource.attributes["service.name"] == "named-by-hand"


@pytest.mark.parametrize("keeps", [True, False], ids=["in a file", "in memory"])
async def test_live_spans_have_the_service_of_the_application(
    keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are handed to its own processor, too, with a trace and without."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", PROVIDER)
    mine = InMemorySpanExporter()
    PROVIDER.add_span_processor(SimpleSpanProcessor(mine))
    export = export_to(PROVIDER)
    try:
        with TRACER.start_as_current_span("request"):
            agent = Agent(ScriptedModel([text("Done.")]), trace=tmp_path if keeps else None)
            await agent.run("Go.")
        assert export.flush()
    finally:
        export.shutdown()
    assert {span.resource.attributes["service.name"] for span in mine.get_finished_spans()} == {"shop"}
    assert len([each for each in mine.get_finished_spans() if each.name != "request"]) == 2


def recorded_names(folder: Path, monkeypatch: pytest.MonkeyPatch, run_id: str, **variables: str) -> dict[str, str]:
    """Return what a run records about its application, in an environment with these variables."""
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        scout(folder).run_sync("Go.", run_id=run_id)
    telemetry = telemetry_of(folder, run_id)
    return {} if telemetry is None else telemetry.service


def test_the_environment_of_a_run_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run keeps the service and project that its environment named, and its spans go there from any other environment."""
    named = recorded_names(
        *(tmp_path, monkeypatch, "run"),
        OTEL_SERVICE_NAME="shop",
        OTEL_RESOURCE_ATTRIBUTES="service.version=2%2E1, deployment.environment.name=staging,host.name=h,broken",
        PHOENIX_PROJECT_NAME="alps",
    )
    assert named == {
        "service.name": "shop",
        "service.version": "2.1",
        "deployment.environment.name": "staging",
        "openinference.project.name": "alps",
    }
    records = load_recording("run", tmp_path).records
    assert dict(next(spans_of(records)).resource.attributes) == named
    both = recorded_names(tmp_path, monkeypatch, "both", PHOENIX_PROJECT="new", PHOENIX_PROJECT_NAME="old")
    assert both == {"openinference.project.name": "new"}
    assert recorded_names(tmp_path, monkeypatch, "none") == {}


def test_the_service_of_live_export_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program names for its live export is in the trace, so that spans sent later have it, too."""
    export = live_export("http://127.0.0.1:9", service_name="till")
    try:
        assert recorded_names(tmp_path, monkeypatch, "run", OTEL_SERVICE_NAME="shop") == {"service.name": "till"}
    finally:
        export.shutdown(0.1)


def test_the_application_overrides_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in the program's own provider is what its other spans have, whatever the variable says."""
    with PROVIDER.get_tracer("shop").start_as_current_span("request"):
        named = recorded_names(tmp_path, monkeypatch, "run", OTEL_SERVICE_NAME="other", PHOENIX_PROJECT="alps")
    assert named == {"service.name": "shop", "openinference.project.name": "alps"}


async def test_an_application_without_a_name_is_nobody(tmp_path: Path) -> None:
    """The name that OpenTelemetry makes up for a service is none."""
    with TracerProvider().get_tracer("x").start_as_current_span("request"):
        await scout(tmp_path).run("Go.", run_id="run")
    records = load_recording("run", tmp_path).records
    assert next(spans_of(records)).resource.attributes["service.name"] == "playhead"


CONTEXT = {"session.id": "s", "user.id": "u", "tag.tags": ["a"], "metadata": '{"team": "x"}'}


@pytest.mark.parametrize(
    ("name", "field", "odd"),
    [
        ("session.id", "session_id", object()),
        ("user.id", "user_id", b"x"),
        ("tag.tags", "tags", [object()]),
        ("metadata", "metadata", "{broken"),
        ("llm.prompt_template.template", "prompt_template", ["x"]),
        ("llm.prompt_template.variables", "prompt_template_variables", "[1]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_that_cannot_be_read_costs_no_other(
    name: str, field: str, odd: object, outer: SpanContext, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever stands in the place of one value: the span above, the service and all other values are kept, and it is said."""
    read: dict[str, Any] = {"session_id": "s", "user_id": "u", "tags": ("a",), "metadata": {"team": "x"}}
    context = get_current()
    for key, value in {**CONTEXT, name: odd}.items():
        context = set_value(key, value, context)
    token = attach(context)
    try:
        found = ambient_telemetry()
    finally:
        detach(token)
    read.pop(field, None)
    read |= {"trace_id": f"{outer.trace_id:032x}", "span_id": f"{outer.span_id:016x}"}
    assert found == TelemetryContext(**read, service={"service.name": "shop"})
    assert f"the value {name!r} of its context cannot be read" in caplog.text


def test_a_resource_that_cannot_be_read_costs_no_span(
    outer: SpanContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The run joins the application's trace all the same."""
    monkeypatch.setattr("playhead.agent.ambient._service", lambda *_: 1 / 0)
    found = ambient_telemetry()
    assert found is not None
    assert (found.span_id, found.service) == (f"{outer.span_id:016x}", {})
    assert "its resource cannot be read" in caplog.text


async def test_a_replay_is_not_a_divergence(tmp_path: Path, outer: SpanContext) -> None:
    """A replay inside or outside of an application's tracing compares none of it and is a trace of its own."""
    with TRACER.start_as_current_span("then"):
        await scout(tmp_path).run("Go.", run_id="run")
    with TRACER.start_as_current_span("now"), using_session("another"):
        outcome = await reproduce(load_recording("run", tmp_path))
    assert (outcome.identical, outcome.divergences) == (True, ())


async def test_a_resumed_run_names_the_trace_before(tmp_path: Path) -> None:
    """A resumed run does not go on in the trace of the one that died: it links to it there."""
    with TRACER.start_as_current_span("then") as span:
        await scout(tmp_path).run("Go.", run_id="run")
    path = tmp_path / "run.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    result = await resume(scout(tmp_path), path)
    then = span.get_span_context()
    telemetry = telemetry_of(tmp_path, result.run_id)
    assert telemetry == TelemetryContext(earlier_trace_id=f"{then.trace_id:032x}")
    root = spans_in(load_recording(result.run_id, tmp_path).records)[-1]
    assert root.parent is None
    assert root.context.trace_id != then.trace_id
    before = spans_in(load_recording("run", tmp_path).records)[-1]
    assert [link.context.span_id for link in root.links] == [before.context.span_id]
    assert [link.context.trace_id for link in root.links] == [before.context.trace_id]


@pytest.mark.slow
def test_who_does_not_trace_pays_nothing(tmp_path: Path) -> None:
    """A run in a process without OpenTelemetry loads none of it, and of the spans only the names of other services' variables."""
    program = (
        "import sys; from playhead import Agent; from playhead.testing import ScriptedModel, text\n"
        f"Agent(ScriptedModel([text('x')]), trace={str(tmp_path)!r}).run_sync('Go.')\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'openinference', 'playhead.spans.'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['playhead.spans.environment']"


def test_without_the_extra_the_error_names_it() -> None:
    """Whoever asks for spans without OpenTelemetry is told what to install."""
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from playhead.errors import MissingDependencyError\n"
        "try:\n    from playhead.spans import spans_of\n"
        "except MissingDependencyError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "spans need: pip install 'playhead[otel]'"
