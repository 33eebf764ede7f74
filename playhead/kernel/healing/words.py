"""The words of a name: what of it may differ without another thing being meant."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from playhead.kernel.healing.synonyms import GROUPS as MORE_GROUPS
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, GROUPS, MODIFIERS

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_VOWELS: Final = frozenset("aeiou")
_BOUNDS: Final = ("min", "max")
_UNITS: Final = frozenset(
    ("ms", "us", "ns", "mm", "cm", "km", "kg", "mg", "lb", "oz", "mb", "gb", "kb", "tb", "hz", "kw", "ml", "ft", "mi")
)
"""Units of two letters, which are no abbreviations of words."""
MAX_NAME: Final = 120
"""Characters of a name that is looked at; a longer one is none."""


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in small letters: of `maxResults`, `max-results` and `Max results` the same."""
    return tuple(part.lower() for part in _PART.findall(name[:MAX_NAME]))


def folded(name: str) -> str:
    """Return a name without case and separators."""
    return _folded(name) if len(name) <= MAX_NAME else "".join(words(name))


@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    return "".join(words(name))


@lru_cache(maxsize=4096)
def singular(word: str) -> str:
    """Return the singular of a word, as far as its last letters tell."""
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - not of `ties`
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 2 else word  # noqa: PLR2004


def same_word(one: str, other: str) -> bool:
    """Return whether two words of parameters mean the same: one is the plural of the other, or they are used for each other."""
    if one == other or singular(one) == singular(other):
        return True
    return _share_group(one, other) or is_short_for(one, other) or is_short_for(other, one)


def _keeps_ends(short: str, word: str) -> bool:
    """Return whether a word that begins with a vowel may be shortened so: `appt` of `appointment`, `acct` of `account`."""
    has_consonants = len(short) >= 3 and _VOWELS.isdisjoint(short[1:])  # noqa: PLR2004 - two letters say nothing
    is_end = short[-1] == word[-1] and not word.endswith(short)
    return has_consonants and is_end and len(word) > 4 and not _is_word(short)  # noqa: PLR2004 - of a short word


@lru_cache(maxsize=4096)
def _is_word(short: str) -> bool:
    """Return whether a few letters are a word of their own."""
    known = MODIFIERS | ACTIONS | ATTRIBUTES | DIRECTIONS
    return short in known or any(short in group for group in GROUPS)


def expanded(own: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name with the words of another one in place of their first letters: `pr` of `pull_request`."""
    found: list[str] = []
    for word in own:
        runs = {other[place : place + len(word)] for place in range(len(other) - len(word) + 1)}
        meant = [run for run in runs if "".join(each[0] for each in run) == word]
        is_short = 2 <= len(word) <= 4 and word not in other and not _is_word(word)  # noqa: PLR2004 - first letters
        found += meant[0] if is_short and len(meant) == 1 else (word,)
    return tuple(found)


@lru_cache(maxsize=4096)
def _share_group(one: str, other: str) -> bool:
    ones, others = {one, singular(one)}, {other, singular(other)}
    return any(not ones.isdisjoint(group) and not others.isdisjoint(group) for group in (*GROUPS, *MORE_GROUPS))


def is_short_for(short: str, word: str) -> bool:
    """Return whether a word is the beginning of another one, or some of its consonants in their order."""
    if len(short) < 2 or len(short) >= len(word) or short[0] != word[0] or short in _UNITS:  # noqa: PLR2004 - a letter is no word
        return False
    if short in _BOUNDS:
        return word == f"{short}imum"  # no minutes
    stem = short[:-1] if len(short) > 3 and short.endswith("s") and word.endswith("s") else short  # noqa: PLR2004
    if len(stem) >= 3 and word.startswith(stem):  # noqa: PLR2004 - shorter ones begin too many words
        return True
    letters = iter(word)
    if short[0] in _VOWELS:
        return _keeps_ends(short, word) and all(letter in letters for letter in short)
    return not _VOWELS.intersection(short) and len(word) > 3 and all(letter in letters for letter in short)  # noqa: PLR2004
