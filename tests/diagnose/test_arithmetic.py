"""What follows from shown numbers by one step, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.diagnose.arithmetic import Operands
from playhead.diagnose.numbers import SeenNumbers, figures_of
from tests.proving import sample

MONTHS = [
    {"m": "Jan", "r": 1200, "open": True},
    {"m": "Feb", "r": 1350, "open": False},
    {"m": "Mar", "r": 1610, "open": True},
]


def unexplained(answer: str, *results: Any, asked: str = "") -> list[str]:
    """Return the figures of an answer that do not follow from the results of one tool, or from what the user asked."""
    operands, seen = Operands(), SeenNumbers()
    operands.ask(asked)
    seen.add(asked)
    for each in results:
        operands.add("tool", each)
        seen.add(str(each))
    return [each.written for each in operands.unexplained(list(figures_of(answer)), seen)]


@pytest.mark.parametrize(
    ("answer", "results", "asked"),
    [
        ("up 18,000, or 15%", [{"revenue": 120000}, {"revenue": 138000}], ""),
        ("the open ones make 2,810", [MONTHS], ""),
        ("the first was 1,200, then 12.5% more", [MONTHS], ""),
        ("at 12,50 € that is 3 100 €", [{"stock": 248}], "248 at 12,50 €?"),
        ("642 km or 399 miles", [{"km": 642}], ""),
        ("-4.5 °C is 24 °F", [{"c": -4.5}], ""),
        ("36 lines", ["\n".join(["word"] * 36)], ""),
        ("1.25 million, of which 35% are spent and 812,500 left", ["Budget: 1.250.000\nSpent: 437.500"], ""),
    ],
)
def test_follows(answer: str, results: list[Any], asked: str):
    """A sum, difference, product, ratio, share, average, count, unit or period, and a second step from a stated first one."""
    assert unexplained(answer, *results, asked=asked) == []


@pytest.mark.parametrize(
    ("answer", "results", "expected"),
    [
        ("up 23%", [{"revenue": 120000}, {"revenue": 138000}], ["23%"]),
        ("78.4% left", [{"requests": 1200000, "errors": 340}], ["78.4%"]),
        ("$81.20 on average", [{"orders": 412, "revenue": 30488.0}], ["81.20"]),
    ],
)
def test_does_not_follow(answer: str, results: list[Any], expected: list[str]):
    """A figure that no step gives."""
    assert unexplained(answer, *results) == expected


@settings(max_examples=sample(40, 8), deadline=None)
@given(st.lists(st.integers(13, 10**6), min_size=2, max_size=40, unique=True), st.data())
def test_any_two_stated_numbers(numbers: list[int], data: st.DataObject):
    """The sum of a column follows, and so does a step from two numbers that the answer states."""
    one, other = data.draw(st.permutations(numbers))[:2]
    assert unexplained(f"{sum(numbers):,}", [{"n": each} for each in numbers]) == []
    assert unexplained(f"{one} + {other} = {one + other:,}", [{"n": each} for each in numbers]) == []


@settings(max_examples=sample(40, 8), deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.text(),
)
def test_any_result_and_answer(result: Any, answer: str):
    """Nothing breaks it."""
    unexplained(answer, result)
