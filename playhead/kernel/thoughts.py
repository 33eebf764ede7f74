"""Lists of thoughts, and the score of one, as models write them."""

from __future__ import annotations

import re
from typing import Final

from playhead.kernel.repair.lenient_json import json_blocks

_LONGEST: Final = 20_000
"""Characters that are read of a list of thoughts."""
_LONGEST_SCORE: Final = 2_000
"""Characters that are read of an answer that should be one number."""
_BEST: Final = 10
_ITEM: Final = re.compile(r"^[ \t]{0,20}(?:[-*•]|\(?\d{1,3}[.):])[ \t]{1,20}(?=\S)", re.MULTILINE)
_SCORE: Final = re.compile(r"(?<![\w.-])(\d{1,3}(?:\.\d{1,6})?)(?: ?(?:/|out of) ?10\b)?(?![\w%]|\.\d)")


def read_thoughts(text: str) -> list[str]:
    """Return the items of a list, each to the next empty line, or of a JSON list of texts; any other text is one thought."""
    text = text[:_LONGEST]
    found = [item.partition("\n\n")[0] for item in _ITEM.split(text)[1:]] or _in_json(text) or [text]
    return [thought for each in found if (thought := " ".join(each.split()))]


def _in_json(text: str) -> list[str]:
    """Return the first JSON list of texts; nothing when there is none."""
    for block in json_blocks(text):
        if isinstance(block.value, list) and all(isinstance(each, str) for each in block.value):
            return [_ITEM.sub("", each) for each in block.value]
    return []


def read_score(text: str) -> float | None:
    """Return the score from 0 to 10 as a share, 0 to 1; None when the text does not hold one number, or one below 1.

    `7`, `Score: 7` and `7/10` are 0.7. Whether `0.7` is a share already cannot be told.
    """
    found = {float(number) for number in _SCORE.findall(text[:_LONGEST_SCORE])}
    score = found.pop() if len(found) == 1 else -1.0
    return round(score / _BEST, 4) if score == 0 or 1 <= score <= _BEST else None
