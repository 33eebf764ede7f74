"""The lines of two texts that differ: bounded, whatever the texts are, and what is left out is counted."""

from __future__ import annotations

import difflib
import re
from typing import Final

_MOST_COMPARED: Final = 1_000
"""Lines of a text that are compared one by one, from the first that differs."""
_MOST_SHOWN: Final = 400
_LONG_LINE: Final = 100
"""Characters of a line from which it is taken sentence by sentence."""
_LONGEST_LINE: Final = 2_000
"""Characters of a line that are shown."""
_BEFORE: Final = 200
"""Of them, those before the place where two lines differ."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_HIDDEN: Final = re.compile(r"… ([\d,]+) more lines?")


def line_diff(original: str, replay: str, context: int = 1) -> tuple[str, ...]:
    """Return the lines that differ, in the form of a unified diff without its head.

    There are at most 400, and after them one that says how many more are left out, because they are too many to show or to compare. A
    long line begins shortly before the place where it differs.
    """
    left, right = _differing(_lines(original), _lines(replay), context)
    found = difflib.unified_diff(left[:_MOST_COMPARED], right[:_MOST_COMPARED], n=context, lineterm="")
    lines = ["@@" if line.startswith("@@") else line for number, line in enumerate(found) if number > 1]
    hidden = sum(max(0, count - most) for count, most in (
        (len(left), _MOST_COMPARED), (len(right), _MOST_COMPARED), (len(lines), _MOST_SHOWN)
    ))  # fmt: skip
    end = (f"… {hidden:,} more line{'' if hidden == 1 else 's'}",) if hidden else ()
    return (*_shortened(lines[:_MOST_SHOWN]), *end)


def hidden_lines(lines: tuple[str, ...]) -> int:
    """Return how many more lines there are than these, as the last of them says."""
    said = _HIDDEN.fullmatch(lines[-1]) if lines else None
    return int(said[1].replace(",", "")) if said else 0


def common_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(text: str) -> list[str]:
    """Return the lines of a text, the long ones sentence by sentence: prompts are paragraphs on one line."""
    return [
        part for line in text.split("\n") for part in ([line] if len(line) <= _LONG_LINE else _SENTENCE_END.split(line))
    ]


def _differing(left: list[str], right: list[str], context: int) -> tuple[list[str], list[str]]:
    """Leave out what two lists begin and end with in common, but for the context."""
    count = min(len(left), len(right))
    start = next((place for place in range(count) if left[place] != right[place]), count)
    rest = count - start
    end = next((place for place in range(rest) if left[-1 - place] != right[-1 - place]), rest)
    start, end = max(0, start - context), max(0, end - context)
    return left[start : len(left) - end], right[start : len(right) - end]


def _shortened(lines: list[str]) -> list[str]:
    """Cut long lines; a removed and an added one beside each other begin where they differ."""
    shown = list(lines)
    for place, line in enumerate(lines):
        if len(line) > _LONGEST_LINE:
            near = place + (1 if line[0] == "-" else -1)
            beside = lines[near][1:] if 0 <= near < len(lines) else ""
            shown[place] = line[0] + _cut(line[1:], common_length(line[1:], beside))
    return shown


def _cut(text: str, differs_at: int) -> str:
    start = differs_at - _BEFORE if differs_at > _LONGEST_LINE // 2 else 0
    end = start + _LONGEST_LINE
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
