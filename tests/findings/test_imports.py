"""What imports of other programs' spans take for request parameters, and what they advise."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from playhead import load_recording
from playhead.importing import import_file
from playhead.testing import ScriptedModel, text
from tests.findings.adapter import replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
SYSTEM, USER = {"role": "system", "content": "OLD"}, {"role": "user", "content": "How high?"}
ASKED = {"role": "assistant", "call": {"id": "c1", "name": "lookup", "arguments": "{}"}}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "4180"}


def message(prefix: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return a message as OpenInference flattens it."""
    found = {f"{prefix}.message.{name}": value for name, value in said.items() if name != "call"}
    call = f"{prefix}.message.tool_calls.0.tool_call"
    if "call" in said:
        found[f"{call}.id"] = said["call"]["id"]
        found |= {f"{call}.function.{name}": said["call"][name] for name in ("name", "arguments")}
    return found


def program(given: Callable[[int], dict[str, Any]], agent: str = "") -> list[dict[str, Any]]:
    """Run a program of two model calls and a tool call with a tracer; `agent` is code around it. Return its spans as OTLP JSON."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")

    last: dict[str, Any] = {"role": "assistant", "content": "4180."}
    turns: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
        ([SYSTEM, USER], ASKED),
        ([SYSTEM, USER, ASKED, TOLD], last),
    ]

    def run() -> None:
        for number, (prompt, answer) in enumerate(turns):
            attributes = {
                "openinference.span.kind": "LLM",
                "llm.model_name": "gpt-4o-mini",
                "llm.system": "openai",
                "llm.invocation_parameters": json.dumps(given(number)),
                "llm.tools.0.tool.json_schema": json.dumps(SCHEMA),
                **message("llm.output_messages.0", answer),
            }
            for place, said in enumerate(prompt):
                attributes |= message(f"llm.input_messages.{place}", said)
            tracer.start_span("llm", attributes=attributes).end()
            if "call" in answer:
                tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": "{}"}
                tracer.start_span("lookup", attributes={**tool, "tool.id": "c1", "output.value": "4180"}).end()

    if agent:
        trace = type("trace", (), {"get_tracer": provider.get_tracer})
        exec(agent, {"trace": trace, "run": run})  # noqa: S102 - the lines that the import advised
    else:
        run()
    return [span_json(each) for each in exporter.get_finished_spans()]


def span_json(span: Any) -> dict[str, Any]:
    """Return a span as OTLP JSON."""
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name,
        "startTimeUnixNano": str(span.start_time),
        "endTimeUnixNano": str(span.end_time),
        "attributes": [{"key": name, "value": {"stringValue": str(value)}} for name, value in span.attributes.items()],
    }


def written(folder: Path, spans: list[dict[str, Any]]) -> Path:
    """Write spans into a file."""
    path = folder / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


AGENT = (
    'with trace.get_tracer("x").start_as_current_span("agent", attributes={"openinference.span.kind": "AGENT"}): run()'
)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (
            lambda n: {"id": f"resp_{n}", "created_at": 17.0 + n, "instructions": "OLD", "temperature": 1.0},
            {"temperature": 1.0},
        ),
        (
            lambda n: {
                "object": "response",
                "id": f"r{n}",
                "output": [{"n": n}],
                "store": True,
                "max_output_tokens": 50,
            },
            {"max_completion_tokens": 50},
        ),
        (lambda _: {"temperature": 0.5, "user": "ann", "x_trace": "abc", "api_secret": "s"}, {"temperature": 0.5}),
        (lambda _: {"extra_headers": {"Authorization": "Bearer abc"}, "top_p": 0.1}, {"top_p": 0.1}),
        (lambda _: {"model": "gpt-4o-mini", "stream": True, "stream_options": {"include_usage": True}}, {}),
    ],
    ids=["responses", "response object", "unknown names", "headers", "of the transport"],
)
def test_only_known_parameters_are_those_of_the_request(tmp_path: Path, given: Any, sent: dict[str, Any]):
    """What an instrumentor writes down besides sampling parameters is not recorded, not compared, and not sent by a replay."""
    [run] = import_file(written(tmp_path, program(given, AGENT)), tmp_path)
    assert run.replayability == "full"
    model = ScriptedModel([text("x")])
    replay(run.path, overrides={"model": model, "system_prompt": "NEW"})
    assert model.requests[0].parameters == sent
    assert [each.content for each in model.requests[0].messages] == ["NEW", "How high?"]
    assert "OLD" not in json.dumps(load_recording(run.path).header.agent.parameters)


def test_the_lines_that_are_advised_make_it_full(tmp_path: Path):
    """Without an agent span each model call becomes a run; the lines that the import advises give one `full` run."""
    path = written(tmp_path, program(lambda _: {"temperature": 0}))
    runs = import_file(path, tmp_path / "loose")
    assert len(runs) == 3
    last = next(run for run in runs if "no span is an agent's" in " ".join(run.source.notes) and run.source.reasons)
    note = next(each for each in last.source.notes if each.startswith("no span is an agent's"))
    lines = (
        re.sub("^from .* import trace; ", "", note.split("one run: ")[1])
        .replace("; with", "\nwith")
        .replace("…", "run()")
    )
    [run] = import_file(written(tmp_path, program(lambda _: {"temperature": 0}, lines)), tmp_path / "whole")
    assert (run.replayability, run.source.reasons) == ("full", ())
