"""Words and text forms of the set blind4: none of them stands in another file of the corpus for the same thing."""

from __future__ import annotations

import json
from typing import Any, Final

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "search_papers": ("papers_search", "search_scientific_papers"),
    "run_simulation": ("simulation_run", "run_a_simulation"),
    "trim_video": ("video_trim", "trim_the_video"),
    "track_shipment": ("shipment_track", "track_shipments"),
    "schedule_pickup": ("schedule_a_pickup", "schedule_parcel_pickup"),
    "request_leave": ("leave_request", "request_employee_leave"),
    "list_employees": ("employees_list", "list_all_employees"),
    "make_move": ("move_make", "make_chess_move"),
    "search_case_law": ("case_law_search", "search_for_case_law"),
    "log_medication": ("log_a_medication", "medication_log_entry"),
    "book_appointment": ("appointment_book", "book_patient_appointment"),
    "cancel_appointment": ("appointment_cancel", "cancel_an_appointment"),
    "start_cleaning": ("cleaning_start", "start_robot_cleaning"),
    "comment_on_line": ("line_comment", "comment_on_pull_request_line"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "authors": ("author_names",),
    "year_from": ("from_year", "min_year"),
    "open_access_only": ("only_open_access",),
    "model_file": ("model_path",),
    "conditions": ("simulation_conditions",),
    "output_dir": ("output_directory",),
    "tracking_number": ("shipment_number", "tracking_code"),
    "include_history": ("with_history",),
    "parcels": ("packages",),
    "time_window": ("pickup_window", "time_slot"),
    "contact_phone": ("phone_number",),
    "leave_type": ("kind_of_leave", "type_of_leave"),
    "half_day": ("is_half_day",),
    "player": ("player_color", "side"),
    "move": ("chess_move",),
    "court": ("court_name",),
    "decided_after": ("decided_after_date",),
    "medication": ("medicine", "drug"),
    "dose": ("dosage",),
    "taken_at": ("time_taken",),
    "practitioner": ("practitioner_name", "therapist"),
    "duration_minutes": ("duration", "duration_in_minutes"),
    "rooms": ("room_list", "rooms_to_clean"),
    "pull_request": ("pull_request_number", "pull_request_id"),
    "body": ("comment_text", "comment_body"),
}
"""Other words for a parameter; each can mean no other parameter of its tool."""

SHORT: Final[dict[str, str]] = {
    "authors": "auth_list",
    "include_history": "history",
    "employee_id": "emp_id",
    "department": "dept",
    "jurisdiction": "juris",
    "appointment_id": "appt_id",
    "medication": "med",
    "parcels": "parcel",
    "address": "addr",
    "practitioner": "pract",
    "keep_audio": "audio",
    "severity": "sev",
}
NAMESPACES: Final = (
    "default_api.{}",
    "functions::{}",
    "mcp_office-server_{}",
    "<function={}>",
    "tool:{}",
    "{}()",
)
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("_meta", {"progressToken": 0}),
    ("rationale", "This is the next step of the plan."),
    ("toolName", "as above"),
)
PLACEHOLDERS: Final = ("undefined", "not specified", "-", "")
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = (("TRUE", "FALSE"), ("1", "0"), ('"true"', '"false"'))
WRAPPERS: Final = ("tool_input", "args", "payload", "toolParams")


def pairs(arguments: dict[str, Any], form: str) -> str:
    """Return each argument in a form of tags."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    return "\n".join(form.format(key=key, value=value) for key, value in texts.items())


def xml(name: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return a call in tags."""
    as_json = json.dumps(arguments, ensure_ascii=False)
    named = pairs(arguments, '<parameter name="{key}">{value}</parameter>')
    return (
        f'<function_calls>\n<invoke name="{name}">\n{named}\n</invoke>\n</function_calls>',
        f"<tool_calls>\n<tool_name>{name}</tool_name>\n<tool_arguments>{as_json}</tool_arguments>\n</tool_calls>",
        f'<seed:tool_call>\n<function name="{name}">\n{named}\n</function>\n</seed:tool_call>',
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return a call in a fence."""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    keywords = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return (
        f"```xml\n<tool_call>\n{call}\n</tool_call>\n```",
        f"The next step is this call:\n\n```jsonc\n{call}\n```",
        f"```python\n{name}({keywords})\n```",
    )


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return a JSON call between sentences."""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, indent=2)
    return (
        f"Okay, here is what I'll do:\n\n{call}\n\nI'll report back as soon as there is a result.",
        f"</think>\n\n{call}",
        f"**Tool call:**\n\n{call}<|im_end|>",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """Return a JSON call with other keys than name and arguments."""
    forms: tuple[Any, ...] = (
        {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments)}, "type": "function"}]},
        {"recipient_name": f"functions.{name}", "parameters": arguments},
        {"action": {"tool": name, "tool_input": arguments}},
        {"function_call": {"name": name, "arguments": arguments}},
        {name: arguments},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)
