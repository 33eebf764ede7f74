"""What Langfuse exports: a trace with its observations, or observations alone.

The first comes from `/api/public/traces/{id}` and from the page's download, the others from `/api/public/observations`, from
batch exports and from blob storage, the last with names in snake_case.

An observation becomes a span with OpenInference attributes; what the program itself had sent stands in its metadata.
See langfuse/langfuse, `fern/apis/server/definition/commons.yml` and `packages/shared/src/domain/observations.ts`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.formats import LANGFUSE
from playhead.importing.readers import MORE_PAGES, JsonFormat, first_row, listed
from playhead.importing.readers.rows import attributes_of
from playhead.importing.spans import ForeignSpan
from playhead.importing.values import integer_of, nanoseconds_of, object_of, parsed_json, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.readers import Problems

_ROWS: Final = ("observations", "data")
_KINDS: Final = {
    "GENERATION": "LLM",
    "SPAN": "CHAIN",
    "EVENT": "UNKNOWN",
    "EMBEDDING": "EMBEDDING",
    **{kind: kind for kind in ("AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL")},
}
_USAGE: Final = {
    "llm.token_count.prompt": ("input", "inputTokens", "promptTokens", "prompt_tokens"),
    "llm.token_count.completion": ("output", "outputTokens", "completionTokens", "completion_tokens"),
    "llm.token_count.total": ("total", "totalTokens", "total_tokens"),
    "llm.token_count.prompt_details.cache_read": ("input_cached_tokens", "input_cache_read", "cache_read_input_tokens"),
    "llm.token_count.prompt_details.cache_write": ("input_cache_creation", "cache_creation_input_tokens"),
    "llm.token_count.completion_details.reasoning": ("output_reasoning_tokens", "output_reasoning"),
}


def _fits(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    row = first_row(document, *_ROWS)
    if not row and isinstance(document, dict) and document.get("observations") == []:
        return True
    named = _get(row, "traceId", "trace_id") is not None and _get(row, "startTime", "start_time") is not None
    return named and isinstance(row.get("type"), str) and row["type"].upper() in _KINDS


def _spans(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    trace = (
        object_of(document.get("trace", document)) if isinstance(document, dict) and "observations" in document else {}
    )
    pages = object_of(document.get("meta")) if isinstance(document, dict) else {}
    if (integer_of(pages.get("totalPages")) or 0) > (integer_of(pages.get("page")) or 1):
        problems[MORE_PAGES] += 1
    for row in listed(document, *_ROWS):
        made = _span(row, trace) if isinstance(row, dict) else None
        if made is None:
            problems["observations without an id, a trace's id and a start time"] += 1
        else:
            yield made


def _span(row: dict[str, Any], trace: dict[str, Any]) -> ForeignSpan | None:
    trace_id = text_of(_get(row, "traceId", "trace_id")) or text_of(trace.get("id"))
    span_id, start_ns = text_of(row.get("id")), nanoseconds_of(_get(row, "startTime", "start_time"))
    if trace_id is None or span_id is None or start_ns is None:
        return None
    parent = text_of(_get(row, "parentObservationId", "parent_observation_id"))
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        # an observation at the top names the trace itself as its parent in some exports
        parent_id=None if parent == trace_id else parent,
        name=text_of(row.get("name")) or "",
        start_ns=start_ns,
        end_ns=nanoseconds_of(_get(row, "endTime", "end_time")),
        status="error" if row.get("level") == "ERROR" else "ok",
        message=text_of(_get(row, "statusMessage", "status_message")) or "",
        attributes={
            name: value for name, value in _attributes(row, trace, parent is None).items() if value is not None
        },
        resource=attributes_of(object_of(row.get("metadata")).get("resourceAttributes")),
    )


def _attributes(row: dict[str, Any], trace: dict[str, Any], is_top: bool) -> dict[str, Any]:  # noqa: FBT001 - told by the row
    metadata = object_of(row.get("metadata"))
    sent = attributes_of(metadata.get("attributes"))  # as the program sent them, when it did so through OpenTelemetry
    kind = _KINDS.get(str(row.get("type")).upper(), "UNKNOWN")
    of_kind = _of_model(row) if kind == "LLM" else {"tool.name": row.get("name")} if kind == "TOOL" else {}
    if kind == "AGENT":
        of_kind = {"agent.name": row.get("name")}
    return {
        **of_kind,
        **_value("input", row.get("input", trace.get("input") if is_top else None)),
        **_value("output", row.get("output", trace.get("output") if is_top else None)),
        **_of_trace(row, trace),
        **sent,
        "openinference.span.kind": sent.get("openinference.span.kind", kind),
    }


def _of_trace(row: dict[str, Any], trace: dict[str, Any]) -> dict[str, Any]:
    tags = _get(trace, "tags") or row.get("tags")
    metadata = {
        name: value
        for name, value in object_of(trace.get("metadata")).items()
        if name not in ("attributes", "resourceAttributes", "scope")
    }
    return {
        "session.id": _get(trace, "sessionId", "session_id") or _get(row, "sessionId", "session_id"),
        "user.id": _get(trace, "userId", "user_id") or _get(row, "userId", "user_id"),
        "tag.tags": tags if isinstance(tags, list) and tags else None,
        "metadata": json.dumps(metadata) if metadata else None,
    }


def _of_model(row: dict[str, Any]) -> dict[str, Any]:
    usage = object_of(_get(row, "usageDetails", "usage_details")) or object_of(row.get("usage"))
    counts = {
        name: next((usage[key] for key in keys if usage.get(key) is not None), None) for name, keys in _USAGE.items()
    }
    costs = object_of(_get(row, "costDetails", "cost_details"))
    total = _get(row, "totalCost", "total_cost", "calculatedTotalCost")
    return {
        "llm.model_name": _get(row, "model", "providedModelName", "provided_model_name"),
        "llm.invocation_parameters": json.dumps(object_of(_get(row, "modelParameters", "model_parameters"))),
        "llm.cost.total": costs.get("total") if "total" in costs else total,
        **counts,
    }


def _value(side: str, value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return an input or output as an attribute; text that is JSON, as blob storage holds it, is marked so."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        is_json = isinstance(parsed_json(value), (dict, list))
        return {f"{side}.value": value, f"{side}.mime_type": "application/json" if is_json else "text/plain"}
    return {f"{side}.value": json.dumps(value, ensure_ascii=False), f"{side}.mime_type": "application/json"}


def _get(row: dict[str, Any], *names: str) -> Any:  # noqa: ANN401
    return next((row[name] for name in names if row.get(name) is not None), None)


FORMAT: Final = JsonFormat(LANGFUSE, _fits, _spans)
