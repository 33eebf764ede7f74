"""Words and text forms of the fifth set: none stands in the other sets' words for the same thing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.kernel.healing.corpus.text_forms import dumped, python_call, script_call, tags

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "adjust_stock": ("stock_adjust", "adjust_stock_level"),
    "import_stock_list": ("stock_list_import", "import_stock_lists"),
    "find_book": ("find_books", "book_find"),
    "renew_loan": ("renew_loans", "loan_renew"),
    "list_branches": ("list_library_branches", "branches_list"),
    "account_balance": ("get_account_balance", "balance_of_account"),
    "reserve_room": ("reserve_hotel_room", "room_reserve"),
    "cancel_reservation": ("cancel_the_reservation", "reservation_cancel"),
    "translate_document": ("document_translate", "translate_document_file"),
    "set_dns_record": ("set_record_dns", "dns_record_set"),
    "check_domains": ("check_domain_names", "domains_check"),
    "save_recipe": ("recipe_save", "save_new_recipe"),
    "log_workout": ("workout_log", "log_a_workout"),
    "buy_museum_tickets": ("buy_tickets_museum", "museum_tickets_buy"),
    "extend_parking": ("extend_parking_session", "parking_extend"),
    "weather_archive": ("get_weather_archive", "archive_weather"),
}
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "sku": ("article_number", "sku_number"),
    "warehouse": ("warehouse_name", "warehouse_location"),
    "delta": ("quantity_delta", "quantity_change"),
    "lot_numbers": ("lots", "lot_list"),
    "remark": ("note", "remark_text"),
    "file_path": ("csv_file", "filename"),
    "delimiter": ("separator", "field_delimiter"),
    "skip_rows": ("skip_lines", "rows_to_skip"),
    "replace_existing": ("overwrite_existing", "replace"),
    "query": ("search_query", "search_terms"),
    "available_only": ("only_available", "is_available"),
    "max_results": ("limit", "result_limit"),
    "find_book.language": ("book_language",),
    "published": ("publication_years", "published_between"),
    "card_number": ("library_card_number", "card_no"),
    "loan_ids": ("loans", "loan_numbers"),
    "new_due_date": ("due_date", "extend_until"),
    "account_number": ("account_no", "bank_account_number"),
    "as_of": ("as_of_date", "balance_date"),
    "currency": ("currency_code",),
    "include_pending": ("with_pending", "pending_included"),
    "list_branches.city": ("city_name",),
    "open_now": ("currently_open", "only_open"),
    "guest": ("guest_details", "guest_info"),
    "arrival_date": ("check_in_date", "arrival"),
    "nights": ("number_of_nights", "night_count"),
    "room_type": ("type_of_room", "room_category"),
    "reservation_number": ("reservation_id", "booking_number"),
    "refund_method": ("refund_type",),
    "source_path": ("source_file", "input_path"),
    "target_path": ("target_file", "destination_path"),
    "target_language": ("target_lang_code", "to_language"),
    "domain": ("domain_name", "hostname"),
    "record_type": ("dns_record_type", "type"),
    "set_dns_record.value": ("record_value", "target_value"),
    "ttl_seconds": ("time_to_live_seconds", "ttl_in_seconds"),
    "proxied": ("use_proxy", "is_proxied"),
    "domains": ("domain_names", "domain_list"),
    "save_recipe.title": ("recipe_title", "recipe_name"),
    "servings": ("number_of_servings", "serving_count"),
    "ingredients": ("ingredient_list",),
    "steps": ("instructions", "cooking_steps"),
    "activity": ("activity_type", "workout_type"),
    "started_at": ("start_time", "started"),
    "duration_minutes": ("duration_in_minutes", "length_minutes"),
    "distance_km": ("distance_in_km", "kilometers"),
    "exhibition": ("exhibition_name", "exhibition_title"),
    "visit_date": ("date_of_visit",),
    "email": ("email_address", "contact_email"),
    "license_plate": ("plate_number", "number_plate"),
    "zone_code": ("parking_zone", "zone_number"),
    "extend_parking.minutes": ("extra_minutes", "additional_minutes"),
    "payment_method": ("payment_type", "pay_with"),
    "station": ("weather_station", "station_name"),
    "start_date": ("from_date", "date_from"),
    "end_date": ("to_date", "date_to"),
    "measurements": ("measured_values",),
    "aggregate": ("aggregation",),
    "unit_system": ("units",),
}
"""Other words for a parameter, or for a tool's parameter."""

