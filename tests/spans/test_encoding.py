"""Spans as OTLP's bytes: the same as the library's own encoder writes, and never bytes that spoil a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from playhead.spans import spans_of
from playhead.spans.encoding import LEFT_OUT, encode, without_content
from tests.proving import sample
from tests.spans.collector import ordered, spans_in
from tests.spans.spans import record_run, span
from tests.trace.traces import read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


TEXT = st.text(max_size=300)
SCALARS = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = SCALARS | st.lists(TEXT, max_size=3) | st.lists(st.integers(-5, 5), max_size=3)
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=5)
RESOURCES = [Resource({"service.name": "a"}), Resource({"service.name": "b"}, "https://schema")]
SCOPES = [InstrumentationScope("a"), InstrumentationScope("b", "1.0", "https://schema", {"x": 1}), None]
CONTEXTS = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    is_remote=st.booleans(),
    trace_flags=st.just(TraceFlags(1)),
    trace_state=st.just(TraceState([("a", "b"), ("c", "d")])) | st.none(),
)
SPANS = st.builds(
    ReadableSpan,
    TEXT,
    CONTEXTS,
    st.none() | CONTEXTS,
    st.sampled_from(RESOURCES),
    ATTRIBUTES,
    st.lists(st.builds(Event, TEXT, ATTRIBUTES, st.integers(0, 2**60)), max_size=2),
    st.lists(st.builds(Link, CONTEXTS, ATTRIBUTES), max_size=2),
    st.sampled_from(list(SpanKind)),
    st.none(),
    st.sampled_from([Status(), Status(StatusCode.OK), Status(StatusCode.ERROR, "why")]),
    st.integers(0, 2**60),
    st.integers(0, 2**60),
    st.sampled_from(SCOPES),
)


def request(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return what a collector reads of spans."""
    return ExportTraceServiceRequest.FromString(encode(spans))


@settings(max_examples=sample(50, 8))
@given(st.lists(SPANS, max_size=4))
def test_it_is_what_the_library_encodes(spans: list[ReadableSpan]) -> None:
    """Each span, its resource and its scope hold the same, whatever they are; only the order of attributes may differ."""
    assert len(spans_in(request(spans))) == len(spans)
    for each in spans:
        assert ordered(request([each])) == ordered(encode_spans([each]))


def test_a_real_run_is_what_the_library_encodes(tmp_path: Path) -> None:
    """The same, of the spans of a run, all at once."""
    spans = list(spans_of(read(record_run(tmp_path))[0]))
    assert ordered(request(spans)) == ordered(encode_spans(spans))


def test_content_is_left_out_when_there_is_no_room_for_it() -> None:
    """Long texts and messages go, whatever identifies and counts stays, and an attribute says so."""
    attributes = {"llm.input_messages.0.message.content": "hi", "input.value": "x" * 1000, "llm.token_count.total": 7}
    (message,) = spans_in(request([without_content(span(1, **attributes))]))
    assert {each.key for each in message.attributes} == {"llm.token_count.total", LEFT_OUT}
    assert (message.name, message.span_id.hex()) == ("span 1", f"{1:016x}")
