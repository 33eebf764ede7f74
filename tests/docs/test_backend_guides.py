"""The few lines that a guide to a backend asks for do what it says: spans arrive there, and are let in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.proving import sample
from tests.spans.collector import Collector
from tests.spans.spans import record_run

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BASIC = f"Basic {b64encode(b'one:two').decode()}"
KEYS = {"LANGFUSE_PUBLIC_KEY": "one", "LANGFUSE_SECRET_KEY": "two", "GRAFANA_INSTANCE": "one", "GRAFANA_TOKEN": "two"}
CASES = {
    "phoenix": ("/v1/traces", {}),
    "mlflow": ("/v1/traces", {"x-mlflow-experiment-id": "0"}),
    "langfuse": ("/api/public/otel/v1/traces", {"authorization": BASIC, "x-langfuse-ingestion-version": "4"}),
    "jaeger": ("/v1/traces", {}),
    "tempo": ("/v1/traces", {}),
    "tempo: cloud": ("/otlp/v1/traces", {"authorization": BASIC}),
}
RESOURCES = {
    "phoenix": {"openinference.project.name": "mountains"},
    "jaeger": {"service.name": "mountain-guide"},
    "tempo": {"service.name": "mountain-guide"},
}
"""What has to be said of whose spans they are."""


def commands(guide: str, collector: Collector) -> str:
    """Return the lines of a guide as a script that sends to this collector; the variables are those of its last block."""
    page = (GUIDES / f"{guide.partition(':')[0]}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    setting = [block for block in blocks if "export OTEL_" in block][":" in guide]
    lines = [line for line in setting.splitlines() if line.startswith("export ")]
    (sending,) = [line for block in blocks for line in block.splitlines() if line.startswith("playhead export latest")]
    script = "\n".join([*lines, sending])
    (address,) = re.findall(r"ENDPOINT=(\S+)", script)
    return script.replace(address, f"{collector.address}{urlsplit(address).path}")


@pytest.mark.slow
@pytest.mark.parametrize("guide", sample([*CASES], ["langfuse", "jaeger"]))
def test_the_lines_of_a_guide(guide: str, tmp_path: Path) -> None:
    """The newest run is sent to the path, with the headers and as the service that the guide names."""
    record_run(tmp_path)
    collector = Collector()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **KEYS, "PATH": path, "PLAYHEAD_TRACE_DIR": str(tmp_path)}
    script = commands(guide, collector)
    done = subprocess.run(["/bin/sh", "-ec", script], env=environment, capture_output=True, text=True, check=False)
    collector.close()
    assert (done.returncode, done.stderr) == (0, "")
    (request,) = collector.requests
    expected, headers = CASES[guide]
    assert (request.path, request.headers | headers) == (expected, request.headers)
    (resource,) = {span.resource.SerializeToString(): span.resource for span in request.request.resource_spans}.values()
    told = {each.key: each.value.string_value for each in resource.attributes}
    assert told | RESOURCES.get(guide, {}) == told
    gen_ai = any(each.key.startswith("gen_ai.") for span in request.spans for each in span.attributes)
    assert gen_ai == (guide == "jaeger")
