"""The words that debriefs know, from `vocabulary.toml` beside this file."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final


@cache
def vocabulary() -> dict[str, Any]:
    """Return the vocabulary."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def words(*tables: list[str]) -> str:
    """Return a pattern for any of the words."""
    return "|".join(each for table in tables for each in table) or "(?!)"


@cache
def sign(name: str) -> re.Pattern[str]:
    """Return the pattern of a list of `[words]`, for texts that `plain` made."""
    return re.compile(rf"\b(?:{words(vocabulary()['words'][name])})(?!\w)", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with the one kind of apostrophe that the vocabulary has."""
    return text.replace("'", "\u2019")


UNITS: Final = {
    word: (kind, factor)
    for kind, units in vocabulary()["units"].items()
    for written, factor in units.items()
    for word in written.split()
}
"""What a unit measures and how many of the base unit it is, by each word for it in lower case."""
