"""Names that are nearly a tool's, where the arguments say the rest: the same verb, and a slip, a filler or an abbreviation in the nouns."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, GROUPS, MODIFIERS, OTHERS
from playhead.kernel.healing.words import is_short_for, singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

NOUN: Final = 4
"""Letters of a noun in which one may be wrong."""
SAID: Final = 3
"""Words of a name that have to begin a description, to say what the tool does."""
_FILLERS: Final = frozenset(
    ("a", "an", "the", "my", "one", "single", "data", "info", "information", "details", "item", "object", "entry", "resource", "tool",
     "function", "api", "please", "now")
)  # fmt: skip
"""Words that say nothing in a name."""
_MAKING: Final = frozenset(("add", "make", "create", "post", "leave", "write", "do", "perform", "submit"))
"""Verbs that say nothing more than the noun that they stand before."""
_NOUNS: Final = frozenset(
    ("comment", "request", "report", "order", "review", "reply", "note", "log", "search", "query", "test", "visit")
)
"""Verbs of tools that are nouns, too, and as such say that the same is done."""
_NEW: Final = frozenset(
    (
        "add",
        "create",
        "save",
        "make",
        "register",
        "record",
        "log",
        "file",
        "book",
        "reserve",
        "schedule",
        "open",
        "submit",
        "post",
    )
)
"""Verbs of which the thing is new."""
_JOINING: Final = frozenset(("on", "of", "for", "to", "in", "a", "an", "the"))
_THING: Final = re.compile(r"\b(?:a|an|the) (?=((?:[a-z]+ ?){1,4}))")
_ENDING: Final = frozenset(
    ("and", "or", "that", "which", "is", "are", "has", "have", "can", "will", "a", "an", "the", "at", "when", "where")
)
_NEGATION: Final = frozenset(("not", "no", "never", "without", "except", "instead", "unlike", "only"))


def is_nearly(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name begins with the tool's own verb and has its nouns, but for what a slip of the pen makes of them."""
    name = words(spec.name)
    if _is_noun_of_verb(written, name) or _is_said_first(written, spec):
        return True
    if len(name) < 2 or len(written) < 2 or written[0] != name[0] or _digits(written) != _digits(name):  # noqa: PLR2004 - verb, noun
        return False
    things = _things_of(spec.description)
    if any(word in ACTIONS and word not in name and word not in things for word in written[1:]):
        return False
    return _nouns_are(written[1:], name[1:], _said_beside(spec, name) | _known_beside(written, name, spec))


def _nouns_are(written: tuple[str, ...], nouns: tuple[str, ...], idle: frozenset[str]) -> bool:
    """Return whether the nouns stand there in their order, one of them in another spelling, with idle words between them."""
    place, others = 0, 0
    for word in written:
        rest = nouns[place:]
        if rest and singular(word) == singular(rest[0]):
            place += 1
        elif (count := _initials(word, rest)) or (rest and _is_noun(word, rest[0])):
            place, others = place + (count or 1), others + 1
        elif word not in idle:
            return False
    return place == len(nouns) and others <= 1


def _initials(word: str, nouns: tuple[str, ...]) -> int:
    """Return of how many nouns a word is the first letters: of two for `pr` of `pull_request`."""
    count = len(word)
    is_of = 2 <= count <= len(nouns) and word == "".join(noun[0] for noun in nouns[:count])  # noqa: PLR2004 - a letter is no word
    return count if is_of else 0


def _is_noun(written: str, noun: str) -> bool:
    """Return whether a word is a noun with one letter wrong, or short for it; never another word that is known."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no tool has

    if is_short_for(written, noun):
        return True
    if len(noun) < NOUN or written in _known_words() or singular(written) in _known_words():
        return False
    return bool(OSA.distance(written, noun, score_cutoff=2) <= 1)


def _said_beside(spec: ToolSpec, name: tuple[str, ...]) -> frozenset[str]:
    """Return the words that may stand besides: fillers, and what the description says of the tool, where that excludes nothing."""
    said = {*words(spec.description[:200])}
    if not said.isdisjoint(_NEGATION):
        said = set()
    meaning = MODIFIERS | ACTIONS | ATTRIBUTES | DIRECTIONS
    told = {word for word in said | {*map(singular, said)} if word not in meaning}
    return frozenset({*_FILLERS, *told, *(_things_of(spec.description) if said else ())} - {*name})


def _known_beside(written: tuple[str, ...], name: tuple[str, ...], spec: ToolSpec) -> frozenset[str]:
    """Return the words of parameters, before the noun that the tool ends with: `record_student_grade`; what is made is also `new`."""
    if singular(written[-1]) != singular(name[-1]):
        return frozenset()
    meaning = MODIFIERS | ACTIONS | ATTRIBUTES | DIRECTIONS | OTHERS
    told = {word for each in properties(spec.parameters) for word in words(each) if word not in meaning}
    return frozenset({*told, "new"} if name[0] in _NEW else told) - {*name}


def _is_said_first(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether the description begins with all words of a name: `open_support_ticket`, where it says `Open a support ticket`."""
    said = [word for word in words(spec.description[:200]) if word not in ("a", "an", "the")]
    return len(written) >= SAID and [*map(singular, said[: len(written)])] == [*map(singular, written)]


def _is_noun_of_verb(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name says with a noun what the tool's verb says: `add_line_comment` of `comment_on_line`."""
    if len(name) < 2 or written[:1] == name[:1] or not _MAKING.issuperset(written[:1]) or name[0] not in _NOUNS:  # noqa: PLR2004
        return False
    one, other = ([singular(word) for word in each if word not in _JOINING] for each in (written[1:], name))
    return sorted(one) == sorted(other)


@cache
def _things_of(description: str) -> frozenset[str]:
    """Return the words behind an article, up to what ends them: the things that a description is about."""
    found: set[str] = set()
    for thing in _THING.findall(description[:200]):
        for word in words(thing):
            if word in DIRECTIONS or word in MODIFIERS or word in _ENDING:
                break
            found.add(word)
    return frozenset(found)


def _digits(name: tuple[str, ...]) -> list[str]:
    return [word for word in name if word.isdigit()]


@cache
def _known_words() -> frozenset[str]:
    return frozenset().union(*GROUPS, MODIFIERS, ATTRIBUTES, ACTIONS, DIRECTIONS)
