"""Words and text forms of the third set: none stands in `spellings.py` or `spellings_fresh.py` for the same thing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable

_BAR: Final = "\uff5c"
"""The wide bar of DeepSeek's markers."""

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "trigger_pipeline": ("pipeline_trigger", "trigger_ci_pipeline"),
    "get_pipeline_logs": ("get_logs_of_pipeline", "pipeline_logs"),
    "create_pull_request": ("pull_request_create", "create_pull_requests"),
    "merge_pull_request": ("pull_request_merge", "merge_the_pull_request"),
    "search_products": ("product_search", "search_product_catalogue"),
    "update_cart": ("cart_update", "update_shopping_cart"),
    "create_shipment": ("shipment_create", "create_new_shipment"),
    "list_shipments": ("shipments_list", "list_all_shipments"),
    "read_sensor": ("sensor_read", "read_sensor_values"),
    "schedule_irrigation": ("irrigation_schedule", "schedule_an_irrigation"),
    "transcode_video": ("video_transcode", "transcode_video_file"),
    "index_documents": ("documents_index", "index_document_folder"),
    "scale_service": ("service_scale", "scale_the_service"),
    "silence_alert": ("alert_silence", "silence_alerts"),
    "book_appointment": ("appointment_book", "book_patient_appointment"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "pipeline_id": ("pipeline", "pipeline_number"),
    "tail_lines": ("last_lines", "tail"),
    "trigger_pipeline.project": ("project_path",),
    "ref": ("git_ref",),
    "environment": ("target_environment", "env_name"),
    "variables": ("env_variables", "pipeline_variables"),
    "repository": ("repo_name", "repository_name"),
    "head": ("head_branch", "source_branch"),
    "base": ("base_branch", "target_branch"),
    "reviewers": ("requested_reviewers",),
    "draft": ("is_draft",),
    "number": ("pr_number", "pull_request_number"),
    "method": ("merge_method",),
    "category": ("product_category",),
    "in_stock_only": ("only_in_stock",),
    "sort_by": ("sort_order", "order_by"),
    "page": ("page_number",),
    "cart_id": ("shopping_cart_id",),
    "coupon_code": ("voucher_code", "coupon"),
    "order_number": ("order_id", "order_no"),
    "parcels": ("packages",),
    "carrier": ("carrier_name", "shipping_carrier"),
    "pickup_date": ("collection_date",),
    "status": ("shipment_status",),
    "created_after": ("created_since",),
    "device_id": ("sensor_id", "device"),
    "interval_minutes": ("interval_min",),
    "zone": ("zone_number", "irrigation_zone"),
    "skip_if_rain": ("skip_on_rain",),
    "patient_id": ("patient",),
    "doctor": ("doctor_name", "physician"),
    "kind": ("appointment_kind", "appointment_type"),
    "input_path": ("input_file", "input_video"),
    "output_path": ("output_file", "output_video"),
    "codec": ("video_codec",),
    "subtitles": ("subtitle_file",),
    "collection": ("collection_name", "index_name"),
    "chunk_size": ("chunk_tokens",),
    "replicas": ("replica_count", "num_replicas"),
    "service": ("service_name",),
    "namespace": ("k8s_namespace",),
    "matchers": ("label_matchers",),
    "silence_alert.comment": ("comment_text",),
}
"""Other words for a parameter, or for a tool's parameter."""

