"""The spans of model calls and of tool calls: what each begins with, and what it ends with."""

from __future__ import annotations

from functools import lru_cache
from math import isclose
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from openinference.instrumentation import infer_llm_provider_from_host, infer_llm_system_from_model_name
from openinference.semconv.trace import OpenInferenceLLMProviderValues as Provider
from openinference.semconv.trace import SpanAttributes as S

from playhead.spans.masking import IMAGES_LEFT_OUT
from playhead.spans.messages import clean, cleaned, json_of, json_taken_apart
from playhead.spans.tree import OK, failed

if TYPE_CHECKING:
    from opentelemetry.trace import Status

    from playhead.spans.masking import Masking
    from playhead.spans.messages import Shown
    from playhead.spans.owner import SpanOwner
    from playhead.spans.thread import Prompt
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import LlmRequested, LlmResponded, ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import Prices, ToolSpec, Usage
    from playhead.trace.values import JsonValue


def request_attributes(requested: LlmRequested, owner: SpanOwner, prompt: Prompt, masking: Masking) -> dict[str, Any]:
    """Return what the span of a request begins with."""
    attributes = dict(model_attributes(requested.model, owner.address_of(requested.model)))
    offered = owner.thread.offered(requested.tools)
    if masking.tools:
        told = (
            owner.thread.offered((*requested.tools, *requested.tools_in_text)) if requested.tools_in_text else offered
        )
        attributes.update(told.attributes)
    attributes[S.LLM_INVOCATION_PARAMETERS] = json_of(requested.parameters) if masking.parameters else None
    messages = ",".join([message.json for message in prompt.messages])
    tools = f',"tools":{offered.json}' if offered.tools and masking.tools else ""
    attributes.update(masking.input_json(f'{{"messages":[{messages}]{tools}}}'))
    attributes[IMAGES_LEFT_OUT] = (prompt.images_left_out or None) if masking.inputs else None
    return attributes


def request_name(requested: LlmRequested, owner: SpanOwner) -> str:
    """Return the name of a request's span: with its purpose, where the strategy asks for more than one thing."""
    purpose = f"{requested.purpose} " if owner.phases.declared.purposes else ""
    return f"llm:{purpose}{requested.model}"


def request_metadata(requested: LlmRequested, record: Record, prompt: Prompt) -> dict[str, Any]:
    """Return what else is worth knowing of a request; what of its prompt is not shown is said."""
    return {
        "owner": record.owner,
        "seq": record.seq,
        "request": requested.request,
        "attempt": requested.attempt,
        "purpose": requested.purpose,
        "iteration": record.iteration,
        "messages_cut": prompt.cut or None,
        "messages_missing": prompt.missing or None,
    }


def answer_attributes(
    responded: LlmResponded, answer: Shown, owner: SpanOwner, model: str, masking: Masking
) -> dict[str, Any]:
    """Return what the span of a request ends with that was answered."""
    return {
        **masking.output_json(answer.json),
        **token_attributes(responded.usage),
        **cost_attributes(responded.cost_usd, responded.usage, owner.prices_of(model)),
        S.LLM_FINISH_REASON: cleaned(responded.finish_reason),
        S.LLM_RESPONSE_MODEL_NAME: cleaned(responded.model),
    }


def call_attributes(
    started: ToolCallStarted, record: Record, tool: ToolSpec | None, masking: Masking
) -> dict[str, Any]:
    """Return what the span of a call begins with; `tool.parameters` is the schema, the arguments are `input.value`."""
    name = masking.tool_name(started.tool, tool)
    described = tool if masking.tools else None
    return {
        S.TOOL_NAME: name,
        S.TOOL_ID: clean(started.call_id),
        "agent.iteration": record.iteration,
        S.TOOL_DESCRIPTION: described and clean(described.description),
        S.TOOL_PARAMETERS: described and json_taken_apart(described.parameters),
        **masking.passed(started.args),
    }


