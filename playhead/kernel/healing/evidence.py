"""Names that are nearly a tool's, where the arguments say the rest: the same verb, and a slip, a filler or an abbreviation in the nouns."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.deeds import are_twins, is_without_verb
from playhead.kernel.healing.inflection import is_form_of, stem
from playhead.kernel.healing.schema import properties, required
from playhead.kernel.healing.slips import is_slip
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, GROUPS, MODIFIERS, OTHERS, SERVICES
from playhead.kernel.healing.words import is_short_for, singular, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.types import ToolSpec

NOUN: Final = 4
"""Letters of a noun in which one may be wrong."""
TOGETHER: Final = 2
"""Necessary parameters of a tool that say together that it is meant."""
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
    (
        "comment",
        "request",
        "report",
        "order",
        "review",
        "reply",
        "note",
        "log",
        "search",
        "query",
        "test",
        "visit",
        "refund",
        "release",
        "post",
        "commit",
        "share",
        "book",
        "link",
        "tag",
        "track",
        "list",
        "copy",
        "draft",
        "process",
        "schedule",
        "transfer",
    )
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
_SORTS: Final = frozenset(
    ("report", "record", "form", "entry", "document", "file", "item", "ticket", "job", "task", "operation", "listing")
)
"""Nouns that say only what sort of thing the noun before them is: an `expense_report`."""
_OTHER_SORTS: Final = frozenset(
    ("template", "draft", "preview", "history", "simulation", "estimate", "reminder", "status", "cancellation")
)
"""Nouns that make another thing of the one before them."""
_KIN: Final = ("atures", "ature", "als", "al")
"""Endings of nouns that are made of verbs, beside those of every form: `signature`, `appraisal`."""
_TAILS: Final = (("from",), ("with",), ("by",), ("using",))
"""What may stand before it."""
_ENDS: Final = frozenset(("kill", "terminate"))
_ALSO_END: Final = frozenset(
    ("abort", "cancel", "close", "deactivate", "delete", "destroy", "disable", "drop", "end", "finish", "force", "halt", "interrupt", "kill",
     "pause", "archive", "revoke", "clear", "erase", "wipe", "uninstall", "purge", "quit", "remove", "requeue", "reset", "restart", "shutdown", "signal", "stop", "suspend", "terminate")
)  # fmt: skip
"""Verbs of tools of which one may be meant by `kill`."""
_JOINING: Final = frozenset(("on", "of", "for", "to", "in", "a", "an", "the"))
_THING: Final = re.compile(r"\b(?:a|an|the) (?=((?:[a-z]+ ?){1,4}))")
_ENDING: Final = frozenset(
    ("and", "or", "that", "which", "is", "are", "has", "have", "can", "will", "a", "an", "the", "at", "when", "where")
)
_NEGATION: Final = frozenset(("not", "no", "never", "without", "except", "instead", "unlike", "only"))


def is_nearly(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name begins with the tool's own verb and has its nouns, but for what a slip of the pen makes of them."""
    name = words(spec.name)
    says_same = _ends_alike(written, spec) or _has_tail(written, spec) or _is_deed(written, name)
    if says_same or _is_noun_of_verb(written, name) or _is_said_first(written, spec):
        return True
    if len(name) < 2 or len(written) < 2 or _digits(written) != _digits(name):  # noqa: PLR2004 - verb, noun
        return False
    if (written[-1] in _OTHER_SORTS and written[-1] not in name) or (name[0] in _ALSO_END and len(written) > len(name)):
        return False  # another sort of it, or a part, which is less
    is_verb = written[0] == name[0] or (written[0].endswith("ing") and is_form_of(written[0], name[0]))
    count = len(required(spec.parameters))
    is_said = count >= SAID and written[1:] == name[1:] and words(spec.description[:200])[:1] == written[:1]
    if not is_verb and not is_said and not (count >= TOGETHER and _is_slip_of(written[0], name[0])):
        return False
    written, name = _without_sort(written, name)
    things = _things_of(spec.description)
    if any(word in ACTIONS and word not in name and word not in things for word in written[1:]):
        return False
    return _nouns_are(written[1:], name[1:], _said_beside(spec, name) | _known_beside(written, name, spec))


