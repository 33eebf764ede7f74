"""Compares names: case and separators, extra words, slips, abbreviations; and finds the tool that a name means."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.types import ToolSpec

SHORT: Final = 4
"""Letters of a word in which one may be wrong, in a choice or in the name of a tool that only reads."""
SAFE: Final = 5
"""Letters of a word in which one may be swapped or missing, in the name of another tool."""
SAFE_SURPLUS: Final = 8
"""Letters of such a word that may have one too many."""
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
    for is_meant in (_is_without_server, _has_same_words, _is_slip_of_tool):
        found = [tool for tool, spec in specs.items() if is_meant(name, tool, spec)]
        if found:
            break
    else:  # a word more or less, of a tool that only reads; `build` is none of `get_build` and `cancel_build`
        found = [tool for tool in specs if extra_words(name, tool) or extra_words(tool, name)]
        is_plain = re.search(r"[^\w\s.:/-]", name) is None and all(specs[tool].read_only for tool in found)
        found = [tool for tool in found if is_plain and (extra_words(tool, name) or words(name)[-1] == words(tool)[-1])]
    return found[0] if len(found) == 1 and not _is_crowded(name, found[0], specs) and takes(found[0]) else None


def _is_without_server(name: str, tool: str, _: ToolSpec) -> bool:
    """Return whether one of the names has a namespace before what is otherwise the same name."""
    own, other = _SEGMENT.split(name), _SEGMENT.split(tool)
    return (len(own) == 1 or len(other) == 1) and len(own) != len(other) and folded(own[-1]) == folded(other[-1])


def _has_same_words(name: str, tool: str, _: ToolSpec) -> bool:
    return sorted(words(name)) == sorted(words(tool))


def _is_slip_of_tool(name: str, tool: str, spec: ToolSpec) -> bool:
    """Return whether one word has a slip; of a tool with side effects, only one that makes no other word."""
    wrong = _wrong_words(name, tool)
    if len(wrong) != 1:
        return False
    one, two = wrong[0]
    if spec.read_only or f"{one}s" == two or f"{two}s" == one or _once(one) == _once(two):
        return max(len(one), len(two)) >= SHORT
    is_swapped_or_missing = sorted(one) == sorted(two) or len(one) < len(two)
    is_other_letter = len(one) == len(two) and not is_swapped_or_missing
    return not is_other_letter and min(len(one), len(two)) >= (SAFE if is_swapped_or_missing else SAFE_SURPLUS)


def _wrong_words(one: str, other: str) -> list[tuple[str, str]]:
    """Return the words that differ by one letter, where names differ in nothing else; no words where they do."""
    own, meant = words(one), words(other)
    wrong = [(a, b) for a, b in zip(own, meant, strict=False) if a != b]
    slips = [(a, b) for a, b in wrong if (a + b).isalpha() and a[0] == b[0] and _distance(a, b) == 1]
    return slips if len(own) == len(meant) and slips == wrong else []


def _once(word: str) -> str:
    """Return a word without doubled letters."""
    return re.sub(r"(.)\1+", r"\1", word)


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
