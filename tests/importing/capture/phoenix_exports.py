"""Capture what a real Phoenix exports of the captured runs: `python phoenix_exports.py http://127.0.0.1:6006`, an empty Phoenix."""

from __future__ import annotations

import gzip
import sys
import time
import urllib.request
from pathlib import Path

CAPTURED = Path(__file__).parents[1] / "captured"
RUNS = ("openai-agents", "langgraph", "smolagents", "pydantic-ai")


address = sys.argv[1]
for run in RUNS:
    body = gzip.decompress((CAPTURED / f"{run}.pb.gz").read_bytes())
    request = urllib.request.Request(f"{address}/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    urllib.request.urlopen(request).read()
time.sleep(5)  # it takes spans in after it has answered
exported = urllib.request.urlopen(f"{address}/v1/projects/default/spans/otlpv1?limit=1000").read()
(CAPTURED / "phoenix-otlp.json.gz").write_bytes(gzip.compress(exported, mtime=0))
