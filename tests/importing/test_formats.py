"""Every format is told from its content, and says the same of a run."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from playhead.errors import NotImportableError, UsageError
from playhead.importing import read_source
from tests.importing.formats import FORMATS
from tests.importing.traces import ANSWER, CAPTURED, captured, imported, imported_file, shop

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.trace.recording import Recording


def told(recording: Recording) -> list[Any]:
    """Return what every format has to say of a run: prompts, answers, calls, results, tokens and the answer."""
    root, ending = recording.root, recording.ending
    return [
        [
            [
                (each.role, each.content, [(call.name, call.arguments) for call in each.tool_calls])
                for each in root.request(exchange.requested).messages
            ]
            for exchange in root.exchanges
        ],
        [(response.text, response.usage) for response in root.responses.values()],
        [
            (call.started.tool, call.started.args, call.completed and call.completed.result)
            for call in root.calls.values()
        ],
        ending and ending.output,
    ]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_says_the_same_as_what_was_captured(name: str, tmp_path: Path) -> None:
    """A run reads the same from every format as from the bytes that came over the wire."""
    spans = captured("openai-agents")
    _, expected = imported(spans, tmp_path / "expected")
    format_name, written = FORMATS[name]
    path = tmp_path / "export.txt"  # its name says nothing
    path.write_text(written(spans))
    run, recording = imported_file(path, tmp_path / "runs")
    assert run.source.format == format_name
    assert told(recording) == told(expected)
    assert recording.ending is not None
    assert recording.ending.output == ANSWER


def test_langfuse_keeps_what_belongs_to_the_trace(tmp_path: Path) -> None:
    """Session, user and tags stand at Langfuse's trace, cost and parameters at its generations."""
    path = tmp_path / "trace.json"
    path.write_text(FORMATS["langfuse-trace"][1](captured("openai-agents")))
    _, recording = imported_file(path, tmp_path / "runs")
    telemetry, ending = recording.header.telemetry, recording.ending
    assert telemetry is not None
    assert (telemetry.session_id, telemetry.user_id, telemetry.tags) == ("s-1", "ann", ("a",))
    assert ending is not None
    assert ending.cost_usd == pytest.approx(0.003)
    assert recording.header.agent.parameters == {"temperature": 0.2}
    assert recording.header.imported is not None
    assert recording.header.imported.service == "shop"


@pytest.fixture
def message() -> bytes:
    """A captured request, as it came over the wire."""
    return gzip.decompress((CAPTURED / "openai-agents.pb.gz").read_bytes())


def test_protobuf_comes_alone_or_with_lengths(message: bytes, tmp_path: Path) -> None:
    """One message, and many with four bytes of length before each, as the collector's file exporter writes them."""
    alone = {"one": message, "one.gz": gzip.compress(message)}
    fixed = len(message).to_bytes(4, "big") + message
    for name, content in {
        **alone,
        "fixed": fixed,
        "fixeds": fixed * 2,
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        source = read_source(path)
        assert (source.format, len(source.spans)) == ("otlp-protobuf", 24 if name.endswith("s") else 12), name


def test_json_ids_are_hex_or_base64(message: bytes, tmp_path: Path) -> None:
    """OTLP says hex; protobuf's own JSON has base64 and may have names in snake_case: all are the same spans."""
    request = ExportTraceServiceRequest.FromString(message)
    as_base64 = MessageToDict(request)
    snake_case = MessageToDict(request, preserving_proto_field_name=True)
    as_hex = json.loads(json.dumps(as_base64), object_hook=_hex_ids)
    found = []
    for number, document in enumerate((as_hex, as_base64, snake_case)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document, indent=number))
        source = read_source(path)
        assert source.format == "otlp-json"
        found.append(source.spans)
    (tmp_path / "pb").write_bytes(message)
    assert found[0] == found[1] == found[2] == read_source(tmp_path / "pb").spans


def _hex_ids(value: dict[str, Any]) -> dict[str, Any]:
    names = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64decode(each).hex() if key in names else each for key, each in value.items()}


def test_json_lines_with_a_torn_line_give_the_others(tmp_path: Path) -> None:
    """The collector's file exporter may have died in a line: that one is counted, by its number."""
    document = json.dumps(shop().document)
    path = tmp_path / "lines"
    path.write_text(f"{document}\n\n{document[:100]}\n{document}\n")
    source = read_source(path)
    assert len(source.spans) == 8
    assert source.problems == {"lines that are no JSON, or too deep: line 3": 1}


REFUSED = {
    "nothing": (b"", "it is empty"),
    "words": (b"hello, world\n", "neither JSON nor JSON lines nor OTLP protobuf"),
    "other json": (b'{"a": 1, "b": 2}', "it holds an object with a, b. Looked for: OTLP JSON"),
    "an empty list": (b"[]", "an empty list"),
    "a number": (b"17", "neither JSON nor JSON lines nor OTLP protobuf"),
    "torn": (b'{"resourceSpans": [', "neither JSON"),
    "deep": (b"[" * 10_000 + b"]" * 10_000, "neither JSON"),
    "zstd": (b"(\xb5/\xfd....", "compressed with zstd"),
    "parquet": (b"PAR1....", "a Parquet file"),
    "utf-16": ('{"resourceSpans": []}'.encode("utf-16"), "OTLP"),
    "sqlite": (b"SQLite format 3\0...", "OTLP"),
    "zip": (b"PK\x03\x04....", "OTLP"),
    "a recording": (b'{"seq":0,"ts":1,"kind":"run-started"', "a Playhead recording already"),
    "other protobuf": (b"\x08\x96\x01\x12\x00\xff", "OTLP"),
    "noise": (bytes(range(128, 256)) * 10, "OTLP"),
    "gzip of nothing": (gzip.compress(b""), "it is empty"),
    "damaged gzip": (gzip.compress(b"x" * 1000)[:-12], ""),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_none_is_refused(name: str, tmp_path: Path) -> None:
    """What is no export is refused with what it is instead, or what was looked for."""
    content, why = REFUSED[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotImportableError, match=r".*") as refused:
        read_source(path)
    assert why in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A path to nothing, to a folder, and a format that does not exist are told in a sentence."""
    with pytest.raises(NotImportableError, match="No such file"):
        read_source(tmp_path / "none")
    with pytest.raises(NotImportableError, match="Is a directory"):
        read_source(tmp_path)
    with pytest.raises(UsageError, match="Did you mean 'otlp-json'"):
        read_source(tmp_path, "otlp_json")
