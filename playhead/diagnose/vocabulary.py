"""The words that debriefs know, from `vocabulary.toml` beside this file, and how words are picked out of a text."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

KEY: Final = re.compile(r"[\w.+-]+@[\w.-]+\w|[\w/-]+\.[a-z]{1,4}\b|(?=[^\W_-]*-?[^\W_]*\d)[^\W_]+(?:[-/.][^\W_]+)*")
"""What identifies a thing: an address, a file, or a word with a digit."""
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
    """Return the pattern of a list of `[words]`, for texts that `plain` made."""
    return re.compile(rf"\b(?:{words(vocabulary()['words'][name])})(?!\w)", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with the one kind of apostrophe that the vocabulary has."""
    return text.replace("'", "\u2019")


def keys_and_words(text: str) -> set[str]:
    """Return the keys and the words of a text, in lower case, and the names of files without their folders."""
    keys = KEY.findall(text.lower())
    return {*keys, *(key.rpartition("/")[2] for key in keys), *_WORD.findall(text.lower())}


def form_of(key: str) -> str:
    """Return what kind of key it is: an address, so many digits, letters and digits, a file, or a word."""
    if key.isdecimal():
        return f"9{len(key)}"
    return "@" if "@" in key else "a9" if any(map(str.isdecimal, key)) else "f" if "." in key else "a"


UNITS: Final = {
    word: (kind, factor)
    for kind, units in vocabulary()["units"].items()
    for written, factor in units.items()
    for word in written.split()
}
"""What a unit measures and how many of the base unit it is, by each word for it in lower case."""
