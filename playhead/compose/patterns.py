"""Patterns: which tags a hook receives, and how specific they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from playhead.compose.tags import check_tag, known_tags
from playhead.errors import UsageError
from playhead.kernel.describe import described

if TYPE_CHECKING:
    from collections.abc import Iterator

Predicate = Callable[[str], bool]
OnePattern = str | Predicate
Pattern = OnePattern | Sequence[OnePattern]
"""A tag, `prompt.*` (one segment), `nudge.**` (any depth), `**`, a function of the tag, or a list of these."""
Several = Predicate | list[str] | list[OnePattern] | tuple[OnePattern, ...]
"""A pattern that is not a string, spelled out because a string is a sequence of strings, too."""

_SHAPE: Final = re.compile(r"\*\*|(?:[A-Za-z0-9_-]+\.)*(?:[A-Za-z0-9_-]+|\*\*?)")


class Breadth(IntEnum):
    """How broadly a pattern matches; transforms run in this order, so that the most specific one runs last."""

    EVERYTHING = 0
    DEEP = 1
    ONE_SEGMENT = 2
    PREDICATE = 3
    EXACT = 4


@dataclass(frozen=True, slots=True)
class Matcher:
    """One pattern, read."""

    breadth: Breadth
    matches: Predicate
    shown: str
    """The pattern as text."""


def read_pattern(pattern: Pattern) -> Iterator[Matcher]:
    """Yield the parsed patterns, one for each entry of a list.

    Raises:
        UsageError: it is not a pattern, or it matches no tag.
    """
    if isinstance(pattern, str) or callable(pattern):
        yield _read_one(pattern)
        return
    if not isinstance(pattern, Sequence) or not pattern:
        raise UsageError(f"{pattern!r} is not a pattern: write a tag (prompt.system), `nudge.*`, `**`, or a list")
    for each in pattern:
        yield _read_one(each)


def _read_one(pattern: OnePattern) -> Matcher:
    if not isinstance(pattern, str):
        if not callable(pattern):
            raise UsageError(f"{pattern!r} is not a pattern: write a tag (prompt.system), or a function of the tag")
        return _predicate(pattern, getattr(pattern, "__name__", type(pattern).__name__))
    if not _SHAPE.fullmatch(pattern):
        raise UsageError(f"{pattern!r} is not a pattern: `*` and `**` stand alone as the last segment, as in prompt.*")
    if pattern == "**":
        return Matcher(Breadth.EVERYTHING, lambda _: True, pattern)
    if "*" not in pattern:
        tag = check_tag(pattern)
        return Matcher(Breadth.EXACT, lambda each: each == tag, pattern)
    return _wildcard(pattern)


def _predicate(function: Predicate, name: str) -> Matcher:
    for tag in known_tags():
        try:
            function(tag)
        except Exception as error:
            raise UsageError(f"the pattern <{name}> fails for the tag {tag}: {described(error)}") from error
    return Matcher(Breadth.PREDICATE, function, f"<{name}>")


def _wildcard(pattern: str) -> Matcher:
    prefix, segments = pattern.rstrip("*"), pattern.count(".")
    if pattern.endswith(".**"):
        matcher = Matcher(Breadth.DEEP, lambda tag: tag.startswith(prefix), pattern)
    else:
        matcher = Matcher(
            Breadth.ONE_SEGMENT, lambda tag: tag.startswith(prefix) and tag.count(".") == segments, pattern
        )
    if not any(map(matcher.matches, known_tags())):
        areas = ", ".join(dict.fromkeys(tag.split(".")[0] for tag in known_tags()))
        raise UsageError(f"no tag matches {pattern!r}, so nothing would ever be called. Areas: {areas}; all tags: `**`")
    return matcher
