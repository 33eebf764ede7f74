"""References to results of other steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.plan.steps import misspelled, resolved

RESULTS: dict[str, Any] = {"s1": {"n": [1, 2]}, "s2": "x" * 900, "s3": 7}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{from_step:s3}}", 7),
        (" {{ from_step : s1 }} ", {"n": [1, 2]}),
        ("n is {{from_step:s3}} of {{from_step:s1}}", 'n is 7 of {"n": [1, 2]}'),
        ({"a": ["{{from_step:s3}}", {"b": "<{{from_step:s3}}>"}], "c": 1}, {"a": [7, {"b": "<7>"}], "c": 1}),
        ("{{name}} {s3}", "{{name}} {s3}"),
        ([], []),
    ],
)
def test_results_take_the_place_of_references(value: Any, expected: Any):
    """A text that is nothing but a reference becomes the result with its type; inside other text it is written as text."""
    assert resolved(value, RESULTS) == expected


@pytest.mark.parametrize(
    "text",
    ["{{from_step:s1.n}}", "{{from_step:s1:first}}", "{{from_step:s1}", "{{from_step}}", "{{s1}}", "{{ s1.result }}"],
)
def test_what_only_looks_like_a_reference_is_found(text: str):
    """It is named, wherever it stands, so that the plan it is in is refused."""
    assert misspelled("{{from_step:s1}}", {"a": [f"{{{{name}}}} {text}"]}) == text


@given(JSON)
def test_a_result_is_never_read_for_references(result: Any):
    """Whatever a result holds, references included, is put in as it is."""
    hostile = {"s1": "{{from_step:s2}}", "s2": result}
    assert resolved("{{from_step:s1}}", hostile) == "{{from_step:s2}}"
    assert resolved("<{{from_step:s1}}>", hostile) == "<{{from_step:s2}}>"
    assert resolved(["{{from_step:s2}}"], hostile) == [result]
