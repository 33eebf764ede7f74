"""What the attributes of a span mean, by convention."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openinference.instrumentation.config import REDACTED_VALUE
from openinference.semconv.trace import SpanAttributes

from playhead.importing import conventions
from playhead.importing.conventions import read
from playhead.importing.findings import REDACTED
from playhead.importing.messages import ForeignCall, ForeignMessage
from playhead.importing.otlp import ForeignSpan
from playhead.trace.types import ImagePart, TextPart, ToolSpec, Usage

if TYPE_CHECKING:
    from playhead.importing.conventions import ModelReading

CALL = ForeignCall("c1", "lookup", {"key": "Zed"})


def span(attributes: dict[str, Any], **more: Any) -> ForeignSpan:
    """Return a span with these attributes."""
    return ForeignSpan("t", "s", None, "a span", 1, 2, attributes=attributes, **more)


def model(attributes: dict[str, Any], **more: Any) -> ModelReading:
    """Read a model's span."""
    reading = read(span(attributes, **more))
    assert (reading.kind, reading.model is not None) == ("model", True)
    assert reading.model is not None
    return reading.model


def test_the_names_are_those_of_openinference() -> None:
    """They are written out, so that JSON can be read without the package; they are the package's and our export's."""
    words = Path(str(conventions.__file__)).read_text()
    written = set(re.findall(r'"((?:llm|tool|session|user|tag|agent|openinference)(?:\.[a-z_]+)+)"', words))
    assert written - set(vars(SpanAttributes).values()) == {"agent.terminated_by"}
    assert REDACTED == REDACTED_VALUE


def test_openinference_tokens_and_cost() -> None:
    """Every part of what a call cost is read."""
    read_so = model(
        {
            "openinference.span.kind": "llm",
            "llm.token_count.prompt": 10,
            "llm.token_count.completion": "20",
            "llm.token_count.prompt_details.cache_read": 3,
            "llm.token_count.completion_details.reasoning": 4.0,
            "llm.cost.total": 0.25,
        }
    )
    assert read_so.usage == Usage(input_tokens=10, output_tokens=20, cache_read_tokens=3, reasoning_tokens=4)
    assert read_so.cost_usd == 0.25


def test_openinference_images_and_what_has_no_place() -> None:
    """Images stay; sound is left out, and said to be."""
    parts = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "What is it?",
        "llm.input_messages.0.message.contents.1.message_content.type": "image",
        "llm.input_messages.0.message.contents.1.message_content.image.image.url": "https://example.com/a.png",
        "llm.input_messages.0.message.contents.2.message_content.type": "audio",
    }
    read_so = model({"openinference.span.kind": "LLM", **parts})
    content = (TextPart(text="What is it?"), ImagePart(url="https://example.com/a.png"))
    assert read_so.messages == (ForeignMessage("user", content, lost=("audio",)),)


def test_secrets_among_the_parameters_stay_out() -> None:
    """Keys and headers that an instrumentor wrote beside the parameters reach no recording."""
    given = {
        "temperature": 0.5,
        "api_key": "sk-1",
        "extra_headers": {"a": 1},
        "model": "m",
        "stream": True,
        "max_tokens": 5,
    }
    read_so = model({"openinference.span.kind": "LLM", "llm.invocation_parameters": json.dumps(given)})
    assert read_so.parameters == {"temperature": 0.5, "max_tokens": 5}


GEN_AI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4",
    "gen_ai.request.temperature": 0.1,
    "gen_ai.request.stop_sequences": ["x"],
    "gen_ai.response.model": "gpt-4-0613",
    "gen_ai.response.finish_reasons": ["tool_calls"],
    "gen_ai.usage.input_tokens": 52,
    "gen_ai.usage.output_tokens": 17,
}
PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Zed?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"key": "Zed"}},
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "4,180 feet"}]},
]
EXPECTED = (
    ForeignMessage("user", "Zed?"),
    ForeignMessage("assistant", "", (CALL,), thinking="hm"),
    ForeignMessage("tool", "4,180 feet", call_id="c1"),
)


def test_gen_ai_messages_with_parts() -> None:
    """The examples of the conventions, as JSON in a text and structured."""
    for written in (json.dumps(PARTS), PARTS):
        read_so = model(
            {
                **GEN_AI,
                "gen_ai.input.messages": written,
                "gen_ai.output.messages": [PARTS[1]],
                "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
                "gen_ai.tool.definitions": json.dumps(
                    [{"type": "function", "name": "lookup", "parameters": {"type": "object"}}]
                ),
            }
        )
        assert read_so.messages == (ForeignMessage("system", "Be brief."), *EXPECTED)
        assert read_so.answer == EXPECTED[1]
        assert (read_so.provider, read_so.model, read_so.answered_by) == ("openai", "gpt-4", "gpt-4-0613")
        assert read_so.parameters == {"temperature": 0.1, "stop": ["x"]}
        assert read_so.usage == Usage(input_tokens=52, output_tokens=17)
        assert read_so.finish_reason == "tool_calls"
        assert read_so.tools == (ToolSpec(name="lookup", parameters={"type": "object"}),)
