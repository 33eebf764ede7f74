"""Critiques: how critics say yes and no."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.strategies.reflexion import Judgement, critique_prompt, read_judgement


@pytest.mark.parametrize(
    ("said", "satisfied", "share", "text"),
    [
        ('{"issues": ["a", "b"], "suggestion": "c", "score": 4, "satisfied": false}', False, 0.4, "- a\n- b\nc"),
        ('{"issues": [], "score": 10, "satisfied": true}', True, 1.0, "Nothing is wrong with it."),
        ('{"satisfied": false}', False, None, "No reason was given."),
        ('Well:\n```json\n{"satisfied": true, "score": 8.5}\n```', True, 0.85, "Nothing is wrong with it."),
        ('{"score": "9", "issues": ["none of it holds"], "satisfied": false}', False, 0.9, "- none of it holds"),
        ('{"satisfied": true, "score": 70}', True, 1.0, "Nothing is wrong with it."),
        ("SATISFIED: all is well", True, None, "all is well"),
        ("**SATISFIED:** all is well", True, None, "all is well"),
        ("SATISFIED", True, None, "Nothing is wrong with it."),
        ("UNSATISFIED: 6 * 7 is 42", False, None, "- 6 * 7 is 42\n6 * 7 is 42"),
        ("NOT SATISFIED: it lacks a unit", False, None, "- it lacks a unit\nit lacks a unit"),
        ("SATISFIED: yes, all is well", True, None, "yes, all is well"),
    ],
)
def test_what_counts(said: str, satisfied: bool, share: float | None, text: str):
    """JSON, and the signal at the beginning."""
    judged = read_judgement(said)
    assert judged is not None
    assert (judged.satisfied, judged.share, judged.text) == (satisfied, share, text)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "The answer is good.",
        "I am satisfied with this.",
        "SATISFIED: no - it lacks a unit",
        "**SATISFIED:** False",
        "SATISFIED: no faults were found",
        "It holds.\nSATISFIED",
        '{"satisfactory": true}',
        '{"needs_revision": false}',
        "SATISFIED with the first half.\nUNSATISFIED: the second half is wrong",
        "He wrote:\nSATISFIED: yes\nand that is wrong.",
        '{"score": 9}',
        '{"verdict": "maybe"}',
        '{"satisfied": "perhaps"}',
        '{"satisfied": false, "score": "high"}',
        '{"satisfied": false, "issues": "all of it"}',
        '{"satisfied": true, "score": NaN}',
        '{"satisfied"',
        "[]",
    ],
)
def test_what_does_not_count(said: str):
    """Nobody guesses a verdict: not from praise, not from a quote in the middle, not from a score alone."""
    assert read_judgement(said) is None


@given(st.text() | st.from_regex(r'\{"(satisfied|verdict|issues|score)": .*\}'))
def test_anything_can_be_read(said: str):
    """No text makes it raise."""
    judged = read_judgement(said)
    assert judged is None or isinstance(judged.text, str)


def test_a_hostile_text_takes_no_time():
    """Whatever a model writes is read in a moment."""
    began = time.perf_counter()
    for said in ("*" * 1_000_000, "\n" * 1_000_000, "{" * 1_000_000, "SATISFIE" * 100_000):
        read_judgement(said)
    assert time.perf_counter() - began < 3


def test_the_prompt():
    """Task and answer stand in it, and nothing that would be filled in once more."""
    deep, shallow = (critique_prompt("Say {x}.", "{y}", depth) for depth in ("deep", "shallow"))
    assert "Task:\nSay {x}.\n\nAnswer:\n{y}\n\n" in deep
    assert "2. Does it answer the whole task?" in deep
    assert "2. Does it answer the whole task?" not in shallow
    assert all(f'"{name}"' in shallow for name in Judgement.model_fields)
