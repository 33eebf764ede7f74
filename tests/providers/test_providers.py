"""Programs whose users call `register()`, `Langfuse()` or `logfire.configure()`, with the real packages: spans arrive without a setting of ours.

Each program runs in an environment of its own in `build/`, and sends to a collector of the test.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead import load_recording
from tests.cli.command_line import playhead
from tests.docs.pages import DOCS, blocks_of
from tests.proving import bound
from tests.spans.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from playhead import Recording

pytestmark = pytest.mark.providers

ROOT = Path(__file__).parents[2]
PHOENIX = """
from phoenix.otel import register
register(endpoint=STUB + "/v1/traces", project_name="mountains", verbose=False)
"""
LANGFUSE = """
from langfuse import Langfuse, propagate_attributes
langfuse = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", base_url=STUB, environment="staging")
"""
LOGFIRE = """
import logfire
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
exporter = OTLPSpanExporter(STUB + "/v1/traces")
logfire.configure(send_to_logfire=False, console=False, service_name="shop", environment="staging",
                  additional_span_processors=[BatchSpanProcessor(exporter)])
"""
PLAIN = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(STUB + "/v1/traces")))
trace.set_tracer_provider(provider)
"""
OPEN = """
from opentelemetry import trace
def span(name):
    return trace.get_tracer("app").start_as_current_span(name)
"""
OPEN_LANGFUSE = """
def span(name):
    return langfuse.start_as_current_observation(name=name)
"""
USING = """
from openinference.instrumentation import using_attributes
inside = using_attributes(session_id="chat-7", user_id="ann", tags=["mountains"])
"""
PROPAGATED = """
inside = propagate_attributes(session_id="chat-7", user_id="ann", tags=["mountains"], environment="prod")
"""
AGENT = """
import asyncio, threading
from playhead import Agent, tool
from playhead.testing import ScriptedModel, call, calls, text

@tool
def look(key: str) -> str:
    "Look a fact up, in a thread."
    with span("db.query " + key):
        return threading.current_thread().name

@tool
async def ask(key: str) -> str:
    "Ask somebody, in the event loop."
    with span("http.get " + key):
        await asyncio.sleep(0)
    return key

helper = Agent(ScriptedModel([call("look", key="c"), text("61 metres")]), name="helper", description="Helps.", tools=[look])
model = ScriptedModel([calls(call("look", key="a"), call("ask", key="b")), call("helper", task="How deep?"), text("done")])
"""
RUN = """
with span("request"), inside:
    Agent(model, name="guide", tools=[look, ask, helper]).run_sync("How high?", run_id="run")
"""
TREE = """\
request
  agent:guide
    llm:scripted/model
    tool:look
      db.query a
    tool:ask
      http.get b
    llm:scripted/model
    tool:helper
      agent:helper
        llm:scripted/model
        tool:look
          db.query c
        llm:scripted/model
    llm:scripted/model
"""
SESSION = {"session.id": "chat-7", "user.id": "ann"}
PROVIDERS: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    "phoenix": (
        PHOENIX + OPEN + USING,
        "/v1/traces",
        {**SESSION, "tag.tags": ["mountains"]},
        {"openinference.project.name": "mountains"},
    ),
    "langfuse": (
        LANGFUSE + OPEN_LANGFUSE + PROPAGATED,
        "/api/public/otel/v1/traces",
        {**SESSION, "langfuse.trace.tags": ["mountains"], "langfuse.environment": "prod"},
        {"langfuse.environment": "staging"},
    ),
    "logfire": (
        LOGFIRE + OPEN + USING,
        "/v1/traces",
        {"session.id": "[Scrubbed due to 'session']", "user.id": "ann", "tag.tags": ["mountains"]},
        {"service.name": "shop", "deployment.environment.name": "staging"},
    ),
    "plain": (PLAIN + OPEN + USING, "/v1/traces", {**SESSION, "tag.tags": ["mountains"]}, {"service.name": "shop"}),
}
"""What the program's users write, where it sends, what each of our spans has of the application's, and what its resource has."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that takes everything."""
    made = Collector()
    yield made
    made.close()


