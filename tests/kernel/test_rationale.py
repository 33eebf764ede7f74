from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.rationale import parse_rationale, read_rationales, strip_rationales
from playhead.trace.types import Alternative, Rationale

HOSTILE = 100_000
"""Characters; no text of this length may take long, whatever is in it."""


def why(words: str, **fields: Any) -> Rationale:
    """Return a rationale."""
    return Rationale(why=words, **fields)


def block(words: str, call: str = "") -> str:
    """Return a block as a model writes it."""
    return f'<rationale{call}>{{"why": "{words}"}}</rationale>'


@pytest.mark.parametrize(
    ("text", "thinking", "expected"),
    [
        ("", None, {}),
        ("I look.", "hm", {}),
        (block("a"), None, {1: why("a")}),
        (block("a", ' call="1"'), None, {1: why("a")}),
        (block("a", " call='2'"), None, {2: why("a")}),
        (block("a", " call=3"), None, {3: why("a")}),
        (block("a", '\n call = "1" '), None, {1: why("a")}),
        ('<RATIONALE CALL="1">{"why": "a"}</Rationale >', None, {1: why("a")}),
        (f"So. {block('a')} Then {block('b')}.", None, {1: why("a"), 2: why("b")}),
        (block("b", ' call="2"') + block("a", ' call="1"'), None, {2: why("b"), 1: why("a")}),
        (block("a"), block("b"), {1: why("a"), 2: why("b")}),
        ("", block("a"), {1: why("a")}),
        (block("a", ' call="1"') + block("b", ' call="1"'), None, {1: why("a"), 2: why("b")}),
        (block("a", ' call="1"') * 3, None, {1: why("a"), 2: why("a"), 3: why("a")}),
        (block("b", ' call="2"') + block("c"), None, {2: why("b"), 3: why("c")}),
        ("<rationale>no json</rationale>" + block("b"), None, {2: why("b")}),
        ("<rationale>{'why': 'a'}</rationale>", None, {1: why("a")}),
        ('<rationale>```json\n{"why": "a"}\n```</rationale>', None, {1: why("a")}),
        ('<rationale>It is this: {"why": "a"} I think.</rationale>', None, {1: why("a")}),
        ('<rationale>"a"</rationale>', None, {}),
        ('<rationale>{"why": "{a} </b>"}</rationale>', None, {1: why("{a} </b>")}),
        ('<rationale>{"why": "a"}', None, {}),
        ('{"why": "a"}</rationale>', None, {}),
        (f"<rationale> {block('a')}", None, {1: why("a")}),
        ('<rationale call="x">{"why": "a"}</rationale>', None, {}),
        ("<rationale></rationale>", None, {}),
        (block("a", ' call="99999"'), None, {}),
        ('<rationales>{"why": "a"}</rationales>', None, {}),
    ],
)
def test_where_reasons_stand(text: str, thinking: str | None, expected: dict[int, Rationale]):
    """A block belongs to the call that it numbers or else to that of its place, counted through text and thinking."""
    assert read_rationales(text, thinking) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"why": "a"}, why("a")),
        ("a", why("a")),
        ({"why": "  a\n"}, why("a")),
        ({"why": "é" * 300}, why("é" * 280)),
        ({"why": "a", "confidence": 0}, why("a", confidence=0.0)),
        ({"why": "a", "confidence": 1}, why("a", confidence=1.0)),
        ({"why": "a", "confidence": 0.25}, why("a", confidence=0.25)),
        ({"why": "a", "confidence": 1.01}, why("a")),
        ({"why": "a", "confidence": -1}, why("a")),
        ({"why": "a", "confidence": "0.5"}, why("a")),
        ({"why": "a", "confidence": True}, why("a")),
        ({"why": "a", "confidence": float("nan")}, why("a")),
        ({"why": "a", "confidence": 10**400}, why("a")),
        ({"why": "a", "refs": ["obs:1", 5, "nowhere"]}, why("a", refs=("obs:1", "nowhere"))),
        ({"why": "a", "refs": "obs:1"}, why("a")),
        (
            {"why": "a", "alternatives": [{"option": "b", "rejectedBecause": "c"}]},
            why("a", alternatives=(Alternative(option="b", rejected_because="c"),)),
        ),
        (
            {"why": "a", "alternatives": [{"option": "b", "rejected_because": "c" * 160}]},
            why("a", alternatives=(Alternative(option="b", rejected_because="c" * 160),)),
        ),
        ({"why": "a", "alternatives": [{"option": "b", "rejected_because": "c" * 161}]}, why("a")),
        ({"why": "a", "alternatives": ["b", {}, {"option": 1, "rejected_because": "c"}, None]}, why("a")),
        ({"why": "a", "alternatives": {"option": "b"}}, why("a")),
        ({"why": "a", "mood": "good"}, why("a")),
        ({"why": "torn \ud800"}, why("torn \ufffd")),
        ({"why": ""}, None),
        ({"why": " \n"}, None),
        ({"why": 5}, None),
        ({}, None),
        ("", None),
        (None, None),
        ([{"why": "a"}], None),
        (True, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_a_reason_is(value: object, expected: Rationale | None):
    """What is too long is cut, what has the wrong type is left out, and without a reason in words there is none."""
    assert parse_rationale(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("I look.", "I look."),
        (f"{block('a')}I look.{block('b')}", "I look."),
        (f"I {block('a')}look.\n", "I look."),
        ("a </rationale> b", "a  b"),
        ('<rationale call="1">{"why": "a"}', '{"why": "a"}'),
        ("<RATIONALE call=1>x</RATIONALE>done", "done"),
        ("the rationale is <rationales>", "the rationale is <rationales>"),
        ("a < b > c", "a < b > c"),
    ],
)
def test_what_is_left_of_a_text(text: str, expected: str):
    """A thought is the text without its blocks and without tags left over from them."""
    assert strip_rationales(text) == expected


PIECES = [
    "<rationale>",
    '<rationale call="1">',
    "</rationale>",
    '{"why": "a"}',
    "{",
    "}",
    '"',
    "```",
    "\n",
    " ",
    "x",
    "\ud800",
]
any_text = st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(any_text, st.none() | any_text)
def test_no_text_does_harm(text: str, thinking: str | None):
    """Any text is read without an error, and what is left of it holds no block and no tag."""
    found = read_rationales(text, thinking)
    assert all(number >= 0 and len(each.why) <= 280 for number, each in found.items())
    left = strip_rationales(text)
    assert read_rationales(left, None) == {}
    assert "<rationale>" not in left


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["why", "refs", "confidence", "alternatives", "option", "rejected_because"]), inner)))  # fmt: skip
def test_no_value_does_harm(value: Any):
    """Any JSON value is read without an error, also as the body of a block."""
    expected = parse_rationale(value)
    written = json.dumps(value)
    if "</" not in written and isinstance(value, dict) and expected is not None:
        assert read_rationales(f"<rationale>{written}</rationale>", None) == {1: expected}


# --- hostile text ----------------------------------------------------------------------------------------------------

HOSTILE_PIECES = [
    "<rationale",
    "<rationale>",
    "<rationale ",
    '<rationale call="1"',
    '<rationale call="1">',
    "</rationale>",
    "</rationale ",
    "<rationale></rationale>",
    '<rationale call=1>"a"</rationale>',
    '<rationale>{"why":"a"}</rationale>',
    " ",
    "\n",
    "\t\n",
    "```",
    "{",
    "[",
]