def call_metadata(
    started: ToolCallStarted, record: Record, repaired: list[str] | None, masking: Masking
) -> dict[str, Any]:
    """Return what else is worth knowing of a call, the model's own reason first of all."""
    stated = started.rationale if masking.words else None
    return {
        "owner": record.owner,
        "seq": record.seq,
        "position": started.position,
        "source": started.source,
        "rationale": stated and stated.model_dump(mode="json", exclude_defaults=True),
        "repaired": repaired,
    }


def brought(completed: ToolCallCompleted) -> JsonValue:
    """Return what a call brought: its result, or what the model was told in place of one."""
    return completed.result if completed.ok else completed.observation()


def result_attributes(completed: ToolCallCompleted, tool: ToolSpec | None, masking: Masking) -> dict[str, Any]:
    """Return what the span of a call ends with."""
    is_shown = masking.results(tool, ok=completed.ok)
    return {"tool.success": completed.ok, **masking.output(brought(completed), is_shown=is_shown)}


def result_status(span: OpenSpan, completed: ToolCallCompleted, now: int, masking: Masking) -> Status:
    """Return how a call ended."""
    span.metadata |= {
        "cached": completed.cached or None,
        "abandoned": completed.abandoned or None,
        "ended": completed.ended,
        "rung": completed.rung,
    }
    if completed.ok:
        return OK
    error = completed.error
    kind, message = (error.type, error.message) if error else (completed.ended or "error", "the call failed")
    return failed(span, kind, message, now, masking)


_PROVIDERS: Final[dict[str, str]] = {
    **{each.value: each.value for each in Provider},
    "bedrock": Provider.AWS.value,
    "azure_ai": Provider.AZURE.value,
    "cohere_chat": Provider.COHERE.value,
    "fireworks_ai": Provider.FIREWORKS.value,
    "gemini": Provider.GOOGLE.value,
    "mistral": Provider.MISTRALAI.value,
    "ollama_chat": Provider.OLLAMA.value,
    "sagemaker": Provider.AWS.value,
    "together_ai": Provider.TOGETHER.value,
    "vertex_ai": Provider.GOOGLE.value,
}
"""What litellm calls a provider, and what OpenInference does, where these differ."""


@lru_cache(maxsize=256)
def provider_of(model: str, address: str | None = None) -> str:
    """Return the provider of a `provider/model`: the one at the address, when that is a known one's."""
    host = _host(address)
    found = infer_llm_provider_from_host(host) if host else None
    prefix = model.partition("/")[0] if "/" in model else ""
    return found.value if found else _PROVIDERS.get(prefix, prefix)


@lru_cache(maxsize=256)
def model_attributes(model: str, address: str | None = None) -> dict[str, Any]:
    """Return the attributes that say which model was asked; not to be changed."""
    name = model.partition("/")[2] or model
    provider = provider_of(model, address)
    system = infer_llm_system_from_model_name(name.rpartition("/")[2])
    return {
        S.LLM_MODEL_NAME: name,
        S.LLM_PROVIDER: provider or None,
        S.LLM_SYSTEM: system.value if system else provider or None,
    }


def _host(address: str | None) -> str | None:
    try:
        return urlsplit(address).hostname if address else None
    except ValueError:
        return None


def token_attributes(usage: Usage) -> dict[str, Any]:
    """Return the token counts; none that nobody counted, for no prompt is of no token."""
    usage = usage.of_answer()
    if not usage.total_tokens:
        return {}
    return {
        S.LLM_TOKEN_COUNT_PROMPT: usage.known(usage.input_tokens),
        S.LLM_TOKEN_COUNT_COMPLETION: usage.known(usage.output_tokens),
        S.LLM_TOKEN_COUNT_TOTAL: None if usage.unknown else usage.total_tokens,
        # Parts of the counts above, which backends that know them do not add again:
        S.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: usage.cache_read_tokens or None,
        S.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_WRITE: usage.cache_write_tokens or None,
        S.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING: usage.reasoning_tokens or None,
    }


def cost_attributes(cost_usd: float | None, usage: Usage, prices: Prices | None) -> dict[str, Any]:
    """Return the costs; how they divide is left out where the prices at the start do not give the cost that was recorded."""
    if cost_usd is None:
        return {}
    attributes: dict[str, Any] = {S.LLM_COST_TOTAL: cost_usd}
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
