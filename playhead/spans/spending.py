"""Tokens and US dollars of a model call, each said once."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING, Final

from openinference.semconv.trace import SpanAttributes as S

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from playhead.trace.usage import Prices, Usage

_DETAILS: Final = (
    ("cache_read_tokens", S.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ),
    ("cache_write_tokens", S.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_WRITE),
    ("reasoning_tokens", S.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING),
)
"""Parts of the counts above them, which backends that know them do not add again."""


def token_attributes(usage: Usage) -> dict[str, AttributeValue]:
    """Return the token counts; none that nobody counted, for no prompt is of no token."""
    usage = usage.of_answer()
    if not usage.total_tokens:
        return {}
    counts = {
        S.LLM_TOKEN_COUNT_PROMPT: usage.known(usage.input_tokens),
        S.LLM_TOKEN_COUNT_COMPLETION: usage.known(usage.output_tokens),
        S.LLM_TOKEN_COUNT_TOTAL: None if usage.unknown else usage.total_tokens,
    }
    attributes: dict[str, AttributeValue] = {name: count for name, count in counts.items() if count is not None}
    attributes.update({name: count for field, name in _DETAILS if (count := getattr(usage, field))})
    return attributes


def cost_attributes(cost_usd: float | None, usage: Usage, prices: Prices | None) -> dict[str, AttributeValue]:
    """Return the costs; how they divide is left out where the prices at the start do not give the cost that was recorded."""
    if cost_usd is None:
        return {}
    attributes: dict[str, AttributeValue] = {S.LLM_COST_TOTAL: cost_usd}
    if prices is not None:
        prompt, answer = _prompt_cost(usage, prices), usage.output_tokens * prices.output_usd
        if isclose(prompt + answer, cost_usd, rel_tol=1e-6, abs_tol=1e-12):
            attributes |= {S.LLM_COST_PROMPT: prompt, S.LLM_COST_COMPLETION: answer}
    return attributes


def _prompt_cost(usage: Usage, prices: Prices) -> float:
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    read_usd = prices.input_usd if prices.cache_read_usd is None else prices.cache_read_usd
    write_usd = prices.input_usd if prices.cache_write_usd is None else prices.cache_write_usd
    return (usage.input_tokens - read - write) * prices.input_usd + read * read_usd + write * write_usd
