"""Assumptions the model states in its thoughts: "I assume X because Y."."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from playhead.kernel.rationale import MAX_WHY
from playhead.trace.types import Rationale

PER_ITERATION: Final = 3
MAX_ASSUMPTION: Final = 240
# Each looks at a bounded piece of text, so that no text takes long.
_STATED: Final = re.compile(
    r"(?:^|(?<=[.!?]))\s?[ \t]{0,8}I(?:['\u2019]m| am)? assum(?:e|ing)(?: that)? ((?:[^.!?\n]|[.!?](?=\S)){1,800})",
    re.IGNORECASE | re.MULTILINE,
)
_BECAUSE: Final = re.compile(r",? because ", re.IGNORECASE)


def read_assumptions(text: str) -> list[tuple[str, Rationale | None]]:
    """Return at most `PER_ITERATION` assumptions with their stated reasons, without repetitions."""
    found: dict[str, Rationale | None] = {}
    for stated in _STATED.finditer(text):
        assumption, *because = _BECAUSE.split(stated[1], maxsplit=1)
        why = "".join(because)[:MAX_WHY].strip()
        if assumption := assumption[:MAX_ASSUMPTION].strip():
            found.setdefault(assumption, Rationale(why=why) if why else None)
    return list(islice(found.items(), PER_ITERATION))
