"""The attributes, metadata and status of each kind of span, in the names of OpenInference. None marks an unknown value.

An AGENT span is the root of a run, or a child of the tool call that started the agent. LLM spans are model calls, TOOL spans tool calls.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from math import isclose
from typing import TYPE_CHECKING, Any, Final

from openinference.instrumentation import (
    Document,
    get_retriever_attributes,
    infer_llm_provider_from_host,
    infer_llm_system_from_model_name,
)
from openinference.semconv.trace import OpenInferenceLLMProviderValues as Provider
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from openinference.semconv.trace import SpanAttributes as S
from opentelemetry.trace import Link, SpanContext

from playhead.spans.current import context_of, root_span_of
from playhead.spans.messages import clean, cleaned, content_shown, json_of, json_taken_apart, present
from playhead.spans.tree import OK, UNTIL_FIRST, failed, noted
from playhead.trace.events import RunStarted
from playhead.trace.format import ANSWERED
from playhead.trace.values import untagged

if TYPE_CHECKING:
    from opentelemetry.trace import Status

    from playhead.spans.masking import Masking
    from playhead.spans.messages import Shown
    from playhead.spans.thread import Offered, Prompt
    from playhead.spans.tree import OpenSpan
    from playhead.trace.events import AgentStarted, LlmRequested, LlmResponded, ToolCallCompleted, ToolCallStarted
    from playhead.trace.events.run import Ending
    from playhead.trace.line import Record
    from playhead.trace.types import Prices, ToolSpec, Usage
    from playhead.trace.values import JsonValue

Attributes = dict[str, Any]


# --- runs and agents --------------------------------------------------------------------------------------------------


def of_run(started: RunStarted, masking: Masking) -> Attributes:
    """Return the attributes of every span of a run: its session, its user and its tags."""
    telemetry, chat = started.telemetry, started.chat
    session = (telemetry and telemetry.session_id) or (chat and chat.session) or started.run_id
    user = telemetry and cleaned(telemetry.user_id)
    tags = [clean(tag) for tag in telemetry.tags] if telemetry and masking.application else None
    return present({S.SESSION_ID: clean(session), S.USER_ID: user or None, S.TAG_TAGS: tags or None})


def of_template(started: RunStarted, masking: Masking) -> Attributes:
    """Return the attributes of every LLM span of a run: the prompt template that the application named."""
    telemetry = started.telemetry
    if telemetry is None or not masking.inputs:
        return {}
    variables = telemetry.prompt_template_variables
    return {
        S.LLM_PROMPT_TEMPLATE: cleaned(telemetry.prompt_template or None),
        S.LLM_PROMPT_TEMPLATE_VERSION: cleaned(telemetry.prompt_template_version or None),
        S.LLM_PROMPT_TEMPLATE_VARIABLES: json_taken_apart(variables) if variables else None,
    }


def of_agent(started: RunStarted | AgentStarted, run_id: str, owner: str, path: str, masking: Masking) -> Attributes:
    """Return the initial attributes of an AGENT span. The task of a sub-agent is the argument of a tool call."""
    task = content_shown(started.task, masking.image)
    return {
        S.AGENT_NAME: clean(started.agent.name),
        "agent.id": clean(path),
        "task.id": clean(run_id if owner == "root" else f"{run_id}/{owner.partition('/')[2]}"),
        **(masking.input(task) if isinstance(started, RunStarted) else masking.input(task, is_shown=masking.both)),
    }


def agent_metadata(started: RunStarted | AgentStarted, record: Record) -> Attributes:
    """Return the metadata of an AGENT span. The model is here because backends add up tokens of every span with `llm.model_name`."""
    header = started.agent
    metadata = {"owner": record.owner, "seq": record.seq, "strategy": header.strategy, "model": header.model}
    if not isinstance(started, RunStarted):
        return metadata
    imported = started.imported
    return metadata | {
        "run_id": started.run_id,
        "replay_of": started.replay_of,
        "replay_mode": started.replay_mode,
        "resumed_from": started.resumed_from,
        "chat_turn": started.chat and started.chat.turn,
        "versions": started.versions or None,
        "imported": imported and imported.model_dump(include={"format", "trace_id", "service"}, exclude_none=True),
    }


def links_of(started: RunStarted) -> tuple[Link, ...]:
    """Return links to the runs that this one resumes or replays, and to the trace that it was imported from."""
    telemetry, imported = started.telemetry, started.imported
    found: dict[str, SpanContext] = {}
    if started.resumed_from:
        earlier = telemetry.earlier_trace_id if telemetry else None
        found["resumed_from"] = root_span_of(started.resumed_from, earlier)
    if started.replay_of:
        found["replay_of"] = root_span_of(started.replay_of)
    if imported and (origin := context_of(imported.trace_id, imported.root_span_id, remote=True)):
        found["imported_from"] = origin
    return tuple(Link(context, {"playhead.relation": relation}) for relation, context in found.items())


def of_ending(ending: Ending, masking: Masking) -> Attributes:
    """Return the final attributes of an AGENT span."""
    has_output = ending.output is not None
    return {
        "agent.iterations": ending.iterations,
        "agent.success": ending.status == "done" and ending.terminated_by in ANSWERED and has_output,
        "agent.total_tokens": None if ending.usage.unknown else ending.usage.total_tokens or None,
        "agent.terminated_by": clean(ending.terminated_by),
        "agent.terminated_source": clean(ending.terminated_source),
        **(masking.output(ending.output) if has_output or ending.status == "done" else {}),
    }


def ending_status(span: OpenSpan, ending: Ending, now: int, masking: Masking) -> Status:
    """Return the status of an AGENT span: OK for every normal ending, including an ending by a limit."""
    why = ending.terminated_because
    span.metadata |= {
        "strategy_used": ending.strategy_used,
        "cost_usd": None if ending.cost_unknown else ending.cost_usd,
        "terminated_because": why and masking.word(why),
    }
    if ending.status == "done":
        return OK
    return failed(span, ending.terminated_by, ending.error or why or "the run failed", now, masking)


# --- model calls ------------------------------------------------------------------------------------------------------


def of_request(requested: LlmRequested, described: Offered, masking: Masking) -> Attributes:
    """Return the initial attributes of an LLM span beside its prompt.

    Args:
        requested: the request.
        described: the offered tools, and those that its prompt describes in words.
        masking: what is shown.
    """
    return {
        **(described.attributes if masking.tools else {}),
        S.LLM_INVOCATION_PARAMETERS: json_of(requested.parameters) if masking.parameters else None,
    }


def request_metadata(requested: LlmRequested, record: Record, prompt: Prompt) -> Attributes:
    """Return the metadata of an LLM span; it counts the messages that the span does not show."""
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


def of_answer(responded: LlmResponded, answer: Shown, prices: Prices | None, masking: Masking) -> Attributes:
    """Return the final attributes of an LLM span."""
    return {
        **masking.answered(answer.json),
        **_token_attributes(responded.usage),
        **_cost_attributes(responded.cost_usd, responded.usage, prices),
        S.LLM_FINISH_REASON: cleaned(responded.finish_reason),
        S.LLM_RESPONSE_MODEL_NAME: cleaned(responded.model),
    }


def of_first_token(span: OpenSpan, after_ms: float | None, now: int) -> Attributes:
    """Note when the first text of a streamed answer came, and return the attributes that say so: in seconds, and for Langfuse."""
    if after_ms is None:
        return {}
    at = min(max(span.start + int(after_ms * 1_000_000), span.start), now)
    noted(span, "First Token Stream Event", at)  # OpenInference's name for it
    moment = datetime.fromtimestamp(at / 1_000_000_000, UTC).isoformat(timespec="milliseconds")
    return {UNTIL_FIRST: after_ms / 1000, "langfuse.observation.completion_start_time": json_of(moment)}


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
"""OpenInference's names of providers, by litellm's."""


@lru_cache(maxsize=256)
def of_model(model: str, address: str | None = None) -> Attributes:
    """Return the attributes that name a `provider/model`; a known host at the address names the provider. Do not change them."""
    prefix, _, name = model.partition("/") if "/" in model else ("", "", model)
    host = (address or "").partition("://")[2].partition("/")[0]
    found = infer_llm_provider_from_host(host) if host else None
    provider = found.value if found else _PROVIDERS.get(prefix, prefix)
    system = infer_llm_system_from_model_name(name.rpartition("/")[2])
    return {
        S.LLM_MODEL_NAME: name,
        S.LLM_PROVIDER: provider or None,
        S.LLM_SYSTEM: system.value if system else provider or None,
    }


def _token_attributes(usage: Usage) -> Attributes:
    """Return the token counts that are known."""
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


def _cost_attributes(cost_usd: float | None, usage: Usage, prices: Prices | None) -> Attributes:
    """Return the costs; split into parts only when the prices at the start of the run add up to the recorded cost."""
    if cost_usd is None:
        return {}
    attributes = {S.LLM_COST_TOTAL: cost_usd}
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


# --- tool calls -------------------------------------------------------------------------------------------------------


def of_call(
    started: ToolCallStarted, record: Record, tool: ToolSpec | None, call_id: str, masking: Masking
) -> Attributes:
    """Return the initial attributes of a TOOL span: `tool.parameters` is the schema, `input.value` the arguments."""
    described = tool if masking.tools else None
    return {
        S.TOOL_NAME: masking.tool_name(started.tool, tool),
        S.TOOL_ID: clean(call_id),
        "agent.iteration": record.iteration,
        S.TOOL_DESCRIPTION: described and clean(described.description),
        S.TOOL_PARAMETERS: described and json_taken_apart(described.parameters),
        **masking.input(started.args, is_shown=masking.both),
    }


def call_metadata(started: ToolCallStarted, record: Record, masking: Masking) -> Attributes:
    """Return the metadata of a TOOL span, with the rationale that the model stated."""
    stated = started.rationale if masking.words else None
    return {
        "owner": record.owner,
        "seq": record.seq,
        "position": started.position,
        "source": started.source,
        "rationale": stated and stated.model_dump(mode="json", exclude_defaults=True),
    }


def outcome(completed: ToolCallCompleted) -> JsonValue:
    """Return the result of a tool call, or the error message that the model received."""
    return completed.result if completed.ok else completed.observation()


def of_result(completed: ToolCallCompleted, kind: Kind, *, is_shown: bool, masking: Masking) -> Attributes:
    """Return the final attributes of a TOOL or RETRIEVER span; only the output depends on the masking."""
    documents = document_attributes(completed.result) if kind is Kind.RETRIEVER and completed.ok and is_shown else {}
    return {"tool.success": completed.ok, **masking.output(outcome(completed), is_shown=is_shown), **documents}


def result_status(span: OpenSpan, completed: ToolCallCompleted, now: int, masking: Masking) -> Status:
    """Return the status of a TOOL span."""
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
    return failed(span, kind, message, now, masking, completed.stack)


# --- documents of retrievers, in the forms that search libraries return ------------------------------------------------

_MOST: Final = 50
"""Most documents of a result to show one by one; `output.value` has all of them."""
_NAMES: Final = {
    "content": ("content", "page_content", "text"),
    "id": ("id", "id_", "document_id", "doc_id"),
    "score": ("score", "relevance_score", "similarity"),
}
"""The usual names of each part."""


def document_attributes(result: JsonValue) -> Attributes:
    """Return the attributes of the documents of a retriever's result; empty unless each element of it is a document."""
    found = untagged(result)
    found = found.get("documents") if isinstance(found, dict) else found
    documents = [_document(each) for each in found[:_MOST]] if isinstance(found, list) else []
    if not all(documents):
        return {}
    return get_retriever_attributes(documents=documents)


def _document(given: JsonValue) -> Document:
    """Return the parts of a document; empty for anything else."""
    if isinstance(given, str):
        return Document(content=clean(given))
    if isinstance(given, list) and len(given) == 2 and isinstance(given[1], float | int):  # noqa: PLR2004 - LangChain's pairs
        return (known := _document(given[0])) and Document(**{**known, "score": float(given[1])})
    if not isinstance(given, dict):
        return {}
    if isinstance(given.get("node"), dict):  # LlamaIndex's node with its score
        given = {**given["node"], "score": given.get("score")}
    content, number, score = (
        next((given[name] for name in names if given.get(name) is not None), None) for names in _NAMES.values()
    )
    if not isinstance(content, str):
        return {}
    read = Document(content=clean(content))
    if isinstance(number, str | int):
        read["id"] = clean(str(number))
    if isinstance(score, float | int) and not isinstance(score, bool):
        read["score"] = float(score)
    if isinstance(metadata := given.get("metadata"), dict) and metadata:
        read["metadata"] = json_taken_apart(metadata)
    return read
