"""What kind of task a text asks for, and how complex it is: by its words alone, so that it costs nothing and never varies."""

from __future__ import annotations

import re
from typing import Final

READ: Final = 20_000
"""Characters of a task that are looked at."""
COMPLEX_TYPES: Final = frozenset({"research", "analysis", "creative", "multi-step"})
_TYPES: Final = {
    "multi-step": re.compile(r"step[ -]by[ -]step|multi[ -]?step|\bplan\b|\bfirst\b.{1,200}\bthen\b", re.IGNORECASE),
    "research": re.compile(r"\b(?:research|investigate|find out|survey|look into|sources?)\b", re.IGNORECASE),
    "analysis": re.compile(r"\b(?:analy[sz]e|analysis|compare|evaluate|synthesi[sz]e|assess)\b", re.IGNORECASE),
    "creative": re.compile(r"\b(?:brainstorm|invent|imagine|stor(?:y|ies)|poem|ideas?|slogan)\b", re.IGNORECASE),
    "writing": re.compile(r"\b(?:write|draft|essay|article|letter|e-?mail|rewrite|report)\b", re.IGNORECASE),
}
"""In order: the first that is found is the type."""
_DEMANDING: Final = re.compile(r"compare|analyze|evaluate|synthesize", re.IGNORECASE)
_STEPS: Final = re.compile(r"step.by.step|multi.?step|plan", re.IGNORECASE)
LONG: Final = 1_000
VERY_LONG: Final = 5_000


def task_type_of(task: str) -> str:
    """Return `multi-step`, `research`, `analysis`, `creative`, `writing` or `question`."""
    text = task[:READ]
    return next((name for name, words in _TYPES.items() if words.search(text)), "question")


def complexity_of(task: str, task_type: str) -> float:
    """Return how complex a task looks, 0 to 1."""
    text = task[:READ]
    parts = (
        (len(task) > LONG, 2),
        (len(task) > VERY_LONG, 2),
        (task_type in COMPLEX_TYPES, 3),
        (_DEMANDING.search(text) is not None, 2),
        (_STEPS.search(text) is not None, 1),
    )
    return min(10, sum(weight for holds, weight in parts if holds)) / 10