def _ends_alike(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name ends the same in another word, where each argument has to fit as it stands."""
    name = words(spec.name)
    is_end = len(name) > 1 and written[1:] == name[1:] and {written[0], name[0]} == _ENDS
    return is_end and len(required(spec.parameters)) < SAID


def is_one_of_many(written: tuple[str, ...], meant: str, known: Iterable[str]) -> bool:
    """Return whether a name says less of what is done than the tool that is meant, and another tool does something with the same things.

    It ends something in another word, and another tool ends it, too; or it has no verb at all.
    """
    name = words(meant)
    rest = tuple(word for word in written if word not in SERVICES)
    if is_without_verb(written, meant) and any(words(each)[-len(rest) :] == rest for each in known if each != meant):
        return True
    is_other = written[1:] == name[1:] and {written[0], name[0]} == _ENDS
    return is_other and any(
        words(each)[1:] == name[1:] and not _ALSO_END.isdisjoint(words(each)[:1]) for each in known if each != meant
    )


def _has_tail(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name says behind the tool's own what it has to get: `generate_report_from_template`, with a `template_path`."""
    name = words(spec.name)
    tail = written[len(name) + 1 :]
    if len(name) < 2 or written[: len(name)] != name or written[len(name) : len(name) + 1] not in _TAILS or not tail:  # noqa: PLR2004
        return False
    return any({*tail} <= {*words(each)} for each in required(spec.parameters))


def _is_deed(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name is of the same thing, with the verb as a noun behind it: `coupon_deactivation` of `deactivate_coupon`."""
    if len(name) < 2 or len(written) != len(name) or [*map(singular, written[:-1])] != [*map(singular, name[1:])]:  # noqa: PLR2004 - verb, noun
        return False
    is_noun = singular(written[-1]).endswith(("ion", "ing", "ment", "al", "ature", "ance"))
    return is_noun and (is_form_of(written[-1], name[0]) or _are_kin(written[-1], name[0]))


def _is_slip_of(written: str, verb: str) -> bool:
    """Return whether a verb has one letter of the next key, where that is no other word."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no tool has

    is_word = written in _known_words() or singular(written) in _known_words()
    return not is_word and bool(OSA.distance(written, verb, score_cutoff=2) == 1) and is_slip(written, verb)


def _without_sort(written: tuple[str, ...], name: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two names without the last word of the one that is longer by it, where it says only what sort of thing that is."""
    for one, other in ((written, name), (name, written)):
        if len(one) == len(other) + 1 and len(other) > 1 and one[-1] in _SORTS and other[-1] not in _SORTS:
            return (written[:-1], name) if one is written else (written, name[:-1])
    return written, name


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

    if is_short_for(written, noun) or _are_kin(written, noun) or are_twins(written, noun):
        return True
    if len(noun) < NOUN or written in _known_words() or singular(written) in _known_words():
        return False
    return bool(OSA.distance(written, noun, score_cutoff=2) <= 1)


def _are_kin(one: str, other: str) -> bool:
    """Return whether two words are nouns of one verb: `signing` and `signature`."""
    one, other = (
        next((word[: -len(ending)] for ending in _KIN if word.endswith(ending)), stem(word)) for word in (one, other)
    )
    return one == other and len(one) >= NOUN


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
    said = [word for word in words(spec.description[:200].partition(". ")[0]) if word not in ("a", "an", "the")]
    return len(written) >= SAID and [*map(singular, said[: len(written)])] == [*map(singular, written)]


def _is_noun_of_verb(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name says with a noun what the tool's verb says: `add_line_comment` of `comment_on_line`."""
    if len(name) < 2 or written[:1] == name[:1] or not _MAKING.issuperset(written[:1]):  # noqa: PLR2004
        return False
    if len(written) == len(name) + 1 and [*written[1:-1]] == [*name[1:]] and written[-1] == name[0]:
        return True  # `make_bicycle_lease` of `lease_bicycle`
    if name[0] not in _NOUNS:
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
