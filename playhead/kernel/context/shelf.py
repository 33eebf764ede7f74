"""What an agent keeps beside its thread: long results, whole. They are never put together or dropped."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from playhead.trace.types import Compression

RECALL: Final = "recall"
"""The tool of the kernel that looks at what is kept beside the thread."""
LONGEST_PARSED: Final = 10_000_000
"""Characters of a text that is looked at for whether it is JSON."""
MAX_FIELDS: Final = 30
"""Fields of an object that a preview names."""
FEWEST_CHARS: Final = 12
"""Characters that a line of a preview has at least, while there is room."""


class Shelf:
    """Long results as texts, by key."""

    def __init__(self, compression: Compression | None) -> None:
        self.compression = compression
        self.stored: dict[str, str] = {}

    def store(self, tool: str, text: str) -> tuple[str, str]:
        """Keep a result; returns its key, and the preview that stands for it in the thread."""
        key, settings = f"_tool_result_{len(self.stored) + 1}", self.compression or Compression()
        self.stored[key] = text
        return key, preview_of(text, key=key, tool=tool, budget=settings.budget, items=settings.preview_items)


def preview_of(text: str, *, key: str, tool: str, budget: int, items: int) -> str:
    """Return what stands for a result, in at most `budget` characters: what it is, how it begins, where the rest stands.

    Args:
        text: the result; one that is JSON counts as what it says.
        key: where all of it is kept.
        tool: what returned it.
        budget: characters, at least 200.
        items: items of a list that are shown.
    """
    value = _parsed(text)
    rest = "all of it"
    if isinstance(value, list):
        fields = dict.fromkeys(name for each in value[:items] if isinstance(each, dict) for name in each)
        kind = f"Array({len(value)})" + (f" | Schema: {', '.join(fields)}" if fields else "")
        lines = [f"[{number}] {_as_json(each)}" for number, each in enumerate(value[:items])]
        rest = f"{len(value) - items} more" if len(value) > items else rest
    elif isinstance(value, dict):
        kind = f"Object({len(value)} fields)"
        lines = [f"{name}: {_as_json(each)}" for name, each in islice(value.items(), MAX_FIELDS)]
    else:
        kind, lines = f"Text({len(text)} characters)", [text]
    head, last = cut(f"[STORED: {key} | {tool}]\nType: {kind}", budget // 2), f'\n…{rest}: recall(key="{key}")'
    share = max((budget - len(head) - len(last)) // max(len(lines), 1) - 1, FEWEST_CHARS)
    return cut("\n".join([head, *(cut(line, share) for line in lines)]), budget - len(last)) + last


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON
    with suppress(ValueError, RecursionError):
        return json.loads(text) if len(text) <= LONGEST_PARSED and text.lstrip().startswith(("[", "{")) else None
    return None


def _as_json(value: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, with an ellipsis where it goes on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
