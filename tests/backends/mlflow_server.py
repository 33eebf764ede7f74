"""MLflow's tracking server, as its own client, which runs in its environment, tells what it has stored."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from tests.backends.seen import SeenSpan, SeenTrace
from tests.backends.servers import free_port, program, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUIET = {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
ASK = """
import json, sys
from mlflow import MlflowClient

def told(span):
    return {
        "span_id": span.span_id, "parent_id": span.parent_id, "name": span.name, "kind": span.span_type,
        "start": span.start_time_ns, "status": span.status.status_code.value, "said": span.status.description,
        "events": [[each.name, each.attributes.get("exception.message", "")] for each in span.events],
        "inputs": span.inputs, "outputs": span.outputs, "attributes": span.attributes,
    }

client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2]).experiment_id
found = client.search_traces(locations=[experiment], max_results=500)
print(json.dumps([
    {"trace_id": each.info.trace_id, "state": each.info.state.value, "usage": each.info.token_usage,
     "metadata": each.info.trace_metadata, "spans": [told(span) for span in each.data.spans]}
    for each in found
]))
"""


@dataclass(frozen=True)
class Mlflow:
    """A server that runs."""

    endpoint: str

    def place(self, experiment: str) -> dict[str, str]:
        """Make an experiment, and return the environment of a program that sends to it."""
        made = httpx.post(f"{self.endpoint}/api/2.0/mlflow/experiments/create", json={"name": experiment}, timeout=60)
        number = made.raise_for_status().json()["experiment_id"]
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-mlflow-experiment-id={number}",
        }

    def asked(self, experiment: str) -> list[dict[str, Any]]:
        """Return every trace of an experiment."""
        python = program("mlflow").with_name("python")
        command = [str(python), "-c", ASK, self.endpoint, experiment]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **QUIET})
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def traces(self, experiment: str, _spans: int) -> dict[str, SeenTrace]:
        """Return the traces of an experiment by their runs; what was accepted is stored."""
        traces = map(_trace, self.asked(experiment))
        return {_metadata(trace.root)["playhead"]["run_id"]: trace for trace in traces}


@contextmanager
def mlflow(folder: Path) -> Iterator[Mlflow]:
    """Run MLflow's tracking server with its data in a folder."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    options = {
        "--host": "127.0.0.1",
        "--port": port,
        "--workers": 1,
        "--backend-store-uri": f"sqlite:///{folder}/mlflow.sqlite",
        "--artifacts-destination": folder / "artifacts",
    }
    command = [program("mlflow"), "server", *(part for each in options.items() for part in each)]
    with running(command, QUIET, folder / "mlflow.log", f"{endpoint}/health"):
        yield Mlflow(endpoint)


def _metadata(span: SeenSpan) -> dict[str, Any]:
    told = span.attributes["metadata"]
    return dict(json.loads(told) if isinstance(told, str) else told)


def _trace(trace: dict[str, Any]) -> SeenTrace:
    metadata = trace["metadata"]
    return SeenTrace(
        tokens=trace["usage"]["total_tokens"],
        cost_usd=json.loads(metadata.get("mlflow.trace.cost", "{}")).get("total_cost", 0.0),
        session=metadata.get("mlflow.trace.session"),
        user=metadata.get("mlflow.trace.user"),
        failed=trace["state"] == "ERROR",
        spans=tuple(_span(trace["trace_id"], span) for span in trace["spans"]),
    )


def _span(trace_id: str, span: dict[str, Any]) -> SeenSpan:
    attributes = span["attributes"]
    usage = attributes.get("mlflow.chat.tokenUsage") or {}
    return SeenSpan(
        trace_id=trace_id.removeprefix("tr-"),
        span_id=span["span_id"],
        parent_id=span["parent_id"],
        name=span["name"],
        kind=span["kind"],
        start=span["start"],
        error=span["said"] if span["status"] == "ERROR" else None,
        events=tuple((name, said) for name, said in span["events"]),
        tokens=(usage.get("input_tokens", 0), usage.get("output_tokens", 0)),
        attributes=attributes,
        said=(span["inputs"], _output(span)),
        prompt=span["inputs"].get("messages", []) if span["kind"] == "LLM" else [],
        answer=[span["outputs"]] if span["kind"] == "LLM" and span["outputs"] else [],
    )


def _output(span: dict[str, Any]) -> Any:
    """Return what came out of a span; it takes numbers, although the type of the text says what they are, for text."""
    output, kind = span["outputs"], span["attributes"].get("output.mime_type")
    return json.loads(output) if isinstance(output, str) and kind == "application/json" else output
