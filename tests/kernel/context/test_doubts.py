"""What can be doubted in an answer: numbers that came from nowhere, and the task said again."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.context.doubts import LONGEST_SOURCE, repeats_task, unfounded_numbers

TASK = "A rope is as long as Tower Vint is high. How many feet is that?"


@pytest.mark.parametrize(
    ("answer", "repeats"),
    [
        (TASK, True),
        ("a rope is as long as Tower Vint is HIGH", True),
        ("A rope is as long as Tower Vint is high, which is 1023.622 feet.", False),
        ("A rope", False),
        ("Tower Vint is high. How many feet is that?", False),
        ("", False),
    ],
    ids=["all", "its-first-sentence", "and-more", "too-short", "its-end", "nothing"],
)
def test_an_answer_that_only_repeats_the_task(answer: str, repeats: bool):
    """All of it, or its beginning; a few words may well be an answer."""
    assert repeats_task(answer, TASK) is repeats


@pytest.mark.parametrize(
    ("answer", "unfounded"),
    [
        ("Mount Zed is 4180 feet high.", []),
        ("It is 1274.064 metres, about 1274.06, or 1274.1.", []),
        ("It is 1,274.064 metres.", []),
        ("4,180 feet", []),
        ("It is 1260 metres.", ["1260"]),
        ("It is 1273 metres, and 527.85 miles.", ["1273", "527.85"]),
        ("In 40 days, 2000 times, 12 of them.", []),
        ("On 2025-01-04.", []),
        ("On 2031-01-04.", ["2031"]),
        ("From 3,141,592 to 3.141.592", ["3,141,592", "141", "592"]),
        ("none", []),
    ],
)
def test_a_number_that_no_source_holds(answer: str, unfounded: list[str]):
    """Rounded as the answer rounds it a number still is the one that was given; short ones may come from anywhere."""
    sources = [
        "How high is Mount Zed?",
        "Mount Zed is 4180 feet high.",
        '{"expression": "4180 * 0.3048"}',
        "1274.064",
        "2025-01-04",
    ]
    assert unfounded_numbers(answer, sources) == unfounded


def test_a_source_too_long_to_look_through():
    """It may hold any number."""
    assert unfounded_numbers("1260", ["x" * (LONGEST_SOURCE + 1)]) == []


@given(st.text(), st.lists(st.text()))
def test_any_text(answer: str, sources: list[str]):
    """Nothing raises, and what stands in a source is never doubted."""
    assert unfounded_numbers(answer, [*sources, answer]) == []
    repeats_task(answer, "".join(sources))


def test_hostile_text():
    """Costs no more than its length."""
    began = time.monotonic()
    fits = ["1." * 45_000, "9" * 90_000, "1234,567.123456789 " * 5_000]
    unfounded_numbers("123,456." * 100_000, fits)
    unfounded_numbers(" ".join(f"123.{'4' * places}" for places in range(1, 40)), fits)
    assert time.monotonic() - began < 2
