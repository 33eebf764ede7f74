"""Mechanisms that mend many kinds of calls at once, and for each the calls that it must not touch; tools of their own."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.json_reading import value_at
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}


def _object(known: dict[str, Any], needed: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": known, "required": needed, "additionalProperties": False}


def _spec(
    name: str, description: str, known: dict[str, Any], needed: list[str], *, read_only: bool = False
) -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters=_object(known, needed), read_only=read_only)


DISH: Final = _object({"dish": TEXT, "count": {**WHOLE, "minimum": 1}, "size": {**TEXT, "enum": ["small", "regular", "large"]}}, ["dish", "count"])  # fmt: skip
ADDRESS: Final = _object({"street": TEXT, "city": TEXT}, ["street", "city"])
SPECS: Final = {
    spec.name: spec
    for spec in (
        _spec("order_meal", "Order a meal.", {"restaurant_id": TEXT, "dishes": {"type": "array", "items": DISH}, "deliver_at": {**TEXT, "pattern": "^[0-2][0-9]:[0-5][0-9]$"}}, ["restaurant_id", "dishes"]),
        _spec("set_thermostat", "Set the thermostat of a room.", {"room": {**TEXT, "enum": ["kitchen", "living_room"]}, "celsius": {"type": "number"}, "mode": {**TEXT, "enum": ["heat", "cool", "off", "auto"]}}, ["room", "celsius"]),
        _spec("list_invoices", "List invoices.", {"customer": TEXT, "status": {**TEXT, "enum": ["open", "paid", "overdue"]}}, [], read_only=True),
        _spec("delete_invoice", "Delete an invoice.", {"invoice_no": WHOLE, "reason": TEXT}, ["invoice_no"]),
        _spec("review_pull_request", "Review a pull request.", {"repository": TEXT, "pull_request": WHOLE, "verdict": {**TEXT, "enum": ["approve", "comment"]}}, ["repository", "pull_request", "verdict"]),
        _spec("comment_on_file", "Comment on a file of a pull request.", {"file": TEXT, "line": WHOLE, "text": TEXT}, ["file", "line", "text"]),
        _spec("ship_parcel", "Ship a parcel.", {"shipping_address": ADDRESS, "service": {**TEXT, "enum": ["standard", "express", "overnight"]}}, ["shipping_address", "service"]),
        _spec("create_user", "Create a user.", {"username": {**TEXT, "pattern": "^[a-z0-9_]+$"}, "role": {**TEXT, "enum": ["admin", "user"]}}, ["username", "role"]),
        _spec("search_notes", "Search notes.", {"query": TEXT, "tags": {"type": "array", "items": {**TEXT, "enum": ["work", "home"]}}, "pages": {"type": "array", "items": WHOLE}}, ["query"], read_only=True),
        _spec("pay", "Pay.", {"iban": {**TEXT, "pattern": "^[A-Z]{2}[0-9]{14,20}$"}, "currency": {**TEXT, "pattern": "^[A-Z]{3}$"}}, ["iban", "currency"]),
        _spec("change_stock", "Adjust the article stock.", {"sku": TEXT, "quantity_delta": WHOLE}, ["sku", "quantity_delta"]),
        _spec("give_dose", "Give a dose.", {"patient": TEXT, "dose": _object({"amount": {"type": "number"}, "unit": {**TEXT, "enum": ["mg", "ml"]}}, ["amount", "unit"])}, ["patient", "dose"]),
    )
}  # fmt: skip
SOUP: Final = {"dish": "soup", "count": 1}
HOUSE: Final = {"street": "a", "city": "b"}
IBAN: Final = "DE1234567890123456"
READ: Final[list[tuple[str, Any, str, dict[str, Any]]]] = [
    ("set_thermostat", {"room": "Living Room", "celsius": "'20.5'", "mode": "HEAT mode"}, "set_thermostat", {"room": "living_room", "celsius": 20.5, "mode": "heat"}),
    ("order_meal", {"restaurant_id": "r", "dishes": [{"Dish": "soup", "qty": "1"}], "deliver_at": "7:30 pm"}, "order_meal", {"restaurant_id": "r", "dishes": [SOUP], "deliver_at": "19:30"}),
    ("order_meal", {"restaurant_id": "r", "dishes": [SOUP], "deliver_at": "9:05"}, "order_meal", {"restaurant_id": "r", "dishes": [SOUP], "deliver_at": "09:05"}),
    ("pay", {"iban": "de12 3456 7890 1234 56", "currency": "eur"}, "pay", {"iban": IBAN, "currency": "EUR"}),
    ("review_pull_request", {"repo": "a", "pr_no": "PR #5", "verdict": "Approve"}, "review_pull_request", {"repository": "a", "pull_request": 5, "verdict": "approve"}),
    ("add_pull_request_review", {"repository": "a", "pull_request": 5, "verdict": "approve"}, "review_pull_request", {"repository": "a", "pull_request": 5, "verdict": "approve"}),
    ("comment_on_pull_request_file", {"file": "a", "line": " 5", "text": "b"}, "comment_on_file", {"file": "a", "line": 5, "text": "b"}),
    ("delete_invoice", {"invoice_number": "#7"}, "delete_invoice", {"invoice_no": 7}),
    ("get_invoices_list", {"customer": "a"}, "list_invoices", {"customer": "a"}),
    ("get_list_of_invoices", {"customer": "a"}, "list_invoices", {"customer": "a"}),
    ("delete_invoice", {"__arg1": '{"invoice_no": 7}'}, "delete_invoice", {"invoice_no": 7}),
    ("delete_invoice", {"tool_call_input": {"invoice_no": 7}}, "delete_invoice", {"invoice_no": 7}),
    ("delete_invoice", {"recipient_name": "functions.delete_invoice", "parameters": {"invoice_no": 7}}, "delete_invoice", {"invoice_no": 7}),
    ("<tool_call>delete_invoice</arg_value>", {"invoice_no": 7}, "delete_invoice", {"invoice_no": 7}),
    ("google:tool:delete_invoice:index:0", {"invoice_no": 7}, "delete_invoice", {"invoice_no": 7}),
    ("search_notes", {"query": "a", "tags": "work & home", "pages": "1, 2 and 3"}, "search_notes", {"query": "a", "tags": ["work", "home"], "pages": [1, 2, 3]}),
    ("delete_invoice", '{"invoice_no": 7, reason": "dup"}""', "delete_invoice", {"invoice_no": 7, "reason": "dup"}),
    ("delete_invoice<arg_key>invoice_no</arg_key><arg_value>7</arg_value>", {}, "delete_invoice", {"invoice_no": 7}),
    ("give_dose", {"patient": "p", "dosis": {"amount": 4, "unit": "mg"}}, "give_dose", {"patient": "p", "dose": {"amount": 4, "unit": "mg"}}),
    ("give_dose", {"patient": "p", "dose": {"amount": 4, "unit": "mg", "comment": "the usual"}}, "give_dose", {"patient": "p", "dose": {"amount": 4, "unit": "mg"}}),
    ("change_stock", {"sku": "a", "qty_delta": -3}, "change_stock", {"sku": "a", "quantity_delta": -3}),
    ("adjust_article_stock", {"sku": "a", "quantity_delta": -3}, "change_stock", {"sku": "a", "quantity_delta": -3}),
    ("delete_invoice", {"reason": 'dup</reason>\n<parameter name="invoice_no">7</parameter>'}, "delete_invoice", {"invoice_no": 7, "reason": "dup"}),
]  # fmt: skip
REFUSED: Final[list[tuple[str, Any]]] = [
    ("set_thermostat", {"room": "kitchen or living room", "celsius": 20}),
    ("set_thermostat", {"room": "not kitchen", "celsius": 20}),
    ("set_thermostat", {"room": "kitchen door", "celsius": 20}),
    ("set_thermostat", {"room": "kitchen", "celsius": 20, "mode": "auto off mode"}),
    ("set_thermostat", {"room": "kitchen", "celsius": 20, "mode": "no heat mode"}),
    ("ship_parcel", {"shipping_address": HOUSE, "service": "express overnight"}),
    ("ship_parcel", {"billing_address": HOUSE, "service": "standard"}),
    ("create_user", {"username": "Jane Doe", "role": "user"}),  # glued or with an underscore?
    ("create_user", {"username": "jane", "role": "admin assistant"}),
    ("pay", {"iban": "12 34", "currency": "EUR"}),
    ("order_meal", {"restaurant_id": "r", "dishes": [SOUP], "deliver_at": "9"}),  # of which half of the day?
    ("order_meal", {"restaurant_id": "r", "dishes": [{**SOUP, "comment": "no salt"}]}),
    ("review_pull_request", {"repository": "a", "pr": "#5 and #6", "verdict": "approve"}),
    ("delete_invoice", {"invoice_no": "line 7"}),
    ("delete_invoice", {"invoice_no": "7 of 9"}),
    ("delete_invoice", {"example": {"invoice_no": 7}}),
    ("delete_invoice", {"previous_input": {"invoice_no": 7}}),
    ("delete_invoice", {"invoice_no": 7, "_input": {"invoice_no": 8}}),
    ("delete_invoice", {"recipient_name": "functions.list_invoices", "parameters": {"invoice_no": 7}}),
    ("delete_invoice</tool><x>do not</x>", {"invoice_no": 7}),
    ("add_review_of_request", {"repository": "a", "pull_request": 5, "verdict": "approve"}),
    ("remove_pull_request_review", {"repository": "a", "pull_request": 5, "verdict": "approve"}),
    ("delete_invoice_list", {"invoice_no": 7}),
    ("get_invoice_list_total", {"customer": "a"}),
    ("search_notes", {"query": "a", "tags": "work or home"}),
    ("search_notes", {"query": "a", "tags": "all but work"}),
    ("search_notes", {"query": "a", "pages": "1 to 3"}),
    ("list_invoices", {"__arg1": "overdue"}),
    ("change_stock", {"sku": "a", "quantity": 40}),  # what there is then, or how much is added?
    ("adjust_stock", {"sku": "a", "quantity_delta": 40}),
    ("give_dose", {"patient": "p", "rate": {"amount": 4, "unit": "mg"}}),
    ("give_dose", {"patient": "p", "dose": {"amount": 4, "unit": "mg", "comment": "only if in pain"}}),
    ("delete_invoice", {"reason": 'dup</reason>\n<parameter name="force">true'}),
    ("delete_invoice", {"reason": 'dup</b>\n<parameter name="invoice_no">7'}),
]  # fmt: skip
IN_TEXT: Final = [
    "<tool_call>delete_invoice\n<arg_key>invoice_no</arg_value>\n<arg_value>7</arg_value></tool_call>",
    "I will delete it.\n\n<tool_call>delete_invoice\n<tool_call>invoice_no</arg_key>\n<arg_value>7</arg_value>\n</tool_call>",
    "<tool_call>delete_invoice invoice_no</arg_key><arg_value>7</arg_value></tool_call>",
    "<parameter=delete_invoice>\n<parameter=invoice_no>\n7\n</parameter>\n</function>",
    '<function=delete_invoice={"invoice_no": 7}</function>',
    "<tool_name>delete_invoice</tool_name>\n<invoice_no>7</invoice_no>",
    "```tool\nTOOL_NAME: delete_invoice\nBEGIN_ARG: invoice_no\n7\nEND_ARG\n```",
    "<delete_invoice>\ninvoice_no: 7\n</delete_invoice>",
    'Nothing was found so far. Now I delete it:\n\n{"name": "delete_invoice", "arguments": {"invoice_no": 7}}',
    '<tool_call>delete_invoice\ninvoice_no: "7"\n</tool_call>',
    '<function(delete_invoice)>{"invoice_no": 7}</function>',
    "<|tool_call_start|>[delete_invoice(invoice_no=7)]<|tool_call_end|>",
]
NOT_IN_TEXT: Final = [
    "The record of the last session:\n\n```\ndelete_invoice(invoice_no=1)\ndelete_invoice(invoice_no=2)\n```",
    "Excerpt from the audit trail:\n\ndelete_invoice(invoice_no=1)\n\ndelete_invoice(invoice_no=2)",
    'Actions taken:\n```json\n{"name": "delete_invoice", "arguments": {"invoice_no": 1}}\n```\nDone.',
    "Completed calls:\n\ndelete_invoice(invoice_no=1)\ndelete_invoice(invoice_no=2)\n\nBoth are gone.",
    '{"name": "delete_invoice", "arguments": {"invoice_no": 1}, "status": "done"}',
    "<tool_call>delete_invoice reason</arg_key><arg_value>dup</arg_value></tool_call>",
    "<tool_call>list_invoices customer</arg_key><arg_value>A <name> B</arg_value></tool_call>",
    "<tool_call>list_invoices customer</arg_key><arg_value>A",
    "I will not call it: <tool_call>list_invoices customer</arg_key><arg_value>A</arg_value></tool_call>",
    "<tool_call>delete_invoice\n<arg_key>invoice_no</arg_value>\n7</arg_value>\nreason: dup</tool_call>",
    "<tool_call>list_invoices\n<tool_call>customer</arg_key>\n<arg_value></arg_value>\n<arg_key>status</arg_key>\n<arg_value>open</arg_value>\n</tool_call>",
    "Write it so:\n```tool\nTOOL_NAME: delete_invoice\nBEGIN_ARG: invoice_no\n7\nEND_ARG\n```\nand it is gone.",
    "<delete_invoice>\ninvoice_no: 7\nand only if it is paid\n</delete_invoice>",
    "<delete_invoice>\ninvoice_no: 7\nforce: true\n</delete_invoice>",
    "<delete_invoice>\ninvoice_no: 7\nreason: |\n  two\n</delete_invoice>",
    "The tool is called with TOOL_NAME: delete_invoice and an invoice_no. Which one?",
]


@pytest.mark.parametrize(("name", "written", "tool", "arguments"), READ, ids=[str(place) for place in range(len(READ))])
def test_a_call_with_one_reading_is_read(name: str, written: Any, tool: str, arguments: dict[str, Any]):
    """A spelling, a name, a wrapper or a tag that can mean one thing only is read so."""
    healed = heal(name, written, SPECS)
    assert (healed.name, healed.arguments) == (tool, arguments)


@pytest.mark.parametrize(("name", "written"), REFUSED, ids=[str(place) for place in range(len(REFUSED))])
def test_a_call_that_would_have_to_be_guessed_is_refused(name: str, written: Any):
    """What says another thing, or may say two, runs nothing."""
    healed = heal(name, written, SPECS)
    assert healed.arguments is None, json.dumps(healed.arguments)


@pytest.mark.parametrize("text", IN_TEXT, ids=[str(place) for place in range(len(IN_TEXT))])
def test_a_call_in_broken_tags_is_read(text: str):
    """Where names and values stand by turns between tags, the tags may be any."""
    healed = [heal(call.name or "", call.arguments, SPECS) for call in read_calls(text, SPECS)[0]]
    assert [(each.name, each.arguments) for each in healed] == [("delete_invoice", {"invoice_no": 7})]


@pytest.mark.parametrize("text", NOT_IN_TEXT, ids=[str(place) for place in range(len(NOT_IN_TEXT))])
def test_what_was_called_or_is_not_whole_is_no_call(text: str):
    """A record of calls is none, for its first line and all that follow; nor is a call of which something would be lost."""
    healed = [heal(call.name or "", call.arguments, SPECS) for call in read_calls(text, SPECS)[0]]
    assert [each.arguments for each in healed if each.arguments is not None] == []


def test_a_status_that_is_an_argument_is_no_record():
    """Beside the arguments, a field of the tool's own is one of them, whatever it says."""
    spec = _spec(
        "close_task",
        "Close a task.",
        {"task": TEXT, "status": {**TEXT, "enum": ["done", "failed"]}},
        ["task", "status"],
    )
    text = '{"name": "close_task", "arguments": {"task": "a"}, "status": "done"}'
    calls = read_calls(text, {"close_task": spec})[0]
    assert [heal(each.name or "", each.arguments, {"close_task": spec}).arguments for each in calls] == [
        {"task": "a", "status": "done"}
    ]


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ('{"a": 1, b": 2} and', {"a": 1, "b": 2}, " and"),
        ('{a": "x, b\\": 1", c": 2}!', {"a": 'x, b": 1', "c": 2}, "!"),
    ],
)
def test_a_key_with_one_quote(text: str, value: Any, rest: str):
    """The quote before a key may be missing; what stands in strings stays, and the place where the value ends is that of the text."""
    found = value_at(text, 0)
    assert found is not None
    assert (found[0], text[found[1] :]) == (value, rest)
