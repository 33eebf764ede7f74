"""What a real Phoenix exports of the captured runs: `PYTHON phoenix_exports.py http://127.0.0.1:6006`.

PYTHON is the interpreter of an environment with arize-phoenix, and an empty Phoenix listens at the address.
"""

from __future__ import annotations

import gzip
import io
import sys
import time
import urllib.request
from pathlib import Path

from phoenix.client import Client

CAPTURED = Path(__file__).parents[1] / "captured"
RUNS = ("openai-agents", "langgraph", "smolagents", "pydantic-ai")


def keep(name: str, content: bytes) -> None:
    """Write a fixture."""
    (CAPTURED / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))


address = sys.argv[1]
for run in RUNS:
    body = gzip.decompress((CAPTURED / f"{run}.pb.gz").read_bytes())
    request = urllib.request.Request(f"{address}/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    urllib.request.urlopen(request).read()
time.sleep(5)  # it takes spans in after it has answered
for name, path in {"phoenix-rest.json": "spans", "phoenix-otlp.json": "spans/otlpv1"}.items():
    keep(name, urllib.request.urlopen(f"{address}/v1/projects/default/{path}?limit=1000").read())
frame = Client(base_url=address).spans.get_spans_dataframe(project_identifier="default", limit=1000)
for name, options in {
    "phoenix-frame-columns.json": {},
    "phoenix-frame-lines.jsonl": {"orient": "records", "lines": True},
}.items():
    written = io.StringIO()
    frame.to_json(written, **options)
    keep(name, written.getvalue().encode())
