"""The words that debriefs know, from `vocabulary.toml`, and functions that find words in texts."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

KEY: Final = re.compile(r"[\w.+-]+@[\w.-]+\w|[\w/-]+\.[a-z]{1,4}\b|(?=[^\W_-]*-?[^\W_]*\d)[^\W_]+(?:[-/.][^\W_]+)*")
"""An identifier: an address, a file name, or a word with a digit."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}")


@cache
def vocabulary() -> dict[str, Any]:
    """Return the vocabulary."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def words(*tables: list[str]) -> str:
    """Return a pattern for any of the words."""
    return "|".join(each for table in tables for each in table) or "(?!)"


@cache
def sign(name: str) -> re.Pattern[str]:
    """Return the pattern for a list in `[words]`; it applies to texts from `plain`."""
    return re.compile(rf"\b(?:{words(vocabulary()['words'][name])})(?!\w)", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with the kind of apostrophe that the vocabulary uses."""
    return text.replace("'", "\u2019")


def keys_and_words(text: str) -> set[str]:
    """Return the identifiers and words of a text in lower case, and file names also without their folders."""
    keys = KEY.findall(text.lower())
    return {*keys, *(key.rpartition("/")[2] for key in keys), *_WORD.findall(text.lower())}


UNITS: Final = {
    word: (kind, factor)
    for kind, units in vocabulary()["units"].items()
    for written, factor in units.items()
    for word in written.split()
}
"""What each unit measures, and its size in the base unit, by its lower-case names."""
