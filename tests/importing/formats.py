"""The spans of a run in every format, written as the programs that export them do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.values import Attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.spans import ForeignSpan

KIND: Final = "openinference.span.kind"
_TYPES: Final = {"LLM": "GENERATION", "CHAIN": "SPAN", "AGENT": "AGENT", "TOOL": "TOOL"}


def iso(time_ns: int | None) -> str:
    """Return a time as ISO 8601 with microseconds."""
    return datetime.fromtimestamp((time_ns or 0) // 1000 / 1e6, UTC).isoformat()


def openinference_row(span: ForeignSpan) -> dict[str, Any]:
    """Return a line of our own export."""
    return {
        "name": span.name,
        "context": {"trace_id": span.trace_id, "span_id": span.span_id},
        "parent_id": span.parent_id,
        "start_time": iso(span.start_ns),
        "end_time": iso(span.end_ns),
        "status": {"status_code": span.status.upper(), "description": span.message},
        "attributes": dict(span.attributes),
        "events": [
            {"name": each.name, "timestamp": iso(each.time_ns), "attributes": dict(each.attributes)}
            for each in span.events
        ],
    }


def phoenix_row(span: ForeignSpan) -> dict[str, Any]:
    """Return a span as Phoenix's REST API does: flat attributes, the kind beside them."""
    row = openinference_row(span)
    attributes = {name: value for name, value in span.attributes.items() if name != KIND}
    status = row.pop("status")
    return {
        **row,
        "id": "U3Bhbjox",
        "span_kind": span.attributes.get(KIND, "UNKNOWN"),
        "status_code": status["status_code"],
        "status_message": status["description"],
        "attributes": attributes,
    }


def phoenix_columns(spans: list[ForeignSpan]) -> dict[str, Any]:
    """Return Phoenix's data frame as pandas writes it: by columns, lists of messages nested, times in milliseconds."""
    columns: dict[str, dict[str, Any]] = {}
    for span in spans:
        values = {
            "name": span.name,
            "span_kind": span.attributes.get(KIND),
            "parent_id": span.parent_id,
            "start_time": span.start_ns // 1_000_000,
            "end_time": (span.end_ns or 0) // 1_000_000,
            "status_code": span.status.upper(),
            "status_message": span.message,
            "events": [],
            "context.span_id": span.span_id,
            "context.trace_id": span.trace_id,
            **{f"attributes.{name}": value for name, value in half_nested(span).items()},
        }
        for name, value in values.items():
            columns.setdefault(name, {})[span.span_id] = value
    return {name: {each.span_id: column.get(each.span_id) for each in spans} for name, column in columns.items()}


def half_nested(span: ForeignSpan) -> dict[str, Any]:
    """Return attributes with their lists nested and the names inside these dotted, as Phoenix has them in memory."""
    attributes = Attributes(span.attributes)
    kept = {
        name: value for name, value in span.attributes.items() if not any(part.isdecimal() for part in name.split("."))
    }
    for prefix in ("llm.input_messages", "llm.output_messages", "llm.tools"):
        if items := attributes.items(prefix):
            kept[prefix] = [dotted(item) for item in items]
    return {name: value for name, value in kept.items() if name != KIND}


