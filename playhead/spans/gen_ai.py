"""The attributes of OpenTelemetry's GenAI conventions, as a second set beside those of OpenInference, from which they follow.

OpenInference's own instrumentation makes them; what it leaves out and backends read is added. (`gen_ai.usage.cost` is in no
convention: Langfuse reads it.) They are made of what a span shows, so what is hidden is hidden here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import REDACTED_VALUE
from openinference.instrumentation._genai_conversion import get_genai_attributes
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from openinference.semconv.trace import SpanAttributes as S
from opentelemetry.semconv.attributes.exception_attributes import EXCEPTION_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.sdk.trace import Event

_ALSO: Final = {
    Kind.AGENT.value: {"agent.id": "gen_ai.agent.id"},
    Kind.LLM.value: {
        S.LLM_COST_TOTAL: "gen_ai.usage.cost",
        S.LLM_RESPONSE_MODEL_NAME: "gen_ai.response.model",
        S.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING: "gen_ai.usage.reasoning.output_tokens",
    },
    Kind.TOOL.value: {S.INPUT_VALUE: "gen_ai.tool.call.arguments", S.OUTPUT_VALUE: "gen_ai.tool.call.result"},
}
"""Attributes that each kind of span has under another name as well."""


def gen_ai_attributes(attributes: Mapping[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    """Return the second set of a span's attributes; phases have none."""
    also = _ALSO.get(attributes[S.OPENINFERENCE_SPAN_KIND])
    if also is None:
        return {}
    made: dict[str, Any] = {**get_genai_attributes(attributes)}
    made |= {name: attributes.get(known) for known, name in also.items()}
    made["error.type"] = next(
        (found for each in events if (found := (each.attributes or {}).get(EXCEPTION_TYPE))), None
    )
    return {name: value for name, value in made.items() if value is not None and value != REDACTED_VALUE}
