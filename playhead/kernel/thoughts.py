"""Lists of thoughts, as models write them."""

from __future__ import annotations

import re
from typing import Any, Final

from playhead.kernel.repair.lenient_json import json_blocks

_LONGEST: Final = 20_000
"""Characters that are read of a list of thoughts."""
_ITEM: Final = re.compile(r"[ \t]{0,20}(?:[-*•]|\(?\d{1,3}[.):])[ \t]{1,20}(\S.*)")


def read_thoughts(text: str) -> list[str]:
    """Return the items of a list, with the lines that belong to them, or of a JSON list; any other text is one thought."""
    items: list[list[str]] = []
    open_item = False
    for line in text[:_LONGEST].splitlines():
        if item := _ITEM.fullmatch(line):
            items.append([item[1]])
            open_item = True
        elif not line.strip():
            open_item = False
        elif open_item:
            items[-1].append(line)
    found = list(map(" ".join, items)) or _in_json(text[:_LONGEST]) or [text[:_LONGEST]]
    return [thought for each in found if (thought := " ".join(each.split()))]


def _in_json(text: str) -> list[str]:
    """Return the thoughts of the first JSON list of texts, or of objects with texts; nothing when there is none."""
    for block in json_blocks(text):
        lists = [block.value] if isinstance(block.value, list) else _values(block.value)
        for each in lists:
            thoughts = [" ".join(_texts(item)) for item in each] if isinstance(each, list) else []
            if thoughts and all(thoughts):
                return [item[1] if (item := _ITEM.fullmatch(thought)) else thought for thought in thoughts]
    return []


def _values(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return list(value.values()) if isinstance(value, dict) else []


def _texts(item: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    return [item] if isinstance(item, str) else [each for each in _values(item) if isinstance(each, str)]
