"""Assumptions the model states in its thoughts: "I assume X because Y."."""

from __future__ import annotations

import re
from typing import Final

from playhead.kernel.rationale import MAX_WHY
from playhead.trace.types import Rationale

PER_ITERATION: Final = 3
MAX_ASSUMPTION: Final = 240
# Each looks at a bounded piece of text, so that no text takes long.
_START: Final = re.compile(r"\bI(?:['\u2019]m| am)? assum(?:e|ing)(?: that)?\s++(?=[^.!?])", re.IGNORECASE)
_END: Final = re.compile(r"[.!?](?=\s|\Z)|\n|\Z")
_BECAUSE: Final = re.compile(r",?\s{1,4}because\s{1,4}(?=\S)", re.IGNORECASE)
_BEFORE: Final = 16
_LONGEST: Final = 800


def read_assumptions(text: str) -> list[tuple[str, Rationale | None]]:
    """Return at most `PER_ITERATION` assumptions with their stated reasons, without repetitions."""
    found: dict[str, Rationale | None] = {}
    for start in _START.finditer(text):
        if not _starts_sentence(text, start.start()):
            continue
        assumption, *why = _BECAUSE.split(_rest_of_sentence(text, start.end()), maxsplit=1)
        assumption = assumption[:MAX_ASSUMPTION].strip()
        if assumption:
            found.setdefault(assumption, Rationale(why=why[0][:MAX_WHY].strip()) if why else None)
        if len(found) == PER_ITERATION:
            break
    return list(found.items())


def _starts_sentence(text: str, position: int) -> bool:
    before = text[max(0, position - _BEFORE) : position]
    words = before.rstrip()
    space = before[len(words) :]
    return "\n" in space or (words.endswith((".", "!", "?")) and bool(space)) or (not words and len(before) == position)


def _rest_of_sentence(text: str, position: int) -> str:
    piece = text[position : position + _LONGEST]
    end = _END.search(piece)
    return piece[: end.start()] if end else piece
