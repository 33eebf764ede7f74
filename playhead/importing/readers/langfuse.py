"""What Langfuse exports: a trace with its observations, or observations alone.

The first comes from `/api/public/traces/{id}` and from the page's download, the others from `/api/public/observations`, from
batch exports and from blob storage, the last with names in snake_case.

An observation becomes a span with OpenInference attributes; what the program itself had sent stands in its metadata.
See langfuse/langfuse, `fern/apis/server/definition/commons.yml` and `packages/shared/src/domain/observations.ts`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.readers.rows import attributes_of, count_pages, first_row, listed
from playhead.importing.spans import ForeignSpan
from playhead.importing.values import at, field_of, nanoseconds_of, object_of, parsed_json, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.importing.spans import Problems

_ROWS: Final = ("observations", "data")
_KINDS: Final = {
    "GENERATION": "LLM",
    "SPAN": "CHAIN",
    "EVENT": "UNKNOWN",
    **{kind: kind for kind in ("AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL", "EMBEDDING")},
}
_NAMES: Final = {"TOOL": "tool.name", "AGENT": "agent.name"}
_USAGE: Final = {
    "llm.token_count.prompt": ("input", "inputTokens", "promptTokens"),
    "llm.token_count.completion": ("output", "outputTokens", "completionTokens"),
    "llm.token_count.total": ("total", "totalTokens"),
    "llm.token_count.prompt_details.cache_read": ("input_cached_tokens", "input_cache_read", "cache_read_input_tokens"),
    "llm.token_count.prompt_details.cache_write": ("input_cache_creation", "cache_creation_input_tokens"),
    "llm.token_count.completion_details.reasoning": ("output_reasoning_tokens", "output_reasoning"),
}
_OF_TRANSPORT: Final = ("attributes", "resourceAttributes", "scope")
"""What Langfuse puts into a trace's metadata itself."""


def is_langfuse(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a document is an export of Langfuse."""
    row = first_row(document, *_ROWS)
    if not row:
        return bool(at(document, "observations") == [])
    named = field_of(row, "traceId") is not None and field_of(row, "startTime") is not None
    return named and str(row.get("type")).upper() in _KINDS


def spans_of_langfuse(document: Any, problems: Problems) -> Iterator[ForeignSpan]:  # noqa: ANN401
    """Yield the spans of one document."""
    count_pages(document, problems)
    trace = object_of(at(document, "trace") or document) if at(document, "observations") is not None else {}
    for row in listed(document, *_ROWS):
        made = _span(row, trace) if isinstance(row, dict) else None
        if made is None:
            problems["observations without an id, a trace's id and a start time"] += 1
        else:
            yield made


def _span(row: dict[str, Any], trace: dict[str, Any]) -> ForeignSpan | None:
    trace_id = text_of(field_of(row, "traceId")) or text_of(trace.get("id"))
    span_id, start_ns = text_of(row.get("id")), nanoseconds_of(field_of(row, "startTime"))
    if trace_id is None or span_id is None or start_ns is None:
        return None
    parent = text_of(field_of(row, "parentObservationId"))
    attributes = _attributes(row, trace, trace if parent is None else {})
    return ForeignSpan(
        trace_id=trace_id,
        span_id=span_id,
        # an observation at the top names the trace itself as its parent in some exports
        parent_id=None if parent == trace_id else parent,
        name=text_of(row.get("name")) or "",
        start_ns=start_ns,
        end_ns=nanoseconds_of(field_of(row, "endTime")),
        status="error" if row.get("level") == "ERROR" else "ok",
        message=text_of(field_of(row, "statusMessage")) or "",
        attributes={name: value for name, value in attributes.items() if value is not None},
        resource=attributes_of(object_of(row.get("metadata")).get("resourceAttributes")),
    )


def _attributes(row: dict[str, Any], trace: dict[str, Any], around: dict[str, Any]) -> dict[str, Any]:
    """Return what a row says; `around` has the input and the output that the trace has for it."""
    sent = attributes_of(object_of(row.get("metadata")).get("attributes"))  # by a program that uses OpenTelemetry
    kind = _KINDS.get(str(row.get("type")).upper(), "UNKNOWN")
    metadata = {name: each for name, each in object_of(trace.get("metadata")).items() if name not in _OF_TRANSPORT}
    return {
        **(_of_model(row) if kind == "LLM" else {}),
        **({_NAMES[kind]: row.get("name")} if kind in _NAMES else {}),
        **_value("input", row.get("input", around.get("input"))),
        **_value("output", row.get("output", around.get("output"))),
        "session.id": field_of(trace, "sessionId") or field_of(row, "sessionId"),
        "user.id": field_of(trace, "userId") or field_of(row, "userId"),
        "tag.tags": trace.get("tags") or row.get("tags") or None,
        "metadata": json.dumps(metadata) if metadata else None,
        "openinference.span.kind": kind,
        **sent,
    }


def _of_model(row: dict[str, Any]) -> dict[str, Any]:
    usage = object_of(field_of(row, "usageDetails")) or object_of(row.get("usage"))
    costs = object_of(field_of(row, "costDetails"))
    return {
        "llm.model_name": field_of(row, "model", "providedModelName"),
        "llm.invocation_parameters": json.dumps(object_of(field_of(row, "modelParameters"))),
        "llm.cost.total": costs["total"] if "total" in costs else field_of(row, "totalCost", "calculatedTotalCost"),
        **{name: field_of(usage, *keys) for name, keys in _USAGE.items()},
    }


def _value(side: str, value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return an input or output as an attribute; text that is JSON, as blob storage holds it, is marked so."""
    if value is None or value == "":
        return {}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_text = isinstance(value, str) and not isinstance(parsed_json(value), (dict, list))
    return {f"{side}.value": text, f"{side}.mime_type": "text/plain" if is_text else "application/json"}
