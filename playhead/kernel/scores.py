"""A score out of what a model wrote, where a whole number from 0 to 10 was asked for."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 2_000
"""Characters that are read of an answer that should be one number."""
_NUMBER: Final = r"[-+]?\d{1,6}(?:\.\d{1,6})?"
_SHARE: Final = re.compile(rf"({_NUMBER}) ?(?:/|out of) ?(\d{{1,4}})(?!\d|\.\d)")
_PERCENT: Final = re.compile(rf"({_NUMBER}) ?%")
_NAMED: Final = re.compile(
    rf"\b(?:score|rating)\b[ \t*_\"'`]{{0,5}}(?::|=|is|of)[ \t*_\"'`]{{0,5}}({_NUMBER})", re.IGNORECASE
)
_ANY: Final = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w%])")


def read_score(text: str) -> float | None:
    """Return the score as a share, 0 to 1; None when the text does not say one, or more than one.

    `7`, `Score: 7`, `7/10`, `7 out of 10` and `70 %` are 0.7; so is `0.7`, for no score of ten has decimals and is below one.
    What lies outside of the scale is moved to its end.
    """
    text = text[:LONGEST]
    for values in (_shares(text), _percents(text), _tenths(_NAMED, text), _tenths(_ANY, text)):
        if values:
            return _clamped(values.pop()) if len(values) == 1 else None
    return None


def _shares(text: str) -> set[float]:
    return {float(value) / float(whole) for value, whole in _SHARE.findall(text) if float(whole)}


def _percents(text: str) -> set[float]:
    return {float(value) / 100 for value in _PERCENT.findall(text)}


def _tenths(pattern: re.Pattern[str], text: str) -> set[float]:
    return {_as_share(value) for value in pattern.findall(text)}


def _as_share(number: str) -> float:
    value = float(number)
    return value if "." in number and 0 <= value <= 1 else value / 10


def _clamped(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 4)
