from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.context.shelf import LONGEST_PARSED, preview_of

PEOPLE = [
    {"name": f"n{number}", "age": number, "home": {"city": "Oslo", "zip": {"code": number}}} for number in range(30)
]


def preview(value: Any, budget: int = 800, items: int = 3) -> str:
    """Return a preview under the first key."""
    text = value if isinstance(value, str) else json.dumps(value)
    return preview_of(text, key="_tool_result_1", tool="web-search", budget=budget, items=items)


def test_a_list():
    """Kind and schema, the first items, how many are left, and how to read on."""
    assert preview(PEOPLE) == (
        "[STORED: _tool_result_1 | web-search]\n"
        "Type: Array(30) | Schema: name, age, home\n"
        '[0] {"name": "n0", "age": 0, "home": {"city": "Oslo", "zip": {"code": 0}}}\n'
        '[1] {"name": "n1", "age": 1, "home": {"city": "Oslo", "zip": {"code": 1}}}\n'
        '[2] {"name": "n2", "age": 2, "home": {"city": "Oslo", "zip": {"code": 2}}}\n'
        '…27 more: recall(key="_tool_result_1")'
    )


def test_a_list_with_little_room():
    """The lines share what there is; the key and what is left always stand."""
    assert preview(PEOPLE, budget=200) == (
        "[STORED: _tool_result_1 | web-search]\n"
        "Type: Array(30) | Schema: name, age, home\n"
        '[0] {"name": "n0", "age":…\n'
        '[1] {"name": "n1", "age":…\n'
        '[2] {"name": "n2", "age":…\n'
        '…27 more: recall(key="_tool_result_1")'
    )


def test_an_object():
    """Its fields, those with much in them cut."""
    value = {"title": "T", "tags": ["a"] * 7, "meta": {"a": {"b": {"c": 1}}}, "body": "word " * 300, "none": None}
    assert preview(value, budget=300) == (
        "[STORED: _tool_result_1 | web-search]\n"
        "Type: Object(5 fields)\n"
        'title: "T"\n'
        'tags: ["a", "a", "a", "a", "a", "a", …\n'
        'meta: {"a": {"b": {"c": 1}}}\n'
        'body: "word word word word word word …\n'
        "none: null\n"
        '…all of it: recall(key="_tool_result_1")'
    )


def test_a_text():
    """Its length and its beginning, as it stands."""
    text = "".join(f"line {number}\n" for number in range(200))
    shown = preview(text, budget=200)
    head, kind, *begin, last = shown.split("\n")
    assert (head, kind) == ("[STORED: _tool_result_1 | web-search]", f"Type: Text({len(text)} characters)")
    assert text.startswith("\n".join(begin).removesuffix("…"))
    assert last == '…all of it: recall(key="_tool_result_1")'
    assert len(shown) <= 200


@pytest.mark.parametrize("text", [json.dumps(PEOPLE), f"  {json.dumps(PEOPLE)}\n"])
def test_a_text_that_is_json(text: str):
    """Is shown as what it says."""
    assert preview(text) == preview(PEOPLE)


@pytest.mark.parametrize(
    "text", ["[1, 2", "{'a': 1}", "[" * 100_000, "plain", "", '"[1]"', "[" + " " * LONGEST_PARSED + "1]"]
)
def test_a_text_that_is_none(text: str):
    """Stays a text, however hard it looks like JSON."""
    assert preview(text).split("\n")[1] == f"Type: Text({len(text)} characters)"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=90), inner, max_size=40),
    max_leaves=60,
)


@given(
    json_values | st.text(max_size=3000),
    st.integers(200, 2000),
    st.integers(1, 20),
    st.text("abcdefghijk-_", min_size=1, max_size=64),
)
def test_it_never_exceeds_its_budget(value: Any, budget: int, items: int, tool: str):
    """Whatever the result is, the preview fits, and says under which key all of it is."""
    text = value if isinstance(value, str) else json.dumps(value)
    shown = preview_of(text, key="_tool_result_12345", tool=tool, budget=budget, items=items)
    assert len(shown) <= budget
    assert shown.startswith(f"[STORED: _tool_result_12345 | {tool}]\n")
    assert 'recall(key="_tool_result_12345"' in shown.rpartition("\n")[2]
