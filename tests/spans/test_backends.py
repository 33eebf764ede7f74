"""The rules by which Langfuse and Jaeger read spans, on the protobuf that they get.

Langfuse: packages/shared/src/server/otel/OtelIngestionProcessor.ts and ObservationTypeMapper.ts. Jaeger:
packages/jaeger-ui/src/utils/gen-ai/detect-gen-ai.ts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.spans.spans import RUNS, decoded, golden, spans_in

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

GENERATION = {"LLM": "GENERATION"}
USAGE = {"prompt": "input", "completion": "output", "input_tokens": "input", "output_tokens": "output"}


def value_of(value: AnyValue) -> Any:
    """Return a value of OTLP as data."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def read(name: str, *, gen_ai: bool) -> list[tuple[Any, dict[str, Any]]]:
    """Return the spans of a golden run as a backend reads them, with their attributes."""
    request = decoded(spans_in(golden(name).records, gen_ai=gen_ai))
    spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return [(span, {each.key: value_of(each.value) for each in span.attributes}) for span in spans]


def langfuse_type(attributes: dict[str, Any]) -> str:
    """Return the type of an observation: OpenInference's kind stands before everything else."""
    kind = str(attributes["openinference.span.kind"])
    return GENERATION.get(kind, kind)


def langfuse_usage(attributes: dict[str, Any]) -> dict[str, int]:
    """Return usage as Langfuse adds it up: every count of both conventions, by its short name."""
    usage: dict[str, int] = {}
    for key, value in attributes.items():
        if (key.startswith("gen_ai.usage.") and key != "gen_ai.usage.cost") or key.startswith("llm.token_count"):
            short = key.replace("gen_ai.usage.", "").replace("llm.token_count.", "")
            name = USAGE.get(short, short)
            assert usage.get(name, value) == value, f"{name} is said twice, differently"
            usage[name] = value
    return usage


@pytest.mark.parametrize("gen_ai", [False, True], ids=["openinference", "gen_ai"])
@pytest.mark.parametrize("run", RUNS)
def test_langfuse(run: str, gen_ai: bool) -> None:
    """Input and output are there, calls of tools are recognised, usage, cost and model are said once and by calls alone."""
    total = 0
    for span, attributes in read(run, gen_ai=gen_ai):
        kind = langfuse_type(attributes)
        assert kind in {"GENERATION", "TOOL", "AGENT", "CHAIN", "EVALUATOR", "GUARDRAIL"}
        assert attributes["input.value"], span.name
        failed = span.status.code == 2
        assert failed or attributes["output.value"], span.name
        assert attributes["session.id"] == run
        counted = [key for key in attributes if key.startswith(("llm.token_count", "gen_ai.usage", "llm.cost"))]
        named = {"llm.model_name", "gen_ai.request.model", "gen_ai.response.model", "model"} & attributes.keys()
        if kind != "GENERATION":
            assert (counted, named) == ([], set()), span.name
            continue
        assert named
        messages = json.loads(attributes["input.value"])["messages"]
        assert messages[0]["role"] == "system"
        if not failed:
            check_output(json.loads(attributes["output.value"]))
            usage = langfuse_usage(attributes)
            assert usage["input"] + usage["output"] == usage["total"]
            total += usage["total"]
    ending = golden(run).ending
    assert ending is not None
    assert total == ending.usage.total_tokens


def check_output(message: dict[str, Any]) -> None:
    """Assert that an answer is in OpenAI's shape, in which calls of tools are recognised."""
    assert message["role"] == "assistant"
    assert "content" in message
    for call in message.get("tool_calls", ()):
        assert call["type"] == "function"
        assert call["id"]
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize("run", RUNS)
def test_jaeger(run: str) -> None:
    """Its view of agents sees calls of tools as such, all agents and calls of models, and no phases."""
    for span, attributes in read(run, gen_ai=True):
        if attributes.get("gen_ai.tool.name") is not None:
            seen = "tool"
        else:
            seen = "llm" if any(key.startswith("gen_ai.") for key in attributes) else "other"
        expected = {"TOOL": "tool", "LLM": "llm", "AGENT": "llm"}
        assert seen == expected.get(attributes["openinference.span.kind"], "other"), span.name
