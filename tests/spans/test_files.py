"""Spans as text: OTLP's JSON as the specification has it, and OpenInference as Phoenix has it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import ParseDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from playhead.spans import spans_of
from playhead.spans.delivery import Delivered, ToFile
from playhead.spans.encoding import otlp_json
from tests.spans.collector import ordered
from tests.spans.spans import record_run
from tests.trace.traces import read

if TYPE_CHECKING:
    from pathlib import Path

PARENT = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1))
SPAN = ReadableSpan(
    "llm:m",
    SpanContext(1, 0xAB, is_remote=False, trace_flags=TraceFlags(1)),
    parent=PARENT,
    resource=Resource({"service.name": "shop"}),
    attributes={"openinference.span.kind": "LLM", "tokens": 2**53 + 1, "tags": ("a", "b"), "cost": 0.5, "ok": True},
    events=[Event("exception", {"exception.type": "X"}, timestamp=1_000_002_000)],
    links=[Link(PARENT, {"why": "asked"})],
    kind=SpanKind.CLIENT,
    status=Status(StatusCode.ERROR, "broke"),
    start_time=1_000_000_000,
    end_time=2_000_000_000,
)


def test_otlp_json_is_as_the_specification_has_it() -> None:
    """Ids in hexadecimal digits, 64-bit integers as text, enumerations as numbers, names in camel case."""
    (resource,) = otlp_json([SPAN])["resourceSpans"]
    assert resource["resource"] == {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    (span,) = resource["scopeSpans"][0]["spans"]
    assert {name: span[name] for name in ("traceId", "spanId", "parentSpanId", "kind", "status")} == {
        "traceId": f"{1:032x}",
        "spanId": "00000000000000ab",
        "parentSpanId": f"{2:016x}",
        "kind": 3,
        "status": {"code": 2, "message": "broke"},
    }
    assert (span["startTimeUnixNano"], span["endTimeUnixNano"]) == ("1000000000", "2000000000")
    values = {each["key"]: each["value"] for each in span["attributes"]}
    assert values["tokens"] == {"intValue": "9007199254740993"}
    assert values["tags"] == {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}}
    assert (span["links"][0]["spanId"], span["events"][0]["timeUnixNano"]) == (f"{2:016x}", "1000002000")


def test_otlp_json_holds_what_a_collector_is_sent(tmp_path: Path) -> None:
    """Read back as the protocol's own message, it is that of the same spans."""
    spans = list(spans_of(read(record_run(tmp_path))[0]))
    said = json.loads(json.dumps(otlp_json(spans)))
    assert ordered(ParseDict(_base_64(said), ExportTraceServiceRequest())) == ordered(encode_spans(spans))


def _base_64(value: Any) -> Any:
    """Return the JSON with its ids as protobuf's own JSON says them."""
    if isinstance(value, list):
        return [_base_64(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in ids else _base_64(each)
        for name, each in value.items()
    }


def test_openinference_is_one_span_a_line(tmp_path: Path) -> None:
    """Each line is the JSON of OpenTelemetry's SDK, with the attributes of OpenInference flat."""
    with (tmp_path / "spans").open("w+") as file:
        assert ToFile(file, "openinference-jsonl").deliver([SPAN, SPAN]) == Delivered(settled=2)
        file.seek(0)
        assert [json.loads(line) for line in file] == [json.loads(SPAN.to_json())] * 2
