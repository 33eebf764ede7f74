"""Reads the model's own reasons for its calls; never invents one."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from playhead.kernel.repair.lenient_json import json_blocks
from playhead.trace.types import Alternative, Rationale
from playhead.trace.values import scrub

MAX_WHY: Final = 280
MAX_REJECTED_BECAUSE: Final = 160
MAX_BLOCKS: Final = 256
"""The number of blocks that are read; no turn has that many calls, but a text may contain anything."""
_BLOCK: Final = re.compile(
    r"<rationale(?:\s+call\s*=\s*[\"']?(\d{1,4})[\"']?)?\s*>((?:(?!</?rationale\b).)*)</rationale\s*>",
    re.IGNORECASE | re.DOTALL,
)
_ORPHAN: Final = re.compile(r"</?rationale\b[^>]{0,80}>", re.IGNORECASE)


def read_rationales(text: str, thinking: str | None) -> dict[int, Rationale]:
    """Return the reasons by call, counted from 1.

    A block without a number belongs to the call at its position; a duplicate number moves to the next free one.
    """
    if "<" not in text and not thinking:
        return {}
    found: dict[int, Rationale] = {}
    for place, block in enumerate(islice(_BLOCK.finditer(f"{text}\n{thinking or ''}"), MAX_BLOCKS), 1):
        rationale = _stated(block)
        if rationale is None:
            continue
        number = int(block[1] or place)
        while number in found:
            number += 1
        found[number] = rationale
    return found


def strip_rationales(text: str, *, readable: bool = False) -> str:
    """Return the text without rationale blocks and their leftover tags.

    Args:
        text: the model's text.
        readable: keep the content of a block that states no reason, as ordinary text.
    """
    if "<" not in text:
        return text.strip()
    rest = _BLOCK.sub(lambda block: block[2] if readable and _stated(block) is None else "", text)
    return _ORPHAN.sub("", rest).strip()


def parse_rationale(value: object) -> Rationale | None:
    """Return the reason that a JSON value states, or None.

    Long values are cut (the recorded answer has them in full); values of the wrong type are left out.
    """
    if isinstance(value, str):
        value = {"why": value}
    if not isinstance(value, dict) or not isinstance(value.get("why"), str) or not value["why"].strip():
        return None
    return Rationale(
        why=scrub(value["why"].strip()[:MAX_WHY]),
        refs=tuple(scrub(ref) for ref in _list(value.get("refs")) if isinstance(ref, str)),
        alternatives=tuple(filter(None, map(_alternative, _list(value.get("alternatives"))))),
        confidence=_confidence(value.get("confidence")),
    )


def _stated(block: re.Match[str]) -> Rationale | None:
    return parse_rationale(next((each.value for each in json_blocks(block[2])), None))


def _alternative(value: object) -> Alternative | None:
    if not isinstance(value, dict):
        return None
    option, because = value.get("option"), value.get("rejected_because", value.get("rejectedBecause"))
    if not isinstance(option, str) or not isinstance(because, str) or len(because) > MAX_REJECTED_BECAUSE:
        return None
    return Alternative(option=scrub(option), rejected_because=scrub(because))


def _confidence(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return None
    return float(value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
