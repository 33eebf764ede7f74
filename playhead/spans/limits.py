"""Fits the attributes of a span into a provider's limit: OpenTelemetry's SDK keeps 128 by default, and drops the oldest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openinference.semconv.trace import SpanAttributes as S

from playhead.spans.messages import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_OTHERS: Final = 12
"""Attributes that the application's own processors may add: its session, user, tags and environment."""
_IN_GROUPS: Final = (f"{S.LLM_TOOLS}.", f"{INPUT}.", f"{OUTPUT}.", f"{S.RETRIEVAL_DOCUMENTS}.", "gen_ai.")
"""Attributes that repeat others, in the order in which they are given up. `input.value` and `output.value` say the same."""
_ESSENTIAL: Final = (
    *(S.METADATA, S.TAG_TAGS, S.USER_ID, S.SESSION_ID, S.TOOL_ID, S.TOOL_NAME, S.AGENT_NAME),
    *(S.LLM_COST_TOTAL, S.LLM_TOKEN_COUNT_TOTAL, S.LLM_TOKEN_COUNT_COMPLETION, S.LLM_TOKEN_COUNT_PROMPT),
    *(S.LLM_SYSTEM, S.LLM_PROVIDER, S.INPUT_MIME_TYPE, S.OUTPUT_MIME_TYPE, S.INPUT_VALUE, S.OUTPUT_VALUE),
    *(S.LLM_MODEL_NAME, S.OPENINFERENCE_SPAN_KIND),
)
"""The attributes that a span needs most, the most needed last."""


def fitted(attributes: Mapping[str, Any], limit: int | None = None) -> dict[str, Any]:
    """Return the attributes with the essential ones last, which a full span keeps; above the limit, without whole groups."""
    if limit is None:
        return {**attributes}
    last = {name: attributes[name] for name in _ESSENTIAL if name in attributes}
    kept = {name: value for name, value in attributes.items() if name not in last} | last
    for group in _IN_GROUPS:
        if len(kept) <= limit - _OF_OTHERS:
            return kept
        kept = {name: value for name, value in kept.items() if not name.startswith(group)}
    return kept
