"""Words and text forms of the seventh set: they are its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "submit_expense": ("submit_expense_report", "hand_in_expense"),
    "reject_expense": ("decline_expense", "expense_rejection"),
    "send_for_signature": ("send_contract_for_signature", "send_for_signing"),
    "resize_image": ("resize_picture", "image_resizer"),
    "query_metrics": ("get_metrics", "metrics_query"),
    "set_feature_flag": ("update_feature_flag", "feature_flag_set"),
    "create_webhook": ("add_webhook", "create_new_webhook"),
    "list_webhooks": ("show_webhooks", "list_registered_webhooks"),
    "upload_firmware": ("install_firmware", "upload_device_firmware"),
    "plan_route": ("plan_delivery_route", "route_planner"),
    "search_properties": ("find_properties", "property_search"),
    "assign_shift": ("shift_assignment", "assign_employee_shift"),
    "register_sample": ("register_lab_sample", "sample_registration"),
    "discard_sample": ("destroy_sample", "discard_lab_sample"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "receipt_path": ("receipt_file", "receipt_image"),
    "merchant": ("vendor", "merchant_name"),
    "amount": ("total_amount", "amount_spent"),
    "currency": ("currency_type", "amount_currency"),
    "spent_on": ("expense_date", "date_spent"),
    "expense_type": ("expense_category", "type_of_expense"),
    "attendees": ("attendee_names", "people_present"),
    "billable": ("is_billable", "billable_to_client"),
    "project_code": ("code_of_project", "project"),
    "expense_id": ("expense_number", "id_of_expense"),
    "grounds": ("rejection_reason", "reject_reason"),
    "note_to_employee": ("employee_note", "message_to_employee"),
    "allow_resubmission": ("resubmission_allowed", "can_resubmit"),
    "contract_path": ("contract_file", "contract_document"),
    "signers": ("signatories", "signer_list"),
    "expires_on": ("expiry_date", "expiration_date"),
    "cover_message": ("message_text", "accompanying_message"),
    "reminder_days": ("remind_days_before", "reminders"),
    "require_sms_code": ("sms_code_required", "sms_verification"),
    "image_path": ("source_image", "input_image"),
    "output_path": ("write_to", "save_as"),
    "width_px": ("width_in_pixels", "new_width"),
    "height_px": ("height_in_pixels", "new_height"),
    "fit_mode": ("resize_mode", "mode"),
    "quality": ("image_quality", "jpeg_quality"),
    "keep_metadata": ("preserve_metadata", "retain_metadata"),
    "metric_name": ("metric", "name_of_metric"),
    "start_time": ("start_timestamp", "range_start"),
    "end_time": ("end_timestamp", "range_end"),
    "step_seconds": ("step_size_seconds", "interval_seconds"),
    "rollup": ("rollup_function", "aggregation_function"),
    "group_by": ("group_by_labels", "grouping"),
    "label_filters": ("filter_labels", "labels"),
    "flag_key": ("flag_name", "feature_key"),
    "environment": ("flag_environment", "deployment_environment"),
    "enabled": ("is_enabled", "flag_enabled"),
    "rollout_percent": ("rollout_percentage", "percent_of_users"),
    "segments": ("user_segments", "target_segments"),
    "expires_at": ("expiry_time", "expiration_time"),
    "change_note": ("change_comment", "note_on_change"),
    "targetUrl": ("webhookUrl", "callbackUrl"),
    "eventTypes": ("subscribedEvents", "events"),
    "retryPolicy": ("retryConfig", "retrySettings"),
    "timeoutMs": ("timeoutMilliseconds", "requestTimeoutMs"),
    "signingKey": ("signingSecret", "secretKey"),
    "isActive": ("active", "startActive"),
    "eventType": ("eventName", "filterByEvent"),
    "includeInactive": ("showInactive", "withInactive"),
    "pageSize": ("perPage", "itemsPerPage"),
    "firmware_path": ("firmware_file", "firmware_image"),
    "device_ids": ("device_list", "target_devices"),
    "release_channel": ("update_channel", "firmware_channel"),
    "max_parallel": ("parallel_limit", "max_concurrent"),
    "rollback_on_failure": ("auto_rollback", "rollback_if_failed"),
    "install_window": ("installation_window", "maintenance_window"),
    "stops": ("waypoints", "delivery_stops"),
    "vehicle": ("vehicle_type", "transport_vehicle"),
    "depart_at": ("departure_time", "leave_at"),
    "avoid": ("things_to_avoid", "avoidances"),
    "optimize_order": ("optimise_order", "reorder_stops"),
    "max_detour_km": ("maximum_detour_km", "detour_limit_km"),
    "location": ("search_location", "search_area"),
    "listing_type": ("offer_type", "rent_or_sale"),
    "price_range": ("price_limits", "budget"),
    "min_bedrooms": ("minimum_bedrooms", "bedrooms_min"),
    "amenities": ("desired_amenities", "features"),
    "available_from": ("availability_date", "move_in_date"),
    "pets_allowed": ("allows_pets", "pet_friendly"),
    "search_properties.sort_order": ("result_order", "ordering"),
    "page": ("page_no", "result_page"),
    "employee_id": ("personnel_number", "worker_id"),
    "shift_date": ("date_of_shift", "work_date"),
    "shift_type": ("type_of_shift", "shift_kind"),
    "working_hours": ("work_hours", "hours_of_work"),
    "break_minutes": ("pause_minutes", "break_duration_minutes"),
    "skills_needed": ("required_skills", "needed_skills"),
    "overtime": ("is_overtime", "counts_as_overtime"),
    "sample_code": ("sample_id", "code_of_sample"),
    "material": ("sample_material", "specimen_type"),
    "collected_on": ("day_of_collection", "date_collected"),
    "storage_place": ("storage_location", "stored_at"),
    "volume_ml": ("volume_in_ml", "sample_volume_ml"),
    "hazard_labels": ("hazards", "hazard_list"),
    "consent_given": ("has_consent", "patient_consent"),
    "remarks": ("remarks_text", "additional_remarks"),
    "method": ("disposal_method", "discard_method"),
    "witness": ("witness_name", "witnessed_by"),
    "label_report": ("print_label_report", "with_report"),
}
"""Other words for a parameter, or for a tool's parameter."""

