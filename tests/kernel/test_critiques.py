"""Critiques: every way in which critics say yes and no."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.kernel.critiques import Judgement, critique_prompt, read_judgement


@pytest.mark.parametrize(
    ("said", "satisfied", "share", "text"),
    [
        ('{"issues": ["a", "b"], "suggestion": "c", "score": 4, "satisfied": false}', False, 0.4, "- a\n- b\nc"),
        ('{"issues": [], "score": 10, "satisfied": true}', True, 1.0, "Nothing is wrong with it."),
        ('{"satisfied": false}', False, None, "No reason was given."),
        ('Well:\n```json\n{"satisfied": true, "score": 8.5}\n```', True, 0.85, "Nothing is wrong with it."),
        ('{"issues": ["a"], "confidence": 0.9, "satisfactory": true}', True, 0.9, "- a"),
        ('{"verdict": "accept", "critique": "fine"}', True, None, "fine"),
        ('{"verdict": "Retry", "critique": "wrong"}', False, None, "wrong"),
        ('{"score": 9, "issues": "none of it holds", "needs_revision": true}', False, 0.9, "- none of it holds"),
        ('{"needs_revision": false, "issues": null, "suggestion": null}', True, None, "Nothing is wrong with it."),
        ('{"accepted": true, "feedback": "good"}', True, None, "good"),
        ('{"satisfied": true, "score": 70}', True, 1.0, "Nothing is wrong with it."),
        ('{"satisfied": false, "score": "8/10", "issues": [{"what": "a"}]}', False, 0.8, '- {"what": "a"}'),
        ('{"satisfied": false, "score": "high"}', False, None, "No reason was given."),
        ("SATISFIED: all is well", True, None, "all is well"),
        ("**SATISFIED:** all is well", True, None, "all is well"),
        ("It holds.\nSATISFIED", True, None, "It holds."),
        ("UNSATISFIED: 6 * 7 is 42", False, None, "- 6 * 7 is 42\n6 * 7 is 42"),
        ("NOT SATISFIED: it lacks a unit", False, None, "- it lacks a unit\nit lacks a unit"),
        ("SATISFIED: no - it lacks a unit", False, None, "- it lacks a unit\nit lacks a unit"),
        ("**SATISFIED:** False", False, None, "No reason was given."),
        ("SATISFIED: No. It lacks a unit", False, None, "- It lacks a unit\nIt lacks a unit"),
        ("SATISFIED: no faults were found", True, None, "no faults were found"),
        ("SATISFIED: yes, all is well", True, None, "yes, all is well"),
        ("SATISFIED: yes\nAll is well.\nSATISFIED", True, None, "yes\nAll is well.\nSATISFIED"),
    ],
)
def test_what_counts(said: str, satisfied: bool, share: float | None, text: str):
    """JSON in the words of several systems, and the signal in the first or the last line."""
    judged = read_judgement(said)
    assert judged is not None
    assert (judged.satisfied, judged.share, judged.text) == (satisfied, share, text)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "The answer is good.",
        "I am satisfied with this.",
        "SATISFIED with the first half.\nUNSATISFIED: the second half is wrong",
        "He wrote:\nSATISFIED: yes\nand that is wrong.",
        '{"score": 9}',
        '{"verdict": "maybe"}',
        '{"satisfied": "perhaps"}',
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
