"""Broken calls are read where their structure has one reading, and refused with all their faults elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from playhead.kernel.repair.repair import is_healthy, repair
from playhead.trace.types import ToolSpec
from tests.proving import sample


def spec(name: str, properties: dict[str, Any], required: tuple[str, ...] = (), **fields: Any) -> ToolSpec:
    """Return a tool that takes these parameters and no others."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(**{"name": name, "description": "Do it.", "parameters": schema, **fields})


TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
LINE = {"type": "object", "properties": {"sku": TEXT, "quantity": NUMBER}, "required": ["sku", "quantity"]}
ORDER = spec(
    "create_order",
    {
        "customer_id": TEXT,
        "lines": {"type": "array", "items": LINE | {"additionalProperties": False}},
        "shipping": {
            "type": "object",
            "properties": {"method": {"enum": ["standard", "express"]}, "city": TEXT},
            "additionalProperties": False,
        },
        "due_date": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "tags": {"type": "array", "items": TEXT},
        "gift": {"type": "boolean", "default": False},
        "discount": {"type": "number"},
        "labels": {"type": "object", "additionalProperties": TEXT},
    },
    ("customer_id", "lines", "gift"),
)
READ = spec("read_file", {"path": TEXT, "start_line": NUMBER, "encoding": TEXT}, ("path",), read_only=True)
WRITE = spec("write_file", {"path": TEXT, "content": TEXT}, ("path", "content"))
TOOLS = {each.name: each for each in (ORDER, READ, WRITE)}
GOOD: dict[str, Any] = {"customer_id": "C-1", "lines": [{"sku": "A", "quantity": 2}], "gift": False}


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"customerId": "C-1", "customer_id": None}, {}),
        ({"custmer_id": "C-1", "customer_id": None}, {}),
        ({"lines": {"sku": "A", "quantity": 2}}, {}),
        ({"lines": '[{"sku": "A", "quantity": "2"}]'}, {}),
        ({"lines": [{"sku": "A", "qty": 2}]}, {}),
        ({"gift": None}, {}),
        ({"gift": "no"}, {}),
        ({"shipping": {"method": "EXPRESS"}}, {"shipping": {"method": "express"}}),
        ({"due_date": ""}, {}),
        ({"tags": "a,b"}, {"tags": ["a", "b"]}),
        ({"tags": "['a', 'b']"}, {"tags": ["a", "b"]}),
        ({"discount": "18.50"}, {"discount": 18.5}),
        ({"reasoning": "It was asked for."}, {}),
        ({"note": None, "cc": []}, {}),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_repaired_arguments(change: dict[str, Any], read: dict[str, Any]):
    """Names, shapes and values with one reading are repaired."""
    written = {name: item for name, item in {**GOOD, **change}.items() if item is not None or name == "gift"}
    found = repair("create_order", written, TOOLS)
    assert (found.arguments, found.faults) == ({**GOOD, **read}, ())
    assert found.steps


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"discount": "1,500"}, "discount: has to be number; it is 1,500"),
        ({"due_date": "03/04/2025"}, "due_date: has to be string, format date | null; it is 03/04/2025"),
        ({"gift": "maybe"}, "gift: has to be boolean; it is maybe"),
        ({"tags": "Ann, Bob"}, "tags: has to be a list; 'Ann, Bob' may be one item or several"),
        ({"shipping": {"method": "overnight"}}, 'shipping.method: has to be "standard" | "express"; it is overnight'),
        ({"lines": [{"sku": "A", "quantity": 0}]}, "lines[0].quantity: has to be integer, minimum 1; it is 0"),
        ({"lines": [{"sku": "A"}]}, "lines[0].quantity: is missing; it has to be integer, minimum 1"),
        ({"dry_run": True}, "dry_run: there is no such parameter."),
        ({"Gift": True}, "Gift: there is no such parameter. Did you mean 'gift'?"),
        ({"customer_id": None}, "customer_id: has to be string; it is null"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_refused_arguments(change: dict[str, Any], fault: str):
    """Arguments with no or two readings are refused; the fault names the place, the schema and the value."""
    found = repair("create_order", {**GOOD, **change}, TOOLS)
    assert found.arguments is None
    assert any(each.startswith(fault) for each in found.faults), found.faults


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"day": "2026-1-2"}, None),
        ({"day": " 2026-05-20 "}, {"day": "2026-05-20"}),
        ({"amount_cents": "50"}, {"amount_cents": 50}),
        ({"day": "2026-05-20T23:00:00Z"}, None),
        ({"day": "2026-05-20T00:00:00+02:00"}, None),
        ({"at": "7:30 PM"}, None),
        ({"amount_cents": "+50"}, None),
        ({"amount": 50}, None),
        ({"amount": "50"}, None),
    ],
    ids=str,
)
def test_days_and_amounts(written: dict[str, Any], read: dict[str, Any] | None):
    """A date has one reading or none; a number never changes its unit or sign."""
    properties = {
        "day": TEXT | {"format": "date"},
        "at": TEXT | {"pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        "amount_cents": NUMBER | {"description": "The price in cents."},
    }
    for read_only in (True, False):
        made = spec("move", properties, (), read_only=read_only)
        assert repair("move", written, {made.name: made}).arguments == read


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("readFile", "read_file"),
        ("functions.read_file", "read_file"),
        ("mcp__fs__read_file", "read_file"),
        ("file_read", None),
        ("read_fiel", None),
        ("peek_file", None),
        ("read_file_size", None),
        ("read_file<|channel|>commentary", "read_file"),
        ("", None),
    ],
)
def test_names_of_read_only_tools(written: str, meant: str | None):
    """A name may differ in case, separators or namespace, and in nothing else."""
    found = repair(written, {"path": "a"}, TOOLS)
    assert (found.name if found.arguments else None) == meant