ABBREVIATIONS: Final[dict[str, str]] = {
    "lot_numbers": "lot_nums",
    "file_path": "path",
    "max_results": "max_res",
    "language": "lang",
    "branches": "branch",
    "card_number": "card_num",
    "loan_ids": "loan_id",
    "account_number": "acct_number",
    "currency": "curr",
    "nights": "night",
    "extras": "extra",
    "reservation_number": "reservation_no",
    "target_language": "target_lang",
    "source_path": "src_path",
    "record_type": "rec_type",
    "ttl_seconds": "ttl_sec",
    "domains": "domain",
    "ingredients": "ingredient",
    "steps": "step",
    "duration_minutes": "duration_min",
    "distance_km": "dist_km",
    "exhibition": "exhibit",
    "visitors": "visitor",
    "license_plate": "plate",
    "zone_code": "zone",
    "minutes": "mins",
    "measurements": "measurement",
}
NAMESPACES: Final = ("tool.{}", "api.{}", "{}_tool", "library_server__{}", "{}()", "default.{}", "tools/{}")
WRAPPERS: Final = ("payload", "data", "request", "tool_args", "fields", "values")
NOISE: Final[tuple[tuple[str, object], ...]] = (
    ("explanation", "The user asked for this."),
    ("reasoning", "First step of two."),
    ("confidence", 0.93),
    ("tool_call_id", "call_77"),
    ("_meta", {}),
    ("request_id", "req-102"),
)
TRUE_FALSE: Final[tuple[tuple[object, object], ...]] = (
    ("true", "false"),
    ("Yes", "No"),
    (1, 0),
    ("on", "off"),
    ("1", "0"),
)
PLACEHOLDERS: Final = ("N/A", "null", "None", "", "undefined")
FOREIGN_FOLDERS: Final = ("/workspace/", "/app/", "D:\\projects\\desk\\", "/home/ida/desk/", "~/desk/")


def prose_json(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call between sentences."""
    call, wide = dumped(name, arguments), dumped(name, arguments, indent=4)
    return (
        f"To do that I call {name}:\n\n{wide}\n",
        f"Of course. {call}",
        f"I have everything I need. Calling the tool now:\n{call}\n\nOne moment, please.",
        f"<think>The user wants one thing only.</think>\n{call}",
    )


def prose_call(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in call syntax, or as ReAct writes it."""
    python, as_json = python_call(name, arguments), json.dumps(arguments, ensure_ascii=False)
    return (
        f"Thought: I need the tool for this.\nAction: {name}\nAction Input: {as_json}\nObservation:",
        f"I'll run the tool now:\n\n{python}",
        f"**Action:** {name}\n**Action Input:** {as_json}",
        f"Thought: simple enough.\nAction: {python}",
        f"Next step:\n{script_call(name, arguments)}",
    )


def xml(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in tags."""
    as_json = json.dumps(arguments, ensure_ascii=False)
    bare, lines = tags(arguments, "  <{key}>{value}</{key}>"), tags(arguments, '  <arg name="{key}">{value}</arg>')
    return (
        bare and f"<tool_call>\n<tool_name>{name}</tool_name>\n<parameters>\n{bare}\n</parameters>\n</tool_call>",
        bare and f"Sure.\n\n<{name}>\n{bare}\n</{name}>",
        lines and f'<tool name="{name}">\n{lines}\n</tool>',
        f'<function name="{name}">{as_json}</function>',
        bare and f'<tool_call name="{name}">\n{bare}\n</tool_call>',
    )


def fence(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a call in a fence."""
    wide = dumped(name, arguments, indent=2)
    return (
        f"```json\n{wide}\n```\n\nThis call does what you asked for.",
        f"Here is the call:\n\n```python\n{python_call(name, arguments)}\n```",
        f"~~~json\n{wide}\n~~~",
        f"```\n{dumped(name, arguments)}\n",
        f"```javascript\n{dumped(name, arguments)}\n```",
    )


def json_keys(name: str, arguments: dict[str, Any]) -> tuple[str | None, ...]:
    """Return a JSON call with other keys than name and arguments."""
    forms: tuple[Any, ...] = (
        {"tool": name, "input": arguments},
        {"function_name": name, "function_args": arguments},
        {"action": {"tool": name, "parameters": arguments}},
        [{"name": name, "params": arguments}],
        {"type": "tool_use", "id": "tu_1", "name": name, "input": arguments},
        {"command": name, "args": arguments},
    )
    return tuple(json.dumps(form, ensure_ascii=False) for form in forms)


TEXT_FORMS: Final[dict[str, Callable[[str, dict[str, Any]], tuple[str | None, ...]]]] = {
    "prose-json": prose_json,
    "prose-call": prose_call,
    "xml": xml,
    "fence": fence,
    "json-keys": json_keys,
}
