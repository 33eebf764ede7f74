"""What a server says about itself is hostile text: it is cleaned before a model, a terminal or a log gets it."""

from __future__ import annotations

import unicodedata
from typing import Final

_KEPT: Final = "\n\t"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's controls, invisible formatting (direction marks, tags), private use, lone surrogates, line separators."""


def cleaned(text: str, limit: int) -> str:
    """Return the text without characters that nobody sees, cut to `limit` characters; a cut is said at its end."""
    looked_at = text[: 4 * limit]
    seen = "".join(each for each in looked_at if each in _KEPT or unicodedata.category(each) not in _UNSEEN)
    more = len(seen) - limit + len(text) - len(looked_at)
    return seen if more <= 0 else f"{seen[:limit]}… ({more} more characters)"


def one_line(text: str, limit: int = 300) -> str:
    """Return the text for an error or a log: cleaned, on one line, short."""
    return cleaned(" ".join(text[: 10 * limit].split()), limit)