ABBREVIATIONS: Final[dict[str, str]] = {
    "receipt_path": "rcpt_path",
    "amount": "amnt",
    "project_code": "proj_code",
    "expense_id": "exp_id",
    "signers": "signer",
    "cover_message": "cover_msg",
    "reminder_days": "reminder_day",
    "image_path": "img_path",
    "output_path": "out_path",
    "metric_name": "metrics_name",
    "step_seconds": "step_secs",
    "label_filters": "label_filter",
    "environment": "environ",
    "rollout_percent": "rollout_pct",
    "segments": "segment",
    "eventTypes": "evtTypes",
    "retryPolicy": "retryPolicies",
    "firmware_path": "fw_path",
    "device_ids": "dev_ids",
    "max_parallel": "max_par",
    "stops": "stop",
    "amenities": "amenity",
    "min_bedrooms": "min_beds",
    "employee_id": "empl_id",
    "break_minutes": "break_mins",
    "skills_needed": "skill_needed",
    "hazard_labels": "hazard_label",
    "volume_ml": "vol_ml",
    "remarks": "remark",
    "sample_code": "sample_codes",
}
NAMESPACES: Final = (
    "office_api.{}",
    "mcp__backoffice__{}",
    "{}_v1",
    "tool_{}",
    "backoffice/{}",
    "{}<|end|>",
    "self.{}",
    "[{}]",
)
WRAPPERS: Final = ("tool_parameters", "param", "parameter_values", "call", "arguments_object")
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("justification", "I call this tool because the user asked for it."),
    ("$schema", "http://json-schema.org/draft-07/schema#"),
    ("additionalProperties", False),
    ("next_step", "Tell the user how it went."),
    ("_thought", "Everything is given."),
    ("invocation_id", "inv-2"),
    ("self_check", "All required fields are there."),
)
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = ((" true", " false"), ("'True'", "'False'"), ("Y", "N"))
PLACEHOLDERS: Final = ("not provided", "unspecified", "<null>", "NONE", "default", "null ")
FOREIGN_FOLDERS: Final = (
    "/content/",
    "/mnt/user-data/uploads/",
    "E:\\office\\files\\",
    "/var/lib/agent/files/",
    "$HOME/office/",
)


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences, or its arguments after a sentence that names the tool."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=3)
    values = json.dumps(arguments, ensure_ascii=False, indent=2)
    return (
        f"I'm going to use the `{name}` tool with the following input:\n\n{values}",
        f"assistant\n{call}",
        f"1. **Call the tool**\n\n   {call}\n\n2. **Report** the result to you.",
        f"Okay! [tool_call: {call}]",
        f"Everything is clear, thank you. Tool call:\n\n{wide}\n\nThe answer follows.",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in call syntax, or as ReAct's paper writes it."""
    as_json = json.dumps(arguments, ensure_ascii=False)
    return (
        f"Thought 1: The tool for this is given.\nAction 1: {name}[{as_json}]",
        f">>> {python_call(name, arguments)}",
        f"tool: {name}\ntool_input: {as_json}",
        f"CALL {name} WITH {as_json}",
        f"I will do this in one step.\n\n@{name}({as_json})",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    call, as_json = dumped(name, arguments), json.dumps(arguments, ensure_ascii=False)
    spaced = json.dumps(arguments, ensure_ascii=False, indent=2)
    named = f"<tool_name>{name}</tool_name>\n<arguments>\n{spaced}\n</arguments>"
    bare, lines = (
        tags(arguments, "<{key}>{value}</{key}>"),
        tags(arguments, '  <argument key="{key}">{value}</argument>'),
    )
    return (
        f"<use_mcp_tool>\n<server_name>office</server_name>\n{named}\n</use_mcp_tool>",
        bare and f"<tool_call>\n<function>{name}</function>\n<args>\n{bare}\n</args>\n</tool_call>",
        f"<execute_tool>\n{python_call(name, arguments)}\n</execute_tool>",
        f"I have all I need.\n<tool_call>\n{call}\n</function_call>",
        lines and f'<tool_invocation tool="{name}">\n{lines}\n</tool_invocation>',
        f"<action>{name}</action>\n<action_input>{as_json}</action_input>",
        bare and f"<tool>{name}</tool>\n<parameters>\n{bare}\n</parameters>",
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    as_json, inset = json.dumps(arguments, ensure_ascii=False), wide.replace("\n", "\n   ")
    return (
        f"```tool_use\n{call}\n```",
        f"1. Call the tool:\n\n   ```json\n   {inset}\n   ```\n2. Read what it returns.",
        f"```python\nfrom tools import {name}\n\n{python_call(name, arguments)}\n```",
        f"'''json\n{wide}\n'''",
        f"```typescript\nawait tools.{name}({as_json});\n```",
        f"Then: ```json {call} ```",
        f"```json\n{wide}\n```\n\n**Note:** I left all other options at their defaults.",
        "```yaml\n" + "\n".join((f"tool: {name}", "arguments:", *_yaml(arguments))) + "\n```",
    )


def _yaml(arguments: dict[str, Any]) -> list[str]:
    """Return every argument as a line of YAML, lists and objects in flow style."""
    return [f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()]


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call with other keys than name and arguments."""
    forms: tuple[Any, ...] = (
        {"actions": [{"tool": name, "tool_args": arguments}]},
        {"next_action": {"name": name, "input": arguments}},
        {"action": "call_tool", "tool": name, "args": arguments},
        {"tool": {"name": name, "parameters": arguments}},
        {"plan": "One call.", "tool_call": {"tool_name": name, "tool_arguments": arguments}},
        {"name": name, "kwargs": arguments},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
