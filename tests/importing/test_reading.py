"""A file of spans says by its content what it is; whatever else it holds is refused or counted."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from playhead.errors import NotImportableError
from playhead.importing import read_source
from tests.importing.traces import CAPTURED, shop

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = gzip.decompress((CAPTURED / "openai-agents.pb.gz").read_bytes())


def test_json_ids_are_hex_or_base64(tmp_path: Path) -> None:
    """OTLP says hex; protobuf's own JSON has base64, and may have names in snake_case: all are the same spans."""
    request = ExportTraceServiceRequest.FromString(MESSAGE)
    as_base64 = MessageToDict(request)
    snake_case = MessageToDict(request, preserving_proto_field_name=True)
    as_hex = json.loads(json.dumps(as_base64), object_hook=_hex_ids)
    found = []
    for number, document in enumerate((as_hex, as_base64, snake_case)):
        (tmp_path / "json").write_text(json.dumps(document, indent=number))
        source = read_source(tmp_path / "json")
        assert source.format == "otlp-json"
        found.append(source.spans)
    (tmp_path / "pb").write_bytes(MESSAGE)
    message = read_source(tmp_path / "pb")
    assert (message.format, len(message.spans)) == ("otlp-protobuf", 12)
    assert found[0] == found[1] == found[2] == message.spans


def _hex_ids(value: dict[str, Any]) -> dict[str, Any]:
    names = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64decode(each).hex() if key in names else each for key, each in value.items()}


NEITHER = "neither OTLP JSON nor OTLP protobuf"
REFUSED = {
    "nothing": (b"", "it is empty"),
    "words": (b"hello, world\n", NEITHER),
    "other json": (b'{"a": 1, "b": 2}', NEITHER),
    "blank lines": (b"\n \n" * 100_000, ""),
    "deep": (b"[" * 10_000 + b"]" * 10_000, NEITHER),
    "half a character": (json.dumps(shop().document).replace("How", "\\ud83d").encode(), NEITHER),
    "messages with lengths": (len(MESSAGE).to_bytes(4, "big") + MESSAGE, NEITHER),
    "zstd": (b"(\xb5/\xfd....", NEITHER),
    "a data frame": (b'{"context.trace_id": "ab", "context.span_id": "cd"}', "with Phoenix and Langfuse, export OTLP"),
    "langfuse": (b'[{"id": "a", "traceId": "b", "type": "SPAN"}]', "with Phoenix and Langfuse, export OTLP"),
    "other protobuf": (b"\x08\x96\x01\x12\x00\xff", NEITHER),
    "gzip of nothing": (gzip.compress(b""), "it is empty"),
    "damaged gzip": (gzip.compress(b"x" * 1000)[:-12], ""),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_any_other_file_is_refused(name: str, tmp_path: Path) -> None:
    """What is not an export is refused in a sentence that names the file."""
    content, why = REFUSED[name]
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotImportableError) as refused:
        read_source(path)
    assert why in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    """A path to nothing and to a folder are errors in a sentence."""
    with pytest.raises(NotImportableError, match="No such file"):
        read_source(tmp_path / "none")
    with pytest.raises(NotImportableError, match="Is a directory"):
        read_source(tmp_path)
