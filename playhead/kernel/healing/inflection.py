"""Forms of one word: `laminate`, `laminated` and `lamination`; never who does it, `sender` of `send`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

LEAST: Final = 4
"""Letters of a stem."""
_ENDINGS: Final = (
    "ifications", "ification", "ifying", "ified", "ifies", "ify", "izations", "ization", "isation", "izing", "ized", "ize", "ise",
    "ements", "ement", "ments", "ment", "ations", "ation", "ating", "ated", "ates", "ate", "itions", "ition", "ions", "ion", "ances",
    "ance", "ences", "ence", "ings", "ing", "ied", "ies", "ed", "es", "e", "y", "s", "ly",
)  # fmt: skip


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return a word without the ending that only says its form."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST - ("if" in ending):
            rest = word[: -len(ending)]
            return rest[:-1] if len(rest) > LEAST and rest[-1] == rest[-2] and ending in ("ed", "ing", "ings") else rest
    return word


def is_form_of(one: str, other: str) -> bool:
    """Return whether two words are forms of one word."""
    return one == other or stem(one) == stem(other)
