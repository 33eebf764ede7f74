"""How much of what came back is new: words of the newest results against those of all results before.

The share of new words is taken of the newest results alone. Jaccard's index, which divides by the words of both, sinks with
every result that is kept in mind, however new the next one is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_WORDS: Final = 8
"""Different words below which nothing can be said."""
MAX_CHARS: Final = 200_000
"""Characters of a turn that are looked at."""
_WORD: Final = re.compile(r"\w+")


class Novelty:
    """The words of all results so far; a turn costs as much as its own words, however many there are."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        """Share of new words below which a turn brought nothing new, 0 to 1."""
        self._known: set[str] = set()

    def share_of_new(self, texts: Iterable[str]) -> float | None:
        """Return the share of words that no turn before had; None for the first results, and for very short ones."""
        words = set(_words(texts))
        first = not self._known
        new = words - self._known
        self._known |= new
        return None if first or len(words) < MIN_WORDS else len(new) / len(words)

    def is_low(self, texts: Iterable[str]) -> float | None:
        """Return the share of new words when it is below the threshold, else None."""
        share = self.share_of_new(texts)
        return share if share is not None and share < self.threshold else None


def _words(texts: Iterable[str]) -> Iterable[str]:
    room = MAX_CHARS
    for text in texts:
        yield from _WORD.findall(text[:room].casefold())
        room -= min(len(text), room)
