"""Words and text forms of the sixth set: they are its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "print_poster": ("poster_print", "print_a_poster"),
    "restore_backup": ("backup_restore", "restore_from_backup"),
    "file_claim": ("file_insurance_claim", "file_a_claim"),
    "withdraw_claim": ("claim_withdraw", "withdraw_the_claim"),
    "rent_car": ("rent_a_car", "car_rent"),
    "list_chargers": ("list_all_chargers", "chargers_list"),
    "start_charging": ("start_charging_car", "charging_start"),
    "ferry_timetable": ("get_ferry_timetable", "timetable_ferry"),
    "record_grade": ("grade_record", "record_student_grade"),
    "publish_episode": ("publish_podcast_episode", "episode_publish"),
    "observe_target": ("target_observe", "observe_the_target"),
    "meter_readings": ("get_meter_readings", "readings_of_meter"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "document_path": ("document_file", "path_to_document"),
    "paper_size": ("paper_format", "sheet_size"),
    "copies": ("number_of_copies", "copy_count"),
    "color_mode": ("colour_mode", "print_color"),
    "margins": ("page_margins", "margin_sizes"),
    "laminate": ("laminated", "with_lamination"),
    "cost_center": ("cost_centre", "cost_center_code"),
    "archive_path": ("archive_file", "backup_file"),
    "destination_folder": ("output_folder", "restore_to"),
    "include_patterns": ("included_patterns", "patterns_to_include"),
    "conflict_policy": ("on_conflict", "conflict_strategy"),
    "verify_checksums": ("check_checksums", "checksum_verification"),
    "max_threads": ("thread_limit", "maximum_threads"),
    "policy_number": ("policy_no", "insurance_policy_number"),
    "incident_date": ("date_of_incident", "incident_day"),
    "category": ("claim_category", "damage_category"),
    "damages": ("damaged_items", "damage_list"),
    "police_informed": ("police_notified", "informed_police"),
    "claim_number": ("claim_id", "number_of_claim"),
    "motive": ("withdrawal_reason", "reason"),
    "send_confirmation": ("confirmation_wanted", "with_confirmation"),
    "driver": ("driver_details", "main_driver"),
    "pickup_date": ("pick_up_day", "date_of_pickup"),
    "rental_days": ("days_of_rental", "number_of_days"),
    "vehicle_class": ("car_class", "vehicle_category"),
    "add_ons": ("extras", "optional_extras"),
    "full_insurance": ("fully_insured", "with_full_insurance"),
    "town": ("city", "town_name"),
    "free_only": ("only_free", "available_only"),
    "order_by": ("sort_by", "sort_order"),
    "station_number": ("station_id", "charging_station_number"),
    "connector": ("connector_type", "plug_type"),
    "target_percent": ("target_percentage", "charge_to_percent"),
    "max_power_kw": ("power_limit_kw", "maximum_power_kw"),
    "push_message": ("send_push_message", "push_notification"),
    "departure_port": ("from_port", "origin_port"),
    "arrival_port": ("to_port", "destination_port"),
    "travel_date": ("date_of_travel", "travel_day"),
    "direct_only": ("only_direct", "nonstop_only"),
    "max_connections": ("connection_limit", "maximum_connections"),
    "vehicle_size": ("vehicle_dimensions", "size_of_vehicle"),
    "student_number": ("student_id", "pupil_number"),
    "subject": ("school_subject", "subject_name"),
    "score": ("points", "achieved_score"),
    "partial_scores": ("score_parts", "sub_scores"),
    "exam_date": ("date_of_exam", "test_date"),
    "visible_to_parents": ("parents_can_see", "show_to_parents"),
    "publish_episode.title": ("episode_title", "headline"),
    "audio_path": ("audio_file", "recording_path"),
    "season": ("season_number", "season_no"),
    "keywords": ("tags", "keyword_list"),
    "chapters": ("chapter_marks", "chapter_list"),
    "release_at": ("release_time", "publish_at"),
    "target_name": ("name_of_target", "object_name"),
    "coordinates": ("target_coordinates", "sky_position"),
    "exposure_seconds": ("exposure_time_seconds", "exposure_in_seconds"),
    "filters": ("filter_list", "colour_filters"),
    "urgency": ("priority", "urgency_level"),
    "meter_number": ("meter_id", "electricity_meter_number"),
    "first_day": ("start_day", "first_date"),
    "last_day": ("end_day", "last_date"),
    "resolution": ("time_resolution", "granularity"),
    "channels": ("channel_list", "measured_channels"),
    "include_estimates": ("with_estimates", "estimates_included"),
}
"""Other words for a parameter, or for a tool's parameter."""

