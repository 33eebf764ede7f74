"""Phoenix, as its GraphQL API tells what it has stored, which is what its pages show."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from tests.backends.model_server import model_server
from tests.backends.seen import SeenSpan, SeenTrace
from tests.backends.servers import free_port, program, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.backends.model_server import ModelServer

SPANS = """
{ projects { edges { node { name spans(first: 1000) { edges { node {
  spanId parentId name spanKind startTime statusCode statusMessage attributes
  tokenCountPrompt tokenCountCompletion cumulativeTokenCountTotal
  events { name message } input { value mimeType } output { value mimeType }
  trace { traceId userId costSummary { total { cost } } session { sessionId } }
} } } } } } }
"""
SESSIONS = """
{ projects { edges { node { name sessions(first: 1000) { edges { node {
  sessionId numTraces numTracesWithError userId firstInput { value } lastOutput { value }
  tokenUsage { total }
} } } } } } }
"""
WRITTEN_S = 30.0
"""Seconds in which what was accepted has to be stored: it answers first."""


@dataclass(frozen=True)
class Phoenix:
    """A server that runs."""

    endpoint: str
    model: ModelServer
    """What its playground calls."""

    def place(self, project: str) -> dict[str, str]:
        """Return the environment of a program that sends to a project."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_RESOURCE_ATTRIBUTES": f"openinference.project.name={project}",
        }

    def asked(self, query: str, project: str, kind: str) -> list[dict[str, Any]]:
        """Return the spans, or the sessions, of a project that there may not be yet."""
        answer = httpx.post(f"{self.endpoint}/graphql", json={"query": query}, timeout=60).raise_for_status().json()
        assert not answer.get("errors"), answer["errors"]
        projects = {each["node"]["name"]: each["node"] for each in answer["data"]["projects"]["edges"]}
        return [each["node"] for each in projects[project][kind]["edges"]] if project in projects else []

    def traces(self, project: str, spans: int) -> dict[str, SeenTrace]:
        """Return the traces of a project by their runs, once it has stored so many spans (and a moment for the rest)."""
        late_at = time.monotonic() + WRITTEN_S
        while len(found := self.asked(SPANS, project, "spans")) < spans and time.monotonic() < late_at:
            time.sleep(0.2)
        by_trace = defaultdict(list)
        for span in found:
            by_trace[span["trace"]["traceId"]].append(span)
        whole = [spans for spans in by_trace.values() if None in [span["parentId"] for span in spans]]
        traces = map(_trace, whole)
        return {trace.root.attributes["metadata"]["playhead"]["run_id"]: trace for trace in traces}

    def node(self, span_id: str) -> str:
        """Return Phoenix's own id of a span, which addresses of its pages have."""
        query = f'{{ getSpanByOtelId(spanId: "{span_id}") {{ id }} }}'
        answer = httpx.post(f"{self.endpoint}/graphql", json={"query": query}, timeout=60).raise_for_status().json()
        return str(answer["data"]["getSpanByOtelId"]["id"])

    def sessions(self, project: str) -> dict[str, dict[str, Any]]:
        """Return what is known of each session of a project."""
        return {session["sessionId"]: session for session in self.asked(SESSIONS, project, "sessions")}


@contextmanager
def phoenix(folder: Path) -> Iterator[Phoenix]:
    """Run Phoenix with its data in a folder."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with model_server() as model:
        environment |= {"OPENAI_BASE_URL": model.address, "OPENAI_API_KEY": "none"}
        with running([program("phoenix"), "serve"], environment, folder / "phoenix.log", f"{endpoint}/healthz"):
            yield Phoenix(endpoint, model)


def _trace(spans: list[dict[str, Any]]) -> SeenTrace:
    (root,) = [span for span in spans if span["parentId"] is None]
    trace = root["trace"]
    session = trace["session"] or {}
    return SeenTrace(
        tokens=int(root["cumulativeTokenCountTotal"] or 0),
        cost_usd=trace["costSummary"]["total"]["cost"] or 0.0,
        session=session.get("sessionId"),
        user=trace["userId"],
        failed=root["statusCode"] == "ERROR",
        spans=tuple(map(_span, spans)),
    )


def _span(span: dict[str, Any]) -> SeenSpan:
    attributes = json.loads(span["attributes"])
    return SeenSpan(
        trace_id=span["trace"]["traceId"],
        span_id=span["spanId"],
        parent_id=span["parentId"],
        name=span["name"],
        kind=span["spanKind"].upper(),
        start=span["startTime"],
        error=span["statusMessage"] if span["statusCode"] == "ERROR" else None,
        events=tuple((each["name"], each["message"]) for each in span["events"]),
        tokens=(span["tokenCountPrompt"] or 0, span["tokenCountCompletion"] or 0),
        attributes=attributes,
        said=(_value(span["input"]), _value(span["output"])),
        prompt=_messages(attributes, "input_messages"),
        answer=_messages(attributes, "output_messages"),
    )


def _value(value: dict[str, Any] | None) -> Any:
    """Return what went into a span or came out of it, as its pages read it."""
    if value is None:
        return None
    return json.loads(value["value"]) if value["mimeType"] == "json" else value["value"]


def _messages(attributes: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [_message(each["message"]) for each in attributes.get("llm", {}).get(name, ())]


def _message(told: dict[str, Any]) -> dict[str, Any]:
    """Return a message of a span in OpenAI's form, as the pages put it together."""
    parts = [each["message_content"] for each in told.get("contents", ())]
    message: dict[str, Any] = {"role": told["role"], "content": told.get("content", [])}
    reasoning = [part["text"] for part in parts if part["type"] == "reasoning"]
    if reasoning:
        message["reasoning_content"] = "".join(reasoning)
    elif parts:
        message["content"] = [_part(part) for part in parts]
    calls = [each["tool_call"] for each in told.get("tool_calls", ())]
    if calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = [{"type": "function", **call} for call in calls]
    return message | {key: told[key] for key in ("tool_call_id", "name") if key in told}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image_url", "image_url": {"url": part["image"]["image"]["url"]}}
