"""Assumptions the model states in its thoughts: "I assume X because Y."."""

from __future__ import annotations

import re
from typing import Final

from playhead.kernel.rationale import MAX_WHY
from playhead.trace.types import Rationale

PER_ITERATION: Final = 3
MAX_ASSUMPTION: Final = 240
_ASSUMPTION: Final = re.compile(
    r"(?:^|(?<=[.!?]\s)|(?<=\n))\s*I(?:'m| am)? assum(?:e|ing)(?: that)?\s+(.{1,400}?)"
    r"(?:,?\s+because\s+(.{1,400}?))?(?:[.!?](?=\s|$)|\n|$)",
    re.IGNORECASE,
)


def read_assumptions(text: str) -> list[tuple[str, Rationale | None]]:
    """Return at most `PER_ITERATION` assumptions with their stated reasons, without repetitions."""
    found: dict[str, Rationale | None] = {}
    for match in _ASSUMPTION.finditer(text):
        assumption, why = match[1].strip()[:MAX_ASSUMPTION], match[2]
        found.setdefault(assumption, Rationale(why=why.strip()[:MAX_WHY]) if why and why.strip() else None)
        if len(found) == PER_ITERATION:
            break
    return list(found.items())
