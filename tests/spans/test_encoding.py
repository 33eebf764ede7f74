"""Spans as bytes and as text, and the text in them that no backend can hold."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from openinference.instrumentation import using_metadata, using_session, using_tags, using_user
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from playhead import Agent, tool
from playhead.cli.exporting import ToFile, otlp_json
from playhead.spans.delivery import Delivered
from playhead.spans.encoding import encode
from playhead.spans.messages import clean, json_taken_apart
from playhead.testing import ScriptedModel, call, text
from tests.spans.collector import ordered
from tests.spans.spans import attributes_of, decoded, recorded, spans_in
from tests.trace.strategies import any_texts

if TYPE_CHECKING:
    from pathlib import Path

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


def test_every_part_of_a_span_is_what_the_library_encodes() -> None:
    """Resources, parents, kinds, statuses, events, links, and attributes of every type."""
    here, there = Resource({"service.name": "a"}), Resource({"service.name": "b"}, "https://schema")
    spans = [span_of(here, remote=True), span_of(here, remote=False), span_of(there, remote=True)]
    assert decoded(spans) == ordered(encode_spans(spans))


def test_a_number_that_otlp_cannot_hold_is_a_text() -> None:
    """A hostile trace spoils no request."""
    span = ReadableSpan("x", SpanContext(1, 1, False), resource=Resource({}), attributes={"huge": 2**63})
    assert b"9223372036854775808" in encode([span])


# --- JSON ---


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


def test_openinference_is_one_span_a_line(tmp_path: Path) -> None:
    """Each line is the JSON of OpenTelemetry's SDK, with the attributes of OpenInference flat."""
    with (tmp_path / "spans").open("w+") as file:
        assert ToFile(file, "openinference-jsonl").deliver([SPAN, SPAN]) == Delivered(settled=2)
        file.seek(0)
        assert [json.loads(line) for line in file] == [json.loads(SPAN.to_json())] * 2


# --- text ---


@given(any_texts)
def test_clean(said: str) -> None:
    """A NUL and half a character are replaced, all else stays, and the text is as long as it was."""
    cleaned = clean(said)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    if said.isascii():
        assert cleaned == said.replace("\0", "\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\\\0", "\\\N{REPLACEMENT CHARACTER}"),
        ("\\u0000", "\\u0000"),
        ("\\\\u0000\0", "\\\\u0000\N{REPLACEMENT CHARACTER}"),
        ({"\0": ["\0\0"]}, {"\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}" * 2]}),
    ],
)
def test_json_taken_apart(value: Any, expected: Any) -> None:
    """Only a real NUL is replaced, however many backslashes stand before it."""
    assert json.loads(json_taken_apart(value)) == expected


NUL = "a\0b"


@tool
async def refuse(what: str) -> str:
    """Fail with what it was given."""
    raise ValueError(what)


@tool
async def repeat(what: str) -> str:
    """Return what it was given."""
    return what


@pytest.mark.parametrize("gen_ai", [False, True])
async def test_no_nul_in_any_span(tmp_path: Path, gen_ai: bool) -> None:
    """Wherever a NUL stands in a run, none is in a text, a name or an event of its spans, or in metadata."""
    turns = [call("repeat", what=NUL), call("refuse", what=NUL), text(NUL, thinking=NUL)]
    tools = [repeat, refuse]
    agent = Agent(ScriptedModel(turns), name="a", tools=tools, system_prompt=NUL, trace=tmp_path)
    with using_session(NUL), using_user(NUL), using_tags([NUL]), using_metadata({NUL: NUL}):
        recording, _ = await recorded(agent, tmp_path)
    spans = spans_in(recording.records, gen_ai=gen_ai)
    assert len(spans) == 6
    for span in spans:
        assert not re.search(r"(?<!\\)\\u0000", span.to_json())
        assert "\\u0000" not in str((span.attributes or {})["metadata"])
    (result,) = [span for span in spans if span.name == "tool:repeat"]
    assert json.loads(attributes_of(result)["input.value"]) == {"what": NUL}
