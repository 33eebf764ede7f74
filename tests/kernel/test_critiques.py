"""Critiques: how critics say yes and no."""

from __future__ import annotations

import pytest

from playhead.kernel.strategies.reflexion import Judgement
from playhead.kernel.structured import read_form


@pytest.mark.parametrize(
    ("said", "satisfied", "share", "text"),
    [
        ('{"issues": ["a", "b"], "suggestion": "c", "score": 4, "satisfied": false}', False, 0.4, "- a\n- b\nc"),
        ('{"issues": [], "score": 10, "satisfied": true}', True, 1.0, "Nothing is wrong with it."),
        ('{"satisfied": false}', False, None, "No reason was given."),
        ('Well:\n```json\n{"satisfied": true, "score": 8.5}\n```', True, 0.85, "Nothing is wrong with it."),
        ('{"score": "9", "issues": ["none of it holds"], "satisfied": false}', False, 0.9, "- none of it holds"),
        ('{"satisfied": true, "score": 70}', True, 1.0, "Nothing is wrong with it."),
    ],
)
def test_what_counts(said: str, satisfied: bool, share: float | None, text: str):
    """JSON of the form, also between other words."""
    judged = read_form(said, Judgement)
    assert isinstance(judged, Judgement)
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
    assert isinstance(read_form(said, Judgement), str)
