"""What backends read: the rules of Langfuse and Jaeger, and the attributes of OpenTelemetry's GenAI conventions.

Langfuse: packages/shared/src/server/otel/OtelIngestionProcessor.ts and ObservationTypeMapper.ts. Jaeger:
packages/jaeger-ui/src/utils/gen-ai/detect-gen-ai.ts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from openinference.instrumentation._genai_conversion import get_genai_attributes
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from playhead.trace import events as e
from playhead.trace.header import AgentHeader
from playhead.trace.line import Record
from playhead.trace.types import Usage
from tests.spans.spans import RUNS, golden, spans_in

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

GENERATION = {"LLM": "GENERATION"}
USAGE = {"prompt": "input", "completion": "output", "input_tokens": "input", "output_tokens": "output"}


def read(name: str, *, gen_ai: bool) -> list[tuple[ReadableSpan, dict[str, Any]]]:
    """Return the spans of a golden run, with their attributes."""
    spans = spans_in(golden(name).records, gen_ai=gen_ai)
    return [(span, dict(span.attributes or {})) for span in spans]


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
        failed = not span.status.is_ok
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


# --- the GenAI conventions ---


HEADER = AgentHeader(name="agent", model="gemini/gemini-2.5-pro")
EVENTS = (
    e.RunStarted(format="2.0", run_id="r", agent=HEADER, task="Go."),
    e.LlmRequested(request=0, model=HEADER.model, messages=(), parameters={"temperature": 1}),
    e.LlmResponded(
        request=0,
        text="I look.",
        usage=Usage(input_tokens=9, output_tokens=5, reasoning_tokens=1),
        cost_usd=0.5,
        model="gemini-2.5-pro-001",
    ),
    e.ToolCallStarted(call_id="c1", tool="lookup", position=0, args={"key": "a"}, args_hash="", request=0),
    e.ToolCallCompleted(call_id="c1", tool="lookup", position=0, ok=True, result=[1]),
    e.LlmRequested(request=1, model=HEADER.model, messages=()),
    e.LlmFailed(request=1, error=e.ErrorInfo(type="ModelUnavailableError", message="busy")),
    e.RunCompleted(status="failed", terminated_by="llm_error", terminated_source="kernel", error="busy"),
)
KNOWN = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_") and value == str(value)}


def gen_ai_of(span: ReadableSpan) -> dict[str, Any]:
    """Return the second set of attributes of a span."""
    attributes = dict(span.attributes or {})
    return {key: value for key, value in attributes.items() if key.startswith("gen_ai.") or key == "error.type"}


def test_the_second_set() -> None:
    """A span has what OpenInference's own conversion makes of it, and what backends read besides; without the option neither."""
    records = [Record(number, number + 1, "root", 0, event) for number, event in enumerate(EVENTS)]
    assert [gen_ai_of(span) for span in spans_in(records)] == [{}] * 4
    added = []
    for span in spans_in(records, gen_ai=True):
        converted = get_genai_attributes({**(span.attributes or {})})
        found = gen_ai_of(span)
        assert converted.items() <= found.items()
        added.append({key: value for key, value in found.items() if key not in converted})
    assert added == [
        {
            "gen_ai.usage.cost": 0.5,
            "gen_ai.response.model": "gemini-2.5-pro-001",
            "gen_ai.usage.reasoning.output_tokens": 1,
        },
        {},
        {"error.type": "ModelUnavailableError"},
        {"gen_ai.agent.id": "agent", "error.type": "llm_error"},
    ]


def test_the_conventions_know_each_name() -> None:
    """OpenTelemetry's list has every name that any golden run uses, but for the cost, which only Langfuse reads."""
    spans = [span for run in RUNS for span in spans_in(golden(run).records, gen_ai=True)]
    used = {key for span in spans for key in gen_ai_of(span)} - {"error.type"}
    assert used - KNOWN <= {"gen_ai.usage.cost"}
    assert len(used) > 15
