"""Slips of the pen: a letter that is missing, doubled, swapped, or that of the next key."""

from __future__ import annotations

from functools import cache
from typing import Final

from playhead.kernel.healing.synonyms import GROUPS as MORE_GROUPS
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, GROUPS, MODIFIERS
from playhead.kernel.healing.words import singular

SHORT_WORD: Final = 4
"""Letters of a word in which two of them may be swapped."""
SWAPPED: Final = frozenset(("form", "from", "trail", "trial", "angle", "angel", "diary", "dairy", "untie", "unite", "cloud",
                             "could", "flies", "files", "tires", "tries", "casual", "causal", "calm", "clam"))  # fmt: skip
"""Words that are others when two letters are swapped."""
_LACKING: Final = frozenset(("county",))
"""Words that are others when a letter is added, and that no parameter is called by."""
LONG_WORD: Final = 5
"""Letters of a word that is hardly another word when one letter is that of the next key."""
_PLACES: Final = {
    letter: (row, place + row / 2)
    for row, letters in enumerate(("qwertyuiop", "asdfghjkl", "zxcvbnm"))
    for place, letter in enumerate(letters)
}


def is_plain_slip(written: str, meant: str) -> bool:
    """Return whether a short word has two letters swapped behind its first, or one three times: that is no other word."""
    if len(meant) < SHORT_WORD or written[0] != meant[0]:
        return False
    if len(written) == len(meant):
        return sorted(written) == sorted(meant) and written not in SWAPPED
    return any(letter * 3 in written for letter in {*written}) and not any(letter * 3 in meant for letter in {*meant})


def is_slip(written: str, meant: str, *, by_key: bool = True) -> bool:
    """Return whether a letter is missing, doubled, swapped or that of the next key, of words with a distance of one.

    The first letter is seldom that of the next key, and says most about which word it is.
    """
    if len(written) < len(meant) or sorted(written) == sorted(meant):
        return True
    if len(written) == len(meant):
        return by_key and written[0] == meant[0] and len(meant) >= LONG_WORD and all(map(_are_next, written, meant))
    doubled = [place for place in range(1, len(written)) if written[place] == written[place - 1]]
    return any(written[:place] + written[place + 1 :] == meant for place in doubled)


def _are_next(one: str, other: str) -> bool:
    """Return whether two letters are the same, or next to each other on the keyboard; its rows are shifted by half a key."""
    if one == other:
        return True
    if one not in _PLACES or other not in _PLACES:
        return False
    (row, place), (other_row, other_place) = _PLACES[one], _PLACES[other]
    return abs(row - other_row) <= 1 and abs(place - other_place) <= 1


def is_known(word: str) -> bool:
    """Return whether a word is one of those that are known, so that it is no slip for another."""
    return word in SWAPPED or bool({word, singular(word)} & _known_words())


@cache
def _known_words() -> frozenset[str]:
    return frozenset().union(*GROUPS, *MORE_GROUPS, MODIFIERS, ATTRIBUTES, ACTIONS) | _LACKING
