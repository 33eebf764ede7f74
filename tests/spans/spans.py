"""Runs and their spans, for the tests, and what is true of the spans of any run."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openinference.semconv.trace import OpenInferenceSpanKindValues
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from playhead import Agent, PlayheadError, load_recording, tool
from playhead.spans import SpanBuilder, SpanOptions, spans_of
from playhead.spans.encoding import encode
from playhead.testing import ScriptedModel, TickingClock, call, text
from tests.options import grouped
from tests.spans.collector import ordered
from tests.trace.traces import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from playhead import Recording
    from playhead.trace.line import Record

GOLDEN = Path(__file__).parents[1] / "golden"
RUNS = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))
TREES = Path(__file__).with_name("trees.txt")
"""The span trees of golden runs that somebody looked at; `python -m tests.golden.record` appends to them."""
RESOURCE = Resource({"service.name": "tests"})
KIND = "openinference.span.kind"


def golden(name: str) -> Recording:
    """Return a golden recording."""
    return load_recording(GOLDEN / f"{name}.jsonl")


# --- runs ---


@tool(read_only=True)
async def lookup(key: int) -> str:
    """Look a fact up."""
    return f"fact {key}"


def agent(folder: Path | None, steps: int = 3, **options: Any) -> Agent:
    """Return an agent that calls a tool so often, and then answers."""
    model = ScriptedModel([call("lookup", key=step) for step in range(steps)] + [text("done")])
    return Agent(model, **grouped(name="guide", tools=[lookup], trace=folder, max_iterations=steps + 1, **options))


def record_run(folder: Path, run_id: str = "run", steps: int = 3, **options: Any) -> Path:
    """Record a run in which every moment takes a millisecond."""
    agent(folder, steps, clock=TickingClock, **options).run_sync("Find it.", run_id=run_id)
    return folder / f"{run_id}.jsonl"


async def recorded(agent: Agent, folder: Path, run_id: str = "run") -> tuple[Recording, list[Record]]:
    """Run an agent; return what its file holds and what was heard of it live."""
    heard: list[Record] = []
    agent.subscribe(None, heard.append)
    with suppress(PlayheadError):
        await agent.run("Do it.", run_id=run_id)
    return load_recording(folder / f"{run_id}.jsonl"), heard


# --- spans ---


def span(number: int, **attributes: Any) -> ReadableSpan:
    """Return a span of this number, with these attributes."""
    context = SpanContext(1, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan(f"span {number}", context, resource=RESOURCE, attributes=attributes, start_time=1, end_time=2)


def spans_in(records: Iterable[Record], *, finished: bool = True, **options: Any) -> list[ReadableSpan]:
    """Return the spans of these records; `finished`: with those that are still open."""
    if not finished:
        return built(records, SpanOptions(**options))[1]
    return list(spans_of(records, SpanOptions(**options), resource=RESOURCE))


def built(records: Iterable[Record], options: SpanOptions | None = None) -> tuple[SpanBuilder, list[ReadableSpan]]:
    """Return a builder that was fed with these, and what it made of them."""
    builder = SpanBuilder(options, RESOURCE)
    return builder, [span for record in records for span in builder.feed(record)]


def ids_of(path: Path) -> list[str]:
    """Return the ids of the spans of a trace, in the order in which they close."""
    return [id_of(each) for each in spans_of(read(path)[0])]


def id_of(span: ReadableSpan) -> str:
    """Return a span's id in hexadecimal digits."""
    return f"{span.context.span_id:016x}"


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span, with its metadata as data."""
    attributes = dict(span.attributes or {})
    return {**attributes, "metadata": json.loads(str(attributes["metadata"]))}


def decoded(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return what a collector reads of these spans."""
    return ordered(ExportTraceServiceRequest.FromString(encode(spans)))


def tree_of(spans: Sequence[ReadableSpan]) -> list[str]:
    """Return the spans as an indented list: name, kind, and ERROR where it is one."""
    below: dict[int | None, list[ReadableSpan]] = {}
    for each in spans:
        below.setdefault(each.parent.span_id if each.parent else None, []).append(each)

    def lines(parent: int | None, depth: int) -> Iterable[str]:
        for each in sorted(below.get(parent, ()), key=lambda found: found.start_time or 0):
            error = "" if each.status.is_ok else " ERROR"
            yield "  " * depth + f"{each.name} {attributes_of(each)[KIND]}{error}"
            yield from lines(each.context.span_id, depth + 1)

    return list(lines(None, 0))


def trees_in(path: Path) -> dict[str, list[str]]:
    """Return the trees of a file, in which `# name` stands above each."""
    blocks = [block.rstrip().splitlines() for block in path.read_text().split("# ")[1:]]
    return {name: lines for name, *lines in blocks}


def check_sound(records: Sequence[Record], spans: Sequence[ReadableSpan]) -> None:
    """Assert what is true of the spans of every run that is over."""
    by_id = {each.context.span_id: each for each in spans}
    assert len(by_id) == len(spans)
    assert 0 not in by_id
    assert [each.name for each in spans if each.parent is None] == [spans[-1].name]
    assert len({each.context.trace_id for each in spans}) == 1
    for each in spans:
        above = by_id[each.parent.span_id] if each.parent else each
        assert 0 < above.start_time <= each.start_time <= each.end_time <= above.end_time  # type: ignore[operator]
        assert all(link.context.span_id in by_id for link in each.links)
    made = [attributes_of(each)[KIND] for each in spans]
    assert set(made) <= {kind.value for kind in OpenInferenceSpanKindValues}
    assert {attributes_of(each)["metadata"]["playhead"]["seq"] for each in spans} <= {each.seq for each in records}
    kinds = [record.kind for record in records]
    assert made.count("LLM") == kinds.count("llm-requested")
    assert made.count("TOOL") == kinds.count("tool-call-started")
    assert made.count("AGENT") == kinds.count("run-started") + kinds.count("agent-started")
