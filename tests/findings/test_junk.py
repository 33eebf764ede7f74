"""Files that are nothing but junk, plain or compressed: read no further than it takes to see that, and said."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.findings.adapter import cli
from tests.proving import sample

if TYPE_CHECKING:
    from pathlib import Path

SIZE = sample(20_000_000, 4_000_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("junk", "said"),
    [
        (b"\0", "neither OTLP JSON nor OTLP protobuf"),
        (b"\n", "not an OTLP message"),
        (b'{"resourceSpans":[]}\n' + b"\n" * 10_000, "it holds no spans"),
        (b'{"resourceSpans":[' + b" " * 1000, "neither OTLP JSON nor OTLP protobuf"),
    ],
)
def test_an_export_of_nothing(tmp_path: Path, junk: bytes, said: str):
    """It is refused, compressed too, and nothing is recorded."""
    path = tmp_path / "spans.json.gz"
    path.write_bytes(gzip.compress(junk * (SIZE // len(junk)), 1))
    ran = cli("import", path, "--trace-dir", tmp_path / "traces")
    assert (said in ran.stderr, ran.stdout, list((tmp_path / "traces").glob("*.jsonl"))) == (True, "", [])
