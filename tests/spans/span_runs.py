"""Spans of runs, and what can be said of any of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openinference.semconv.trace import OpenInferenceSpanKindValues
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource

from playhead import Agent, PlayheadError, load_recording
from playhead.spans import SpanBuilder, SpanOptions, spans_of
from playhead.spans.encoding import encode
from tests.spans.collector import ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead import Recording
    from playhead.trace.line import Record

GOLDEN = Path(__file__).parents[1] / "golden"
RESOURCE = Resource({"service.name": "tests"})
KIND = "openinference.span.kind"
KINDS = {kind.value for kind in OpenInferenceSpanKindValues}


def golden(name: str) -> Recording:
    """Return a golden recording."""
    return load_recording(GOLDEN / f"{name}.jsonl")


def spans_in(records: Iterable[Record], *, finished: bool = True, **options: Any) -> list[ReadableSpan]:
    """Return the spans of these records."""
    return list(spans_of(records, SpanOptions(**options), resource=RESOURCE, finished=finished))


async def recorded(agent: Agent, folder: Path, run_id: str = "run") -> tuple[Recording, list[Record]]:
    """Run an agent; return what its file holds and what was heard of it live."""
    heard: list[Record] = []
    agent.subscribe(None, heard.append)
    with suppress(PlayheadError):
        await agent.run("Do it.", run_id=run_id)
    return load_recording(folder / f"{run_id}.jsonl"), heard


def built(records: Iterable[Record], options: SpanOptions | None = None) -> tuple[SpanBuilder, list[ReadableSpan]]:
    """Return a builder that was fed with these, and what it made of them."""
    builder = SpanBuilder(options or SpanOptions(), RESOURCE)
    return builder, [span for record in records for span in builder.feed(record)]


def decoded(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return what a collector reads of these spans."""
    return ordered(ExportTraceServiceRequest.FromString(encode(spans)))


def tree_of(spans: Sequence[ReadableSpan]) -> list[str]:
    """Return the spans as an indented list: name, kind, and ERROR where it is one."""
    below: dict[int | None, list[ReadableSpan]] = {}
    for span in spans:
        below.setdefault(span.parent.span_id if span.parent else None, []).append(span)

    def lines(parent: int | None, depth: int) -> Iterable[str]:
        for span in sorted(below.get(parent, ()), key=lambda each: each.start_time or 0):
            attributes = span.attributes or {}
            error = "" if span.status.is_ok else " ERROR"
            yield "  " * depth + f"{span.name} {attributes[KIND]!s}{error}"
            yield from lines(span.context.span_id, depth + 1)

    return list(lines(None, 0))


def check_sound(records: Sequence[Record], spans: Sequence[ReadableSpan]) -> None:
    """Assert what is true of the spans of every run that is over."""
    by_id = {span.context.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert 0 not in by_id
    assert [span.name for span in spans if span.parent is None] == [spans[-1].name]
    assert len({span.context.trace_id for span in spans}) == 1
    for span in spans:
        assert (span.attributes or {})[KIND] in KINDS
        assert span.start_time is not None
        assert span.end_time is not None
        assert 0 < span.start_time <= span.end_time
        for link in span.links:
            assert link.context.span_id in by_id
        if span.parent is not None:
            above = by_id[span.parent.span_id]
            assert above.start_time is not None
            assert above.end_time is not None
            assert above.start_time <= span.start_time
            assert span.end_time <= above.end_time
    seqs = {record.seq for record in records}
    assert {json.loads(str((span.attributes or {})["metadata"]))["playhead"]["seq"] for span in spans} <= seqs
    kinds = [record.kind for record in records]
    made = [(span.attributes or {})[KIND] for span in spans]
    assert made.count("LLM") == kinds.count("llm-requested")
    assert made.count("TOOL") == kinds.count("tool-call-started")
    assert made.count("AGENT") == kinds.count("run-started") + kinds.count("agent-started")
