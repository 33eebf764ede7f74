"""What backends read: the rules of Langfuse and Jaeger, and the attributes of OpenTelemetry's GenAI conventions.

Langfuse: packages/shared/src/server/otel/OtelIngestionProcessor.ts and ObservationTypeMapper.ts. Jaeger:
packages/jaeger-ui/src/utils/gen-ai/detect-gen-ai.ts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from playhead.spans import SpanOptions
from playhead.trace import events as e
from playhead.trace.line import Record
from playhead.trace.types import AgentHeader, ImagePart, TextPart, ToolCall, ToolSpec, Usage
from tests.spans.spans import RUNS, built, golden, spans_in

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


KNOWN = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_") and value == str(value)}
HEADER = AgentHeader(name="agent", model="gemini/gemini-2.5-pro")
CALL = ToolCall(id="c1", name="lookup", arguments={"key": "a"})
IMAGE = (TextPart(text="See."), ImagePart(url="https://example.com/a.png"))
PARAMETERS: dict[str, Any] = {
    "temperature": 1,
    "max_tokens": 100,
    "stop": "END",
    "seed": 7,
    "other": "x",
    "top_p": True,
}
EVENTS = (
    e.RunStarted(format="2.0", run_id="r", agent=HEADER, task="Go."),
    e.ToolsDefined(first_id=0, tools=(ToolSpec(name="lookup", description="Look up.", parameters={"type": "object"}),)),
    e.MessageAdded(id=0, role="system", content="Be brief."),
    e.MessageAdded(id=1, role="user", content=IMAGE),
    e.LlmRequested(request=0, model=HEADER.model, messages=((0, 1),), tools=((0, 0),), parameters=PARAMETERS),
    e.LlmResponded(
        request=0,
        text="I look.",
        thinking="Hm.",
        tool_calls=(CALL,),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=9, output_tokens=5, cache_read_tokens=4, cache_write_tokens=2, reasoning_tokens=1),
        cost_usd=0.5,
        model="gemini-2.5-pro-001",
    ),
    e.MessageAdded(id=2, role="assistant", ref=e.MessageRef(request=0)),
    e.ToolCallStarted(call_id="c1", tool="lookup", position=0, args={"key": "a"}, args_hash="", request=0),
    e.ToolCallCompleted(call_id="c1", tool="lookup", position=0, ok=True, result=[1]),
    e.MessageAdded(id=3, role="tool", ref=e.MessageRef(call="c1"), tool_call_id="c1", name="lookup"),
    e.LlmRequested(request=1, model=HEADER.model, messages=((2, 3),)),
    e.LlmFailed(request=1, error=e.ErrorInfo(type="ModelUnavailableError", message="busy")),
    e.RunCompleted(status="failed", terminated_by="llm_error", terminated_source="kernel", error="busy"),
)


def gen_ai_of(options: SpanOptions) -> list[dict[str, Any]]:
    """Return the second set of each span of the run above, JSON as data."""
    records = [Record(number, number + 1, "root", 0, event) for number, event in enumerate(EVENTS)]
    found = []
    for span in built(records, options)[1]:
        attributes = {key: value for key, value in (span.attributes or {}).items() if _is_of_it(key)}
        found.append({key: _data(value) for key, value in attributes.items()})
    return found


def _is_of_it(key: str) -> bool:
    return key.startswith("gen_ai.") or key == "error.type"


def _data(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value


def test_every_attribute() -> None:
    """Each span carries what the conventions ask for, in their words and forms."""
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.vertex_ai",
        "gen_ai.request.model": "gemini-2.5-pro",
        "gen_ai.conversation.id": "r",
    }
    call = {"type": "tool_call", "id": "c1", "name": "lookup"}
    image = {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"}
    assert gen_ai_of(SpanOptions(gen_ai=True)) == [
        {
            **model,
            "gen_ai.request.temperature": 1.0,
            "gen_ai.request.max_tokens": 100,
            "gen_ai.request.seed": 7,
            "gen_ai.request.stop_sequences": ("END",),
            "gen_ai.input.messages": [
                {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
                {"role": "user", "parts": [{"type": "text", "content": "See."}, image]},
            ],
            "gen_ai.tool.definitions": [
                {"type": "function", "name": "lookup", "description": "Look up.", "parameters": {"type": "object"}}
            ],
            "gen_ai.usage.input_tokens": 9,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.usage.cache_read.input_tokens": 4,
            "gen_ai.usage.cache_creation.input_tokens": 2,
            "gen_ai.usage.reasoning.output_tokens": 1,
            "gen_ai.usage.cost": 0.5,
            "gen_ai.response.finish_reasons": ("tool_call",),
            "gen_ai.response.model": "gemini-2.5-pro-001",
            "gen_ai.output.messages": [
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "text", "content": "I look."},
                        {**call, "arguments": {"key": "a"}},
                    ],
                    "finish_reason": "tool_call",
                }
            ],
        },
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.description": "Look up.",
            "gen_ai.tool.call.arguments": {"key": "a"},
            "gen_ai.tool.call.result": [1],
            "gen_ai.conversation.id": "r",
        },
        {
            **model,
            "error.type": "ModelUnavailableError",
            "gen_ai.input.messages": [
                {
                    "role": "assistant",
                    "parts": [{"type": "text", "content": "I look."}, {**call, "arguments": {"key": "a"}}],
                },
                {
                    "role": "tool",
                    "parts": [{"type": "tool_call_response", "id": "c1", "response": [1]}],
                    "name": "lookup",
                },
            ],
        },
        {
            "error.type": "llm_error",
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": "agent",
            "gen_ai.agent.name": "agent",
            "gen_ai.conversation.id": "r",
        },
    ]


def test_they_are_opt_in() -> None:
    """Without the option no span carries any of them."""
    assert gen_ai_of(SpanOptions()) == [{}, {}, {}, {}]


def test_the_conventions_know_each_name() -> None:
    """OpenTelemetry's list has every name that any golden run uses, but for the cost, which only Langfuse reads."""
    used = {
        key
        for run in RUNS
        for span in spans_in(golden(run).records, gen_ai=True)
        for key in (span.attributes or {})
        if key.startswith("gen_ai.")
    }
    used |= {key for span in gen_ai_of(SpanOptions(gen_ai=True)) for key in span if key.startswith("gen_ai.")}
    assert used - KNOWN == {"gen_ai.usage.cost"}