def run(program: str, folder: Path, collector: Collector, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the environment that has the real packages; its traces go into the folder."""
    python = Path(os.environ.get("BACKENDS", ROOT / "build")) / "providers" / "bin" / "python"
    if not python.exists():
        pytest.fail(f"there is no {python}: make test-providers")
    own = {"PLAYHEAD_TRACE_DIR": str(folder), "NO_PROXY": "127.0.0.1", **environment}
    file = folder / "program.py"
    file.write_text(f"STUB = {collector.address!r}\n{program}", encoding="utf-8")
    done = subprocess.run(
        [python, file],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | own,  # Logfire heeds them
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def tree(spans: list[Span]) -> str:
    """Return the names of spans as a tree, in the order in which they began."""
    children: dict[bytes, list[Span]] = {}
    ids = {each.span_id for each in spans}
    for each in sorted(spans, key=lambda each: each.start_time_unix_nano):
        children.setdefault(each.parent_span_id if each.parent_span_id in ids else b"", []).append(each)

    def lines(above: bytes, indent: str) -> Iterator[str]:
        for each in children.get(above, ()):
            yield f"{indent}{each.name}\n"
            yield from lines(each.span_id, f"{indent}  ")

    return "".join(lines(b"", ""))


def shown(span: Span) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {
        each.key: [item.string_value for item in each.value.array_value.values]
        if each.value.HasField("array_value")
        else each.value.string_value
        for each in span.attributes
    }


def ours(collector: Collector) -> dict[str, Span]:
    """Return the spans of our scope, by id."""
    return {
        span.span_id.hex(): span
        for request in collector.requests
        for resource in request.request.resource_spans
        for scope in resource.scope_spans
        if scope.scope.name == "openinference.instrumentation.playhead"
        for span in scope.spans
    }


def recording(folder: Path) -> Recording:
    """Return the run's recording."""
    return load_recording(folder / "run.jsonl")


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_span_arrives_inside_the_applications_own(name: str, tmp_path: Path, collector: Collector) -> None:
    """Once, with its session, user, tags and environment, and with the application's spans inside; and each is sent again the same.

    The spans of a tool nest in the event loop, in the thread of a sync tool, and in a sub-agent.
    """
    setup, path, attributes, resource = PROVIDERS[name]
    done = run(setup + AGENT + RUN, tmp_path, collector)
    assert done.stderr == ""
    assert {request.path for request in collector.requests if request.spans} == {path}
    assert tree(collector.taken) == TREE
    assert set(collector.counts.values()) == {1}
    found = ours(collector)
    assert len(found) == TREE.count("agent:") + TREE.count("llm:") + TREE.count("tool:")
    for span in found.values():
        assert shown(span) | attributes == shown(span)
        assert shown(span)["openinference.span.kind"] == span.name.partition(":")[0].upper()
    for request in collector.requests:
        (sent,) = request.request.resource_spans
        told = {each.key: each.value.string_value for each in sent.resource.attributes}
        assert told | resource == told
    later = Collector()
    result = playhead("export", tmp_path / "run.jsonl", "--resume", "--to", later.address)
    assert result.exit_code == 0
    assert {each.span_id.hex(): each.trace_id for each in later.taken} == {
        number: span.trace_id for number, span in found.items()
    }
    later.close()


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_that_is_configured_after_the_agent_was_made(
    name: str, tmp_path: Path, collector: Collector
) -> None:
    """Users import their agents first."""
    setup = PROVIDERS[name][0]
    make = 'agent = Agent(ScriptedModel([text("done")]), name="guide")\n'
    run(f'{AGENT}{make}{setup}agent.run_sync("How high?", run_id="run")', tmp_path, collector)
    assert tree(collector.taken) == "agent:guide\n  llm:scripted/model\n"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_long_prompt_keeps_what_matters_within_the_providers_limit(
    name: str, tmp_path: Path, collector: Collector
) -> None:
    """128 attributes by default: kind, model, tokens, input and output are there, and the library warns of nothing that it dropped."""
    long = 'model = ScriptedModel([call("look", key=str(turn)) for turn in range(60)] + [text("done")])\n'
    program = f"{PROVIDERS[name][0]}{AGENT}{long}{RUN}".replace(
        "tools=[look, ask, helper]", "tools=[look], max_iterations=99"
    )
    done = run(program, tmp_path, collector)
    assert done.stderr == ""
    spans = [shown(span) for span in ours(collector).values() if span.name.startswith("llm:")]
    assert len(spans) == 61
    for span in spans:
        wanted = {"openinference.span.kind", "llm.model_name", "llm.token_count.total", "input.value", "output.value"}
        assert wanted <= span.keys()
        assert json.loads(span["input.value"])["messages"][-1]


def test_an_endpoint_wins_over_a_provider(tmp_path: Path, collector: Collector) -> None:
    """Then Playhead sends by itself, and the provider gets nothing of it: never both."""
    other = Collector()
    program = PROVIDERS["phoenix"][0] + AGENT + RUN
    run(program, tmp_path, collector, OTEL_EXPORTER_OTLP_ENDPOINT=other.address)
    assert not ours(collector)
    assert len(ours(other)) == TREE.count("agent:") + TREE.count("llm:") + TREE.count("tool:")
    assert set(other.counts.values()) == {1}
    other.close()


def test_a_dead_collector_does_not_hold_up_the_agent(tmp_path: Path, collector: Collector) -> None:
    """`register()` sends each span by itself and tries for seconds; that is said at the end, with a command that sends the run."""
    timed = """
import time
began = time.monotonic()
Agent(model, name="guide", tools=[look, ask, helper]).run_sync("How high?", run_id="run")
print(time.monotonic() - began)
"""
    setup = PHOENIX.replace("STUB +", '"http://127.0.0.1:9" +')
    no_spans = "from contextlib import nullcontext as span\n"  # of the application's: it would wait for each
    done = run(f"{setup}{no_spans}{AGENT}{timed}", tmp_path, collector)
    assert float(done.stdout) < bound(2.0)
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("spans are not handed over")]
    command = said.partition("playhead ")[2].replace("URL", collector.address)
    assert playhead(*command.split()).exit_code == 0
    assert {span.name for span in ours(collector).values()} >= {"agent:guide", "tool:helper", "agent:helper"}


@pytest.mark.parametrize("guide", ["phoenix", "langfuse", "logfire", "opentelemetry"])
def test_the_guide(guide: str, tmp_path: Path, collector: Collector) -> None:
    """Its first lines, as they stand there, print what it shows, and send the agent's spans."""
    (program, printed), *_ = blocks_of(DOCS / "guides" / f"{guide}.md")
    names = {
        "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
        "LANGFUSE_SECRET_KEY": "sk-lf-1",
        "LANGFUSE_BASE_URL": collector.address,
        "LOGFIRE_TOKEN": "pylf_v1_local_1",
        "LOGFIRE_CONSOLE": "false",
        "LOGFIRE_BASE_URL": collector.address,
    }
    program = program.replace("http://localhost:4318", collector.address)
    program = program.replace("register(project", "register(endpoint=f'{STUB}/v1/traces', project")
    assert run(program, tmp_path, collector, **names).stdout.endswith(printed)
    assert {span.name for span in ours(collector).values()} >= {"agent:guide", "llm:scripted/model"}
