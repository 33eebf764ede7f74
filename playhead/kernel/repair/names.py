"""Compares names as models write them: by case and separators, by slips, and by abbreviations."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from playhead.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.trace.types import ToolSpec

LONG: Final = 5
"""Letters of a word of which one may be wrong."""
MAX_NAME: Final = 200
MAX_TEXT: Final = 2000
"""Characters of a description whose words are looked at."""
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


def is_slip(written: str, meant: str) -> bool:
    """Return whether long words have one wrong letter each, behind the first. A name with digits is an identifier."""
    own, others = words(written), words(meant)
    wrong = [(one, two) for one, two in zip(own, others, strict=False) if one != two]
    return len(own) == len(others) and bool(wrong) and all(_is_slip(*each) for each in wrong)


def _is_slip(one: str, two: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that is not known

    is_word = (one + two).isalpha() and one[0] == two[0] and max(len(one), len(two)) >= LONG
    return is_word and OSA.distance(one, two) == 1


def is_abbreviation(one: str, other: str) -> bool:
    """Return whether a name is short for the other, word by word: `lang`, `cmd`."""
    shorter, longer = sorted((words(one), words(other)), key=lambda each: len("".join(each)))
    return len(shorter) == len(longer) > 0 and all(map(_is_short_for, shorter, longer))


def _is_short_for(shorter: str, longer: str) -> bool:
    """Return whether a word is the same, or has letters of the other in their order from its first; `to` is not `too`."""
    if shorter == longer:
        return True
    letters = iter(longer)
    clear = len(shorter) > 2 or len(longer) > len(shorter) + 1  # noqa: PLR2004 - two letters have neighbours everywhere
    return clear and shorter[0] == longer[0] and all(each in letters for each in shorter)


def meant_tool(name: str, specs: Mapping[str, ToolSpec], *, exact: bool = False) -> str | None:
    """Return the one tool that a name means, else None.

    Args:
        name: as it was written.
        specs: the tools that may be called, by name.
        exact: take no name but one that differs in case and separators alone.
    """
    if name in specs or len(name) > MAX_NAME:
        return name if name in specs else None
    found = [tool for tool in specs if folded(tool) == folded(name)]
    if not found and not exact:
        found = [tool for tool in specs if _is_without_server(name, tool)]
    return found[0] if len(found) == 1 else None


def _is_without_server(name: str, tool: str) -> bool:
    """Return whether one of the names has a namespace before what is otherwise the same name."""
    own, other = _SEGMENT.split(name), _SEGMENT.split(tool)
    return (len(own) == 1 or len(other) == 1) and len(own) != len(other) and folded(own[-1]) == folded(other[-1]) != ""


def unknown_tool(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return that there is no such tool, with the nearest or all names."""
    return f"there is no tool {name[:80]!r}.{nearest(name[:80], specs)}"