def dotted(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return an object with dotted names; lists in it stay lists."""
    flat: dict[str, Any] = {}
    for name, each in value.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(each, dict) and each and all(key.isdecimal() for key in each):
            flat[path] = [dotted(item) for item in each.values()]
        elif isinstance(each, dict):
            flat |= dotted(each, path)
        else:
            flat[path] = each
    return flat


def nested(attributes: Any) -> dict[str, Any]:
    """Return attributes wholly nested."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        *parents, last = name.split(".")
        place = tree
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = value
    return tree


def langfuse_observation(span: ForeignSpan) -> dict[str, Any]:
    """Return an observation as Langfuse's API does, of a span that it took in as OpenInference."""
    attributes = Attributes(span.attributes)
    kind = _TYPES.get(str(span.attributes.get(KIND)), "SPAN")
    counts = {
        "input": attributes.flat.get("llm.token_count.prompt"),
        "output": attributes.flat.get("llm.token_count.completion"),
    }
    return {
        "id": span.span_id,
        "traceId": span.trace_id,
        "type": kind,
        "name": attributes.text("tool.name") or span.name,
        "startTime": iso(span.start_ns).replace("+00:00", "Z"),
        "endTime": iso(span.end_ns).replace("+00:00", "Z"),
        "parentObservationId": span.parent_id,
        "level": "ERROR" if span.status == "error" else "DEFAULT",
        "statusMessage": span.message or None,
        "model": attributes.flat.get("llm.model_name"),
        "modelParameters": {"temperature": 0.2} if kind == "GENERATION" else {},
        "input": as_chat(attributes, "llm.input_messages") or parsed(attributes.flat.get("input.value")),
        "output": (as_chat(attributes, "llm.output_messages") or [parsed(attributes.flat.get("output.value"))])[0],
        "usageDetails": {name: count for name, count in counts.items() if count is not None},
        "costDetails": {"total": 0.001} if kind == "GENERATION" else {},
        "metadata": {"resourceAttributes": {"service.name": "shop"}},
    }


def as_chat(attributes: Attributes, prefix: str) -> list[Any]:
    """Return messages in OpenAI's shape."""
    found = []
    for item in attributes.items(prefix):
        message = item["message"]
        contents = message.get("contents", [])
        said = [part["message_content"].get("text") for part in contents]
        made = {"role": message["role"], "content": message.get("content", "\n".join(said) or None)}
        if "tool_calls" in message:
            made["tool_calls"] = [
                {"id": call["tool_call"].get("id"), "type": "function", "function": call["tool_call"]["function"]}
                for call in message["tool_calls"]
            ]
        if "tool_call_id" in message:
            made["tool_call_id"] = message["tool_call_id"]
        found.append(made)
    return found


def parsed(value: Any) -> Any:
    """Return a text that is JSON as what it says."""
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def snake(row: dict[str, Any]) -> dict[str, Any]:
    """Return an observation with the names that Langfuse's blob storage export has, values as texts."""
    names = {
        "traceId": "trace_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "parentObservationId": "parent_observation_id",
        "statusMessage": "status_message",
        "model": "provided_model_name",
        "modelParameters": "model_parameters",
        "usageDetails": "usage_details",
        "costDetails": "cost_details",
    }
    texts = {
        name: value if isinstance(value, str) or value is None else json.dumps(value)
        for name, value in row.items()
        if name in ("input", "output")
    }
    return {names.get(name, name): value for name, value in {**row, **texts}.items()}


def lines(rows: list[Any]) -> str:
    """Return JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMATS: Final[dict[str, tuple[str, Callable[[list[ForeignSpan]], str]]]] = {
    "openinference-jsonl": ("openinference-jsonl", lambda spans: lines([openinference_row(span) for span in spans])),
    "openinference-nested": (
        "openinference-jsonl",
        lambda spans: lines([{**openinference_row(span), "attributes": nested(span.attributes)} for span in spans]),
    ),
    "openinference-as-exported": (
        "openinference-jsonl",
        lambda spans: lines([{**phoenix_row(span), "attributes": dict(span.attributes)} for span in spans]),
    ),
    "sdk-to-json": (
        "openinference-jsonl",
        lambda spans: lines(
            [
                {
                    **(row := openinference_row(span)),
                    "context": {key: f"0x{value}" for key, value in row["context"].items()},
                }
                for span in spans
            ]
        ),
    ),
    "phoenix-rest": (
        "phoenix",
        lambda spans: json.dumps({"data": [phoenix_row(span) for span in spans], "next_cursor": None}),
    ),
    "phoenix-list": ("phoenix", lambda spans: json.dumps([phoenix_row(span) for span in spans], indent=2)),
    "phoenix-lines": ("phoenix", lambda spans: lines([phoenix_row(span) for span in spans])),
    "phoenix-frame": ("phoenix", lambda spans: json.dumps(phoenix_columns(spans))),
    "langfuse-trace": (
        "langfuse",
        lambda spans: json.dumps(
            {
                "id": spans[0].trace_id,
                "name": "run",
                "sessionId": "s-1",
                "userId": "ann",
                "tags": ["a"],
                "observations": [langfuse_observation(span) for span in spans],
            }
        ),
    ),
    "langfuse-page": (
        "langfuse",
        lambda spans: json.dumps(
            {
                "trace": {"id": spans[0].trace_id, "sessionId": "s-1"},
                "observations": [langfuse_observation(span) for span in spans],
            }
        ),
    ),
    "langfuse-list": (
        "langfuse",
        lambda spans: json.dumps({"data": [langfuse_observation(span) for span in spans], "meta": {"page": 1}}),
    ),
    "langfuse-lines": ("langfuse", lambda spans: lines([snake(langfuse_observation(span)) for span in spans])),
}
"""By name: the format that it is recognised as, and how it is written."""