ABBREVIATIONS: Final[dict[str, str]] = {
    "pipeline_id": "pipe_id",
    "variables": "vars",
    "environment": "env",
    "repository": "repo",
    "reviewers": "reviewer",
    "number": "num",
    "category": "cat",
    "parcels": "parcel",
    "metrics": "metric",
    "interval_minutes": "interval_mins",
    "duration_minutes": "duration_mins",
    "days": "day",
    "resolution": "res",
    "collection": "coll",
    "patterns": "pattern",
    "replicas": "replica",
    "namespace": "ns",
    "matchers": "matcher",
    "doctor": "doc",
    "notes": "note",
}
NAMESPACES: Final = (
    "{}<|channel|>commentary",
    "{}<|channel|>json",
    "functions.{}:3",
    "assistant.{}",
    "mcp.prod.{}",
    "builtin__{}",
    "<function={}>",
)
WRAPPERS: Final = ("argument", "body", "call_args", "inputs", "json", "options")
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("security_risk", "LOW"),
    ("task_progress", "- [x] Look\n- [ ] Do"),
    ("_i", "Doing it"),
    ("random_string", "dummy"),
    ("thoughts", ["The user asked for it."]),
    ("toolCallId", "call_8f2a"),
)
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = (
    ("TRUE ", "FALSE "),
    ('"true"', '"false"'),
    ("YES", "NO"),
    (1.0, 0.0),
)
PLACEHOLDERS: Final = ("(none)", "-", "not specified", "<none>", None)
FOREIGN_FOLDERS: Final = ("/home/runner/jobs/app/", "C:\\Users\\dev\\app\\", "file:///srv/app/", "/mnt/data/")


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences, or with what a template left in."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    parameters = dumped(name, arguments, keys=("name", "parameters"))
    return (
        f"{parameters}<|eot_id|>",
        f"analysisI have to call {name} with these values.assistantcommentary\n{call}",
        f"{call}\n\nI'll look at the result and report back.",
        f"</think>\n\n{wide}",
        f"**Tool call**\n\n{wide}\n\n---",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in the markers of several chat templates."""
    python, call = python_call(name, arguments), dumped(name, arguments)
    as_json = json.dumps(arguments, ensure_ascii=False)
    gemma = ",".join(f"{key}:{_gemma(value)}" for key, value in arguments.items())
    deepseek = (
        f"<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>{name}\n"
        f"```json\n{as_json}\n```<|tool▁call▁end|><|tool▁calls▁end|>"
    )
    kimi = f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{as_json}<|tool_call_end|>"
    return (
        f"<|tool_call>call:{name}{{{gemma}}}<tool_call|>",
        deepseek.replace("|", _BAR),
        f"<|tool_calls_section_begin|>{kimi}<|tool_calls_section_end|>",
        f"functools[{call}]",
        f"<|python_start|>[{python}]<|python_end|>",
        f"commentary to=functions.{name} json{as_json}",
        f"{name} {as_json}",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    call = dumped(name, arguments)
    lines = tags(arguments, "<parameter={key}>\n{value}\n</parameter>")
    quoted = tags(arguments, '<parameter name="{key}">{value}</parameter>')
    marked = tags(arguments, '<|DSML|parameter name="{key}">{value}</|DSML|parameter>')
    pairs = tags(arguments, "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>")
    return (
        lines and f"I'll do that now.\n\n<function={name}>\n{lines}\n</function>\n</tool_call>",
        quoted and f'court\n<invoke name="{name}">\n{quoted}\n</invoke>',
        quoted and f'<minimax:tool_call>\n<invoke name="{name}">\n{quoted}\n</invoke>\n</minimax:tool_call>',
        marked
        and f'<|DSML|tool_calls>\n<|DSML|invoke name="{name}">\n{marked}\n</|DSML|invoke>\n</|DSML|tool_calls>'.replace(
            "|", _BAR
        ),
        pairs and f"<tool_call>{name}{pairs.replace(chr(10), '')}</tool_cal",
        f"<TOOLCALL>[{call}]</TOOLCALL>",
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    return (
        f"```tool_code\nprint(default_api.{python_call(name, arguments)})\n```",
        f"```json\n[\n{call}\n]\n```",
        f"I will use {name}:\n\n```tool_call\n{wide}\n```\n",
        f"```jsonc\n{wide}\n```<|im_end|>",
        f"```\n<tool_call>\n{call}\n</tool_call>\n```",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call with other keys than name and arguments."""
    as_text = json.dumps(arguments, ensure_ascii=False)
    call = {"name": name, "arguments": as_text}
    forms: tuple[Any, ...] = (
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "id": "c1", "function": call}]},
        {"tool_uses": [{"recipient_name": f"functions.{name}", "parameters": arguments}]},
        {"thought": "One call is enough.", "tool": {"name": name, "args": arguments}},
        {"type": "function_call", "call_id": "fc_1", **call},
        {"tool": name, "tool_args": arguments},
        {"toolUse": {"toolUseId": "tooluse_9", "name": name, "input": arguments}},
        {"api_name": name, "arguments": arguments},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


def _gemma(value: Any) -> str:
    """Return a value as Gemma 4 writes it: texts between tokens, keys bare."""
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_gemma(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_gemma(item) for item in value) + "]"
    return json.dumps(value)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