ABBREVIATIONS: Final[dict[str, str]] = {
    "document_path": "doc_path",
    "copies": "copy",
    "color_mode": "col_mode",
    "destination_folder": "dest_folder",
    "include_patterns": "include_pattern",
    "max_threads": "max_thread",
    "policy_number": "policy_num",
    "damages": "damage",
    "description": "desc",
    "claim_number": "claim_num",
    "rental_days": "rental_day",
    "add_ons": "add_on",
    "station_number": "station_num",
    "target_percent": "target_pct",
    "departure_port": "dep_port",
    "arrival_port": "arr_port",
    "operators": "operator",
    "max_connections": "max_conns",
    "student_number": "student_num",
    "partial_scores": "partial_score",
    "keywords": "keyword",
    "chapters": "chapter",
    "coordinates": "coords",
    "exposure_seconds": "exposure_secs",
    "filters": "filter",
    "meter_number": "meter_num",
    "channels": "channel",
}
NAMESPACES: Final = ("functions/{}", "my_tools.{}", "{}_function", "mcp__desk__{}", "{}();", "desk:{}", "call:{}")
WRAPPERS: Final = ("body", "inputs", "call_arguments", "options", "parameters")
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("thought", "This is what was asked for."),
    ("rationale", "The tool fits the question."),
    ("certainty", 0.88),
    ("call_id", "c-3091"),
    ("metadata", {}),
    ("trace_id", "t-55ab"),
)
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = (
    ("True", "False"),
    ("yes", "no"),
    (1, 0),
    ("TRUE", "FALSE"),
    ("y", "n"),
)
PLACEHOLDERS: Final = ("n/a", "NULL", "none", "", "nil")
FOREIGN_FOLDERS: Final = ("/mnt/jobs/", "/srv/desk/", "C:\\Users\\rosa\\desk\\", "/Users/rosa/desk/", "~/jobs/desk/")


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=2)
    return (
        f"Right away.\n{wide}\n\nI'll tell you when it's through.",
        f"All details are there, so here goes: {call}",
        f"<thinking>\nOne call is enough.\n</thinking>\n\n{call}",
        f"Using **{name}**:\n\n{call}\n\nBack in a second!",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in call syntax, or as ReAct writes it."""
    as_json = json.dumps(arguments, ensure_ascii=False)
    return (
        f"Question: see above\nThought: one tool does it.\nAction: `{name}`\nAction Input: {as_json}",
        f"Let me do that.\n\nawait {python_call(name, arguments)}",
        f"Thought: clear.\nAction: {name}\nAction Input:\n```json\n{as_json}\n```",
        f"On it: `{python_call(name, arguments)}`",
        f"result = {python_call(name, arguments)}",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    as_json = json.dumps(arguments, ensure_ascii=False)
    bare, lines = tags(arguments, "  <{key}>{value}</{key}>"), tags(arguments, '  <param name="{key}">{value}</param>')
    return (
        bare and f"<use_tool>\n<name>{name}</name>\n<arguments>\n{bare}\n</arguments>\n</use_tool>",
        lines and f'<tool_use name="{name}">\n{lines}\n</tool_use>',
        f"<function_call>\n<name>{name}</name>\n<parameters>{as_json}</parameters>\n</function_call>",
        bare and f'<?xml version="1.0"?>\n<{name}>\n{bare}\n</{name}>',
        lines and f'<call tool="{name}">\n{lines}\n</call>\nDone after this.',
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=4)
    return (
        f"```tool\n{wide}\n```",
        f"Here you go.\n\n```py\n{python_call(name, arguments)}\n```\nThat is all.",
        f"````json\n{call}\n````",
        f"```JSON\n{wide}\n```\nThis uses {name}.",
        f"``` json\n{call}\n```",
        f"~~~\n{call}",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call with other keys than name and arguments."""
    forms: tuple[Any, ...] = (
        {"tool_name": name, "tool_input": arguments},
        {"method": name, "params": arguments},
        {"tool_call": {"function": name, "arguments": arguments}},
        {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}]},
        {name: arguments},
        {"action": name, "action_input": arguments},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
