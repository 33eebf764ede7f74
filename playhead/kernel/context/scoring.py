"""How much a line about old work is worth keeping, where there is no room for all."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

Kind = Literal["result", "action", "thought"]
WEIGHTS: Final[dict[Kind, float]] = {"result": 0.8, "action": 0.6, "thought": 0.4}
"""What each kind of line is worth."""
FAILURE: Final = 1.5
"""How much more a failure is worth."""
DECAY: Final = 0.3
"""By e^-0.3 a turn: what is three turns old counts for about 0.4."""
_WORD: Final = re.compile(r"\w{3,}")
MAX_KEYWORDS: Final = 100
_STOP_WORDS: Final = (
    "about after all and any are but can could did does each find for from get give had has have her him his how into "
    "its just let like make many may more most much must need not now off one only our out over please see she should "
    "show some such tell than that the their them then there these they this those through too use used very was way "
    "were what when where which who why will with would you your"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""English words that say nothing about a task."""


def keywords(text: str) -> frozenset[str]:
    """Return the words of a task that a line may be about, the first hundred."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text[:20_000].casefold()):
        if word not in STOP_WORDS:
            found[word] = None
            if len(found) == MAX_KEYWORDS:
                break
    return frozenset(found)


def score(text: str, kind: Kind, age: int, task: frozenset[str], *, failed: bool = False) -> float:
    """Return what a line is worth, 0 to 1: its weight, times the mean of how new it is and how near to the task.

    Args:
        text: the line.
        kind: what it tells of.
        age: turns since then.
        task: the keywords of the task.
        failed: whether it tells of a failure.
    """
    recency = math.exp(-DECAY * max(age, 0))
    near = len(task & set(_WORD.findall(text.casefold()))) / len(task) if task else 0.0
    return min(WEIGHTS[kind] * (recency + near) / 2 * (FAILURE if failed else 1.0), 1.0)
