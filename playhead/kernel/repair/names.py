"""Compares names: case and separators, extra words, slips, abbreviations; and finds the tool that a name means."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from playhead.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.types import ToolSpec

SHORT: Final = 4
"""Letters of a word in which one may be wrong, in a choice or in the name of a tool that only reads."""
SAFE: Final = 5
"""Letters of a word in which one may be swapped or missing, in the name of another tool."""
MAX_NAME: Final = 200
MAX_TEXT: Final = 2000
"""Characters of a description whose words are looked at."""
NAMES: Final = frozenset(("name", "tool", "toolname", "function"))
"""Fields of a call that hold the tool's name, folded."""
ARGUMENTS: Final = frozenset(("arguments", "args", "parameters", "params", "input"))
"""Fields of a call that hold its arguments, folded."""
NOTES: Final = frozenset(("rationale", "thought", "thoughts", "thinking", "reasoning", "explanation"))
"""Fields in which agent frameworks, Playhead among them, have a model state its reason beside the arguments, folded."""
_BETWEEN_WORDS: Final = re.compile(
    r"[\W_]+|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])"
)
_SEGMENT: Final = re.compile(r"__|[.:/]")


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: `createIssue`, `create-issue` and `create_issue` have the same."""
    return tuple(word.casefold() for word in _BETWEEN_WORDS.split(name[:MAX_TEXT]) if word)


def folded(name: str) -> str:
    """Return a name without case and separators."""
    return "".join(words(name))


def extra_words(longer: str, shorter: str) -> tuple[str, ...] | None:
    """Return the words of the longer name beside the shorter one; None when it does not contain that as a whole."""
    parts, wanted = words(longer), folded(shorter)
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            if "".join(parts[start:end]) == wanted:
                return parts[:start] + parts[end:]
    return None


def is_slip(written: str, meant: str) -> bool:
    """Return whether words have one wrong letter each, behind the first one. A name with digits is an identifier."""
    wrong = _wrong_words(written, meant)
    return bool(wrong) and all(len(one) > SHORT or len(two) > SHORT for one, two in wrong)


def is_abbreviation(one: str, other: str) -> bool:
    """Return whether a name is short for the other, word by word: `lang`, `cmd`."""
    shorter, longer = sorted((words(one), words(other)), key=lambda each: len("".join(each)))
    return len(shorter) == len(longer) > 0 and all(map(_is_short_for, shorter, longer))


def meant_tool(
    name: str, specs: Mapping[str, ToolSpec], takes: Callable[[str], bool], *, exact: bool = False
) -> str | None:
    """Return the one tool that a name means, else None.

    Args:
        name: as it was written.
        specs: the tools that may be called, by name.
        takes: whether a tool can take the arguments.
        exact: take no name but one that differs in case and separators alone.
    """
    if name in specs:
        return name
    if not 0 < len(name) <= MAX_NAME:
        return None
    alike = [tool for tool in specs if folded(tool) == folded(name)]
    if alike or exact:
        return alike[0] if len(alike) == 1 else None
    found = [tool for tool in specs if _is_without_server(name, tool)]
    found = found or [tool for tool, spec in specs.items() if _is_slip_of_tool(name, tool, spec)]
    return found[0] if len(found) == 1 and not _is_crowded(name, found[0], specs) and takes(found[0]) else None


def unknown_tool(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return that there is no such tool, with the nearest or all names."""
    return f"there is no tool {name[:80]!r}.{nearest(name[:80], specs)}"


def _is_without_server(name: str, tool: str) -> bool:
    """Return whether one of the names has a namespace before what is otherwise the same name."""
    own, other = _SEGMENT.split(name), _SEGMENT.split(tool)
    return (len(own) == 1 or len(other) == 1) and len(own) != len(other) and folded(own[-1]) == folded(other[-1])


def _is_slip_of_tool(name: str, tool: str, spec: ToolSpec) -> bool:
    """Return whether one word has a slip; of a tool with side effects, only one that makes no other word."""
    wrong = _wrong_words(name, tool)
    if len(wrong) != 1:
        return False
    one, two = wrong[0]
    if spec.read_only:
        return max(len(one), len(two)) >= SHORT
    return min(len(one), len(two)) >= SAFE and (sorted(one) == sorted(two) or len(one) < len(two))


def _wrong_words(one: str, other: str) -> list[tuple[str, str]]:
    """Return the words that differ by one letter, where names differ in nothing else; no words where they do."""
    own, meant = words(one), words(other)
    wrong = [(a, b) for a, b in zip(own, meant, strict=False) if a != b]
    slips = [(a, b) for a, b in wrong if (a + b).isalpha() and a[0] == b[0] and _distance(a, b) == 1]
    return slips if len(own) == len(meant) and slips == wrong else []


def _is_crowded(name: str, tool: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether another tool's name is about as near: of one that only reads, as near; of another, nearly."""
    near = 1 if specs[tool].read_only else 2
    return any(other != tool and _distance(folded(name), folded(other)) <= near for other in specs)


def _is_short_for(shorter: str, longer: str) -> bool:
    """Return whether a word is another one's beginning, or its first letter and others of it in their order."""
    if longer.startswith(shorter):
        return True
    letters = iter(longer)
    return len(shorter) > 1 and shorter[0] == longer[0] and all(letter in letters for letter in shorter)


def _distance(one: str, other: str) -> int:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that is not known

    return OSA.distance(one, other)
