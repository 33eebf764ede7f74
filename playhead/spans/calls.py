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
from playhead.spans.texts import clean, json_of, json_taken_apart
from playhead.spans.tree import OK, failed

if TYPE_CHECKING:
    from opentelemetry.trace import Status
    from opentelemetry.util.types import AttributeValue

    from playhead.spans.masking import Masking
    from playhead.spans.messages import Shown
    from playhead.spans.owner import SpanOwner
    from playhead.spans.thread import Prompt
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import LlmRequested, LlmResponded, ToolCallCompleted, ToolCallStarted
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec
    from playhead.trace.usage import Prices, Usage
    from playhead.trace.values import JsonValue


def request_attributes(
    requested: LlmRequested, owner: SpanOwner, prompt: Prompt, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a request begins with."""
    attributes = dict(model_attributes(requested.model, owner.address_of(requested.model)))
    offered = owner.thread.offered(requested.tools)
    if masking.tools:
        told = (
            owner.thread.offered((*requested.tools, *requested.tools_in_text)) if requested.tools_in_text else offered
        )
        attributes.update(told.attributes)
    if masking.parameters:
        attributes[S.LLM_INVOCATION_PARAMETERS] = json_of(requested.parameters)
    messages = ",".join([message.json for message in prompt.messages])
    tools = f',"tools":{offered.json}' if offered.tools and masking.tools else ""
    attributes.update(masking.input_json(f'{{"messages":[{messages}]{tools}}}'))
    if masking.inputs and prompt.images_left_out:
        attributes[IMAGES_LEFT_OUT] = prompt.images_left_out
    return attributes


def request_name(requested: LlmRequested, owner: SpanOwner) -> str:
    """Return the name of a request's span: with its purpose, where the strategy asks for more than one thing."""
    purpose = f"{requested.purpose} " if owner.phases.declared.purposes else ""
    return f"llm:{purpose}{requested.model}"


def request_metadata(requested: LlmRequested, record: Record, prompt: Prompt) -> dict[str, Any]:
    """Return what else is worth knowing of a request; what of its prompt is not shown is said."""
    metadata: dict[str, Any] = {
        "owner": record.owner,
        "seq": record.seq,
        "request": requested.request,
        "attempt": requested.attempt,
        "purpose": requested.purpose,
    }
    if record.iteration is not None:
        metadata["iteration"] = record.iteration
    if prompt.cut:
        metadata["messages_cut"] = prompt.cut
    if prompt.missing:
        metadata["messages_missing"] = prompt.missing
    return metadata


def answer_attributes(
    responded: LlmResponded, answer: Shown, owner: SpanOwner, model: str, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a request ends with that was answered."""
    attributes: dict[str, AttributeValue] = {}
    attributes.update(masking.output_json(answer.json))
    attributes.update(token_attributes(responded.usage))
    attributes.update(cost_attributes(responded.cost_usd, responded.usage, owner.prices_of(model)))
    if responded.finish_reason is not None:
        attributes[S.LLM_FINISH_REASON] = clean(responded.finish_reason)
    if responded.model is not None:
        attributes[S.LLM_RESPONSE_MODEL_NAME] = clean(responded.model)
    return attributes


def call_attributes(
    started: ToolCallStarted, record: Record, tool: ToolSpec | None, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a call begins with; `tool.parameters` is the schema, the arguments are `input.value`."""
    name = masking.tool_name(started.tool, tool)
    attributes: dict[str, AttributeValue] = {S.TOOL_NAME: name, S.TOOL_ID: clean(started.call_id)}
    if record.iteration is not None:
        attributes["agent.iteration"] = record.iteration
    if tool is not None and masking.tools:
        attributes[S.TOOL_DESCRIPTION] = clean(tool.description)
        attributes[S.TOOL_PARAMETERS] = json_taken_apart(tool.parameters)
    attributes.update(masking.passed(started.args))
    return attributes


def call_metadata(
    started: ToolCallStarted, record: Record, repaired: list[str] | None, masking: Masking
) -> dict[str, Any]:
    """Return what else is worth knowing of a call, the model's own reason first of all."""
    metadata: dict[str, Any] = {
        "owner": record.owner,
        "seq": record.seq,
        "position": started.position,
        "source": started.source,
    }
    if started.rationale is not None and masking.words:
        metadata["rationale"] = started.rationale.model_dump(mode="json", exclude_defaults=True)
    if repaired:
        metadata["repaired"] = repaired
    return metadata


def brought(completed: ToolCallCompleted) -> JsonValue:
    """Return what a call brought: its result, or what the model was told in place of one."""
    return completed.result if completed.ok else completed.observation()


def result_attributes(
    completed: ToolCallCompleted, tool: ToolSpec | None, masking: Masking
) -> dict[str, AttributeValue]:
    """Return what the span of a call ends with."""
    return {"tool.success": completed.ok, **masking.result(brought(completed), tool, ok=completed.ok)}


def result_status(span: OpenSpan, completed: ToolCallCompleted, now: int, masking: Masking) -> Status:
    """Return how a call ended."""
    facts = {"cached": completed.cached, "abandoned": completed.abandoned}
    span.metadata.update({name: True for name, fact in facts.items() if fact})
    told = {"ended": completed.ended, "rung": completed.rung}
    span.metadata.update({name: value for name, value in told.items() if value is not None})
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
def model_attributes(model: str, address: str | None = None) -> dict[str, AttributeValue]:
    """Return the attributes that say which model was asked; not to be changed."""
    name = model.partition("/")[2] or model
    provider = provider_of(model, address)
    system = infer_llm_system_from_model_name(name.rpartition("/")[2])
    attributes: dict[str, AttributeValue] = {S.LLM_MODEL_NAME: name}
    if provider:
        attributes[S.LLM_PROVIDER] = provider
    if system or provider:
        attributes[S.LLM_SYSTEM] = system.value if system else provider
    return attributes


def _host(address: str | None) -> str | None:
    try:
        return urlsplit(address).hostname if address else None
    except ValueError:
        return None


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