def key_tool(name: str) -> ToolSpec:
    """Return a tool with side effects that takes a key."""
    return spec(name, {"key": TEXT}, ("key",))


@pytest.mark.parametrize(
    ("written", "offered", "meant"),
    [
        ("publishPage", ["publish_page"], "publish_page"),
        ("functions.publish_page", ["publish_page"], "publish_page"),
        ("publsih_page", ["publish_page"], None),
        ("delete_mesage", ["delete_message"], None),
        ("delete_fils", ["delete_file", "delete_files"], None),
        ("deploy_prod1", ["deploy_prod2"], None),
        ("close_account", ["clone_account"], None),
        ("update_content", ["update_context"], None),
        ("stop_instance", ["terminate_instance"], None),
        ("get_it", ["get-it", "getIt"], None),
    ],
)
def test_names_of_tools_with_side_effects(written: str, offered: list[str], meant: str | None):
    """A misspelled name of a tool with side effects is refused."""
    found = repair(written, {"key": "a"}, {name: key_tool(name) for name in offered})
    assert (found.name if found.arguments else None) == meant


# --- what holds for any call ------------------------------------------------------------------------------------------

SCALARS = st.sampled_from([
    TEXT, NUMBER, {"type": "number"}, {"type": "boolean"}, {"enum": ["low", "high"]}, {"type": "string", "format": "date"},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": ["string", "null"]}, {"type": "string", "pattern": "^[A-Z]{2}$"},
])  # fmt: skip
NAMES = st.sampled_from(
    ["path", "file_path", "query", "limit", "max_results", "start_date", "end_date", "tags", "kind"]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(NAMES, inner, max_size=3).map(
            lambda named: {
                "type": "object",
                "properties": named,
                "required": sorted(named)[:1],
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 50)
    | st.sampled_from(["", "a", "high", "5", "true", "DE", "2025-01-31", "a, b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("value"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=4)


@st.composite
def tool_and_arguments(draw: Any) -> tuple[ToolSpec, Any]:
    """Return a tool, and arguments that a model may have written for it."""
    properties = draw(OBJECTS)
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return spec("do_it", properties, tuple(required), read_only=draw(st.booleans())), draw(VALUES)


@pytest.mark.slow
@settings(max_examples=sample(300, 50), deadline=None)
@given(tool_and_arguments())
def test_a_repaired_call_fits_and_stays(made: tuple[ToolSpec, Any]):
    """A healthy call is never changed, a repaired one validates, and repairing it again changes nothing."""
    tool, written = made
    tools = {tool.name: tool}
    found = repair(tool.name, written, tools)
    if is_healthy(tool, written):
        assert (found.arguments, found.steps) == (written, ())
        return
    assert (found.arguments is None) == bool(found.faults)
    if found.arguments is not None:
        Draft202012Validator(tool.parameters).validate(found.arguments)
        again = repair(tool.name, found.arguments, tools)
        assert (again.arguments, again.steps) == (found.arguments, ())


@given(st.integers(0, 60))
def test_truncated_arguments_are_refused(cut: int):
    """Arguments truncated at any place are refused."""
    whole = json.dumps({"path": "notes/june.md", "content": "3 eggs, 200 g flour"})
    found = repair("write_file", whole[:cut], TOOLS).arguments
    assert found is None or whole.startswith(json.dumps(found).rstrip("}"))
