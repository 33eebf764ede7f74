"""Tools that look something up, named by another verb of looking, by what they are about, or as their description begins."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.lookups import is_got, is_same_list
from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.services import agree
from playhead.kernel.healing.vocabulary import ACTIONS, DIRECTIONS, MODIFIERS, SERVICES
from playhead.kernel.healing.words import folded, is_short_for, singular, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.trace.types import ToolSpec

VAGUE: Final = frozenset(
    ["current", "info", "information", "details", "all", "for", "of", "in", "on", "from", "new", "now", "data"]
)
"""Words that say nothing either, where nothing is changed."""
_ARTICLES: Final = frozenset(("a", "an", "the"))
_LOOKING: Final = (
    {"get", "fetch", "retrieve", "read", "load", "obtain", "show", "view"},
    {"search", "find", "lookup", "query"},
    {"query", "get", "fetch", "retrieve"},
    {"list", "show"},
    {"run", "execute"},
    {"calculate", "compute"},
)
"""Verbs that are used for each other where nothing is changed."""

_GROUPS: Final = (
    frozenset(("get", "fetch", "retrieve", "obtain", "show", "view", "lookup", "check")),
    frozenset(("read", "open", "view", "load")),
    frozenset(("search", "find", "lookup", "query")),
    frozenset(("list", "get", "fetch", "retrieve", "show", "view", "search", "find", "browse")),
)
"""Verbs of looking that are used for each other, of one thing and of several."""
_GETTING: Final = frozenset().union(*_GROUPS)
_PLAIN: Final = frozenset(("text", "current", "all", "list", "data", "plain", "full", "content"))
"""Words of a tool's name that say nothing which another name has to say."""
_ENDING: Final = DIRECTIONS | {
    "and",
    "or",
    "that",
    "which",
    "where",
    "when",
    "not",
    "but",
    "using",
    "matching",
    "between",
    "at",
}
"""Words at which a description begins to speak of something else."""
_WEB: Final = frozenset(("web", "http", "https", "website", "online", "internet"))


def named_otherwise(written: str, known: Mapping[str, ToolSpec], takes: Callable[[str], bool]) -> str | None:
    """Return the tool of which the name says the same in other words, and whose arguments these are; None when there is none.

    Of tools that change something only the words of their own description count: `create_calendar_event`, where it begins
    with `Create a calendar event`. Others may be looked up by another verb, or by what they are about alone, where no other
    tool takes these arguments.
    """
    own = words(written)
    plain = tuple(word for word in own if word not in SERVICES) or own
    described = [each for each in known if _is_described(own, known[each])]
    if len(described) == 1 and takes(described[0]):
        return described[0]
    about = [
        each
        for each in known
        if agree(own, known[each]) and (_is_about(plain, words(each)) or folded(written) == _without_service(each))
    ]
    about = about or [each for each in known if known[each].read_only and _is_looked_up(own, known[each])]
    if sum(_said_in(each).issuperset({*map(singular, own)} - VAGUE) for each in known) > 1:
        return None  # it says as much of one tool as of another
    about = about if len(about) == 1 else [each for each in about if takes(each)]
    if len(about) != 1 or not known[about[0]].read_only or not takes(about[0]):
        return None
    is_whole = len(own) == len(words(about[0])) or is_same_list(own, words(about[0]))
    things = {*map(singular, own)} - _GETTING
    rivals = [each for each in known if each != about[0] and takes(each) and not things.isdisjoint(_said_in(each))]
    return None if rivals and not is_whole else about[0]


def _without_service(name: str) -> str:
    return "".join(word for word in words(name) if word not in SERVICES)


def _said_in(name: str) -> set[str]:
    return {*map(singular, words(name))}


def _is_described(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether the description begins with the words that were written, which are those of the name and more."""
    said = [word for word in words(spec.description.partition(". ")[0]) if word not in _ARTICLES]
    if len(written) < 2 or not {*map(singular, words(spec.name))} < {*map(singular, written)}:  # noqa: PLR2004
        return False
    return [*map(singular, said[: len(written)])] == [*map(singular, written)]


def _is_about(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether a name is the beginning or the end of another, or says what is done with the same thing in another word."""
    if is_same_list(written, name) or is_got(written, name):
        return True
    own, other = [_verb(singular(word)) for word in written], [*map(singular, name)]
    if 0 < len(own) < len(other):
        return own in (other[: len(own)], other[-len(own) :], [other[0], *other[len(other) - len(own) + 1 :]])
    if len(own) != len(other) or len(own) < 2:  # noqa: PLR2004 - a verb, and what it is done with
        return False
    orders = [own, own[::-1]] if len(own) == 2 else [own]  # noqa: PLR2004 - `flight_search`
    differ = [
        {word for pair in zip(order, other, strict=True) if pair[0] != pair[1] for word in pair} for order in orders
    ]
    return any(each <= group for each in differ for group in _LOOKING)


def _is_looked_up(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name looks up, by any verb for it, what the tool gives: `get_forecast` of `get_weather`, "Get the forecast".

    What the tool's name says besides may only be a word that says nothing, or the thing that the description calls otherwise.
    """
    if not agree(written, spec):
        return False
    own = [singular(word) for word in written if word not in SERVICES and word not in _WEB]
    name = [singular(word) for word in words(spec.name) if word not in SERVICES and word not in _WEB]
    verbs = [word for word in own if word in _GETTING]
    own = [*verbs, *(word for word in own if word not in verbs)] if len(verbs) == 1 else own
    verb, first = _verb((*own, "")[0]), (*name, "")[0]
    told = tuple(map(singular, head_of(spec)))
    looks = verb == first or any({verb, first} <= group for group in _GROUPS) or verb == (*told, "")[0]
    looks = looks or (verb in _GETTING and first not in ACTIONS)
    if not looks and (verb in ACTIONS or verb in MODIFIERS):
        return False
    things = {*(own[1:] if looks else own)} - VAGUE
    if not things.isdisjoint(MODIFIERS) or not _looks(name, spec):
        return False
    if len(name) == 1:
        params = {singular(word) for each in properties(spec.parameters) for word in words(each)}
        return looks and things <= {*name, *told, *params, "page"}
    is_named = all(any(each == word or is_short_for(each, word) for word in name) for each in things)
    if is_named and bool(things) and {*name} - {*own} <= _GETTING | _PLAIN:
        return True
    return bool(things) and things <= {*told} - ACTIONS


@cache
def _head(description: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in words(description[:120].partition(". ")[0]):
        if word in _ENDING:
            break
        found += [] if word in _ARTICLES else [word]
    return tuple(found[:5])


def head_of(spec: ToolSpec) -> tuple[str, ...]:
    """Return what the description begins with: what is done, and with what."""
    return _head(spec.description)


def _looks(name: list[str], spec: ToolSpec) -> bool:
    """Return whether a tool is one that looks something up, and does nothing else with it."""
    first = (*name, "")[0]
    return first in _GETTING or first not in ACTIONS or head_of(spec)[:1] == (first,)


def _verb(word: str) -> str:
    """Return the verb of what does something: `convert` of `converter`."""
    return next((verb for verb in (word[:-2], word[:-1]) if word.endswith("er") and verb in ACTIONS), word)


def said_of(spec: ToolSpec) -> set[str]:
    """Return the words of a tool's name and description."""
    said = {*words(spec.name), *(word for word in words(spec.description[:200]))}
    return {*said, *map(singular, said)}
