"""Spans as OTLP's bytes: the same as the library's own encoder writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from playhead.spans.encoding import encode
from tests.spans.collector import ordered
from tests.spans.span_runs import GOLDEN, golden, spans_in

if TYPE_CHECKING:
    from collections.abc import Sequence

ATTRIBUTES: dict[str, Any] = {
    "": "",
    "ä": "ü\n",
    "no": False,
    "yes": True,
    "least": -(2**63),
    "largest": 2**63 - 1,
    "float": -0.5,
    "none": [],
    "texts": ("a", ""),
    "numbers": [1, -1],
}


def span_of(resource: Resource, *, remote: bool) -> ReadableSpan:
    """Return a span that has everything."""
    contexts = [SpanContext(2**128 - 1, number, remote, TraceFlags(1)) for number in (1, 2, 2**64 - 1)]
    return ReadableSpan(
        "name",
        contexts[0],
        contexts[1] if remote else None,
        resource,
        ATTRIBUTES,
        [Event("event", ATTRIBUTES, 2**60), Event("", None, 0)],
        [Link(contexts[2], ATTRIBUTES), Link(contexts[1])],
        SpanKind.CLIENT if remote else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, "why") if remote else Status(StatusCode.OK),
        start_time=2**60,
        end_time=2**60 + 1,
        instrumentation_scope=InstrumentationScope("playhead", "1.0"),
    )


def request(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return what a collector reads of spans."""
    return ordered(ExportTraceServiceRequest.FromString(encode(spans)))


def test_every_part_of_a_span_is_what_the_library_encodes() -> None:
    """Resources, parents, kinds, statuses, events, links, and attributes of every type."""
    here, there = Resource({"service.name": "a"}), Resource({"service.name": "b"}, "https://schema")
    spans = [span_of(here, remote=True), span_of(here, remote=False), span_of(there, remote=True)]
    assert request(spans) == ordered(encode_spans(spans))


@pytest.mark.parametrize("run", sorted(path.stem for path in GOLDEN.glob("*.jsonl")))
def test_a_run_is_what_the_library_encodes(run: str) -> None:
    """The same, of the spans of a run of each strategy, with both sets of attributes."""
    spans = spans_in(golden(run).records, gen_ai=True)
    assert request(spans) == ordered(encode_spans(spans))


def test_a_number_that_otlp_cannot_hold_is_a_text() -> None:
    """A hostile trace spoils no request."""
    span = ReadableSpan("x", SpanContext(1, 1, False), resource=Resource({}), attributes={"huge": 2**63})
    assert b"9223372036854775808" in encode([span])
