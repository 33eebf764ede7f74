"""Words and text forms of the fresh set: none of them stands in `spellings.py` or `text_forms.py` for the same thing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, script_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "send_payment": ("payment_send", "send_a_payment"),
    "list_transactions": ("transactions_list", "list_all_transactions"),
    "create_invoice": ("invoice_create", "create_new_invoice"),
    "post_message": ("message_post", "post_a_message"),
    "search_photos": ("photo_search", "search_for_photos"),
    "add_to_album": ("album_add_to", "add_to_an_album"),
    "set_light": ("light_set", "set_lights"),
    "play_music": ("music_play", "play_some_music"),
    "search_flights": ("flight_search", "search_for_flights"),
    "book_hotel": ("hotel_book", "book_a_hotel"),
    "get_weather": ("get_weather_tool", "tool_get_weather"),
    "set_thermostat": ("thermostat_set", "set_the_thermostat"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "recipient": ("payee", "recipient_name"),
    "currency": ("currency_code",),
    "reference": ("payment_reference",),
    "payment_id": ("payment",),
    "account": ("account_number",),
    "min_amount": ("minimum_amount", "amount_min"),
    "customer": ("customer_name",),
    "due_date": ("due_by", "payment_due_date"),
    "channel": ("channel_name", "chat_channel"),
    "mentions": ("mentioned_users",),
    "thread_id": ("thread",),
    "favorites_only": ("only_favorites",),
    "taken_after": ("taken_since",),
    "photo_ids": ("photos", "image_ids"),
    "brightness": ("brightness_percent", "level"),
    "weekdays": ("days_of_week",),
    "play_music.volume": ("volume_level", "volume_percent"),
    "shuffle": ("shuffle_mode",),
    "online_only": ("only_online",),
    "origin": ("origin_airport", "departure_airport"),
    "departure_date": ("depart_date", "date_of_departure"),
    "cabin": ("cabin_class", "travel_class"),
    "nonstop": ("nonstop_only", "direct_only"),
    "check_in": ("check_in_date", "arrival_date"),
    "board": ("meal_plan", "board_type"),
    "hotel_id": ("hotel",),
    "timeout_seconds": ("timeout_s", "timeout_sec"),
    "working_dir": ("workdir", "working_folder"),
    "start_line": ("from_line", "line_start"),
    "end_line": ("to_line", "line_end"),
    "attendees": ("guests",),
    "reminder_minutes": ("minutes_before",),
    "max_results": ("n_results",),
    "assignee": ("assigned_person",),
    "estimate_hours": ("hours_estimate",),
    "recursive": ("include_subfolders",),
}
"""Other words for a parameter, or for a tool's parameter."""

ABBREVIATIONS: Final[dict[str, str]] = {
    "recipient": "recip",
    "amount": "amt",
    "currency": "curr",
    "reference": "ref",
    "account": "acct",
    "lines": "line",
    "channel": "chan",
    "mentions": "mention",
    "photo_ids": "photo_id",
    "brightness": "bright",
    "weekdays": "weekday",
    "speaker": "speakers",
    "volume": "vol",
    "passengers": "passenger",
    "departure_date": "dep_date",
    "return_date": "ret_date",
    "rooms": "room",
    "pattern": "patterns",
    "working_dir": "work_dir",
    "attendees": "attendee_list",
    "description": "desc",
    "quantity": "qty",
    "timeout_seconds": "timeout_secs",
    "max_results": "max_res",
    "reminder_minutes": "reminder_mins",
    "parameters": "param",
}
NAMESPACES: Final = (
    "functions.{}:0",
    "api.{}",
    "mcp__home_server__{}",
    "default_api:{}",
    "tools/{}",
    "`{}`",
    "call:{}",
)
WRAPPERS: Final = ("properties", "data", "function_args", "request", "tool_args")
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("thinking", "This answers the question."),
    ("call_id", "c-19"),
    ("_reasoning", "As the user asked."),
    ("toolSummary", "Doing what was asked"),
)
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = (("Yes", "No"), ("y", "n"), ("true ", "false "), ("T", "F"))
PLACEHOLDERS: Final = ("none", "NULL", "N/A", "nil", None)


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=4)
    return (
        f"Let me check that for you.\n{call}\n\nOne moment please.",
        f"<think>\nThe user wants this done; the tool is clear.\n</think>\n\n{wide}",
        f"Ich rufe jetzt das passende Werkzeug auf:\n\n{wide}",
        f"The right function here is `{name}`.\n\n{call}\n\n(This may take a second.)",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in call syntax, or in the markers of a chat template."""
    python, script = python_call(name, arguments), script_call(name, arguments)
    as_json = json.dumps(arguments, ensure_ascii=False)
    return (
        f"I'll call the tool now:\n\n`{python}`",
        f"Function: {name}\nParameters: {as_json}",
        f"[TOOL_CALLS]{name}[ARGS]{as_json}",
        f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{as_json}<|call|>",
        f"Calling {name} with arguments:\n{as_json}",
        f"On it.\n\n{script}",
        f"<|tool_call_start|>[{python}]<|tool_call_end|>",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    call, as_json = dumped(name, arguments), json.dumps(arguments, ensure_ascii=False)
    pairs = tags(arguments, "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>")
    quoted = tags(arguments, '<param name="{key}">{value}</param>')
    bare = tags(arguments, "    <{key}>{value}</{key}>")
    return (
        f'<function name="{name}">{as_json}</function>',
        f"<toolcall>{call}</toolcall>",
        f"<|tool_call|>{call}<|/tool_call|>",
        pairs and f"<tool_call>{name}\n{pairs}\n</tool_call>",
        quoted and f'<tool_call name="{name}">\n{quoted}\n</tool_call>',
        bare and f"<tool_use>\n  <name>{name}</name>\n  <parameters>\n{bare}\n  </parameters>\n</tool_use>",
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=4)
    return (
        f"~~~json\n{wide}\n~~~",
        f"```JSON\n{call}\n```",
        f"```function_call\n{call}\n```",
        f"Here is the call.\n\n```json5\n{wide}\n```\n",
        f"```py\nresult = {python_call(name, arguments)}\n```",
        f"````json\n{call}\n````",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call with other keys than name and arguments."""
    call = {"name": name, "arguments": arguments}
    forms: tuple[Any, ...] = (
        {"type": "tool_use", "id": "toolu_01", "name": name, "input": arguments},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        {"functionCall": {"name": name, "args": arguments}},
        {"function_name": name, "function_args": arguments},
        {"toolName": name, "args": arguments},
        {"command": {"name": name, "args": arguments}},
        {"type": "function", "name": name, "parameters": arguments},
        [{"function": name, "arguments": arguments}],
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
