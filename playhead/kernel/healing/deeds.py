"""Names that say with another verb, without the service, or with the thing alone what a tool that changes something does.

Only such a name and arguments that are the tool's own say together which one is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.services import agree
from playhead.kernel.healing.slips import is_slip
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, MODIFIERS, OTHERS, SERVICES
from playhead.kernel.healing.words import expanded, is_short_for, singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_DEEDS: Final = (
    frozenset(("create", "make", "add", "new")),
    frozenset(("update", "edit", "modify", "amend", "revise")),
    frozenset(("run", "execute", "exec")),
    frozenset(("start", "launch")),
    frozenset(("book", "reserve")),
    frozenset(("buy", "purchase")),
    frozenset(("write", "save")),
    frozenset(("create", "insert", "add")),
)
"""Verbs that are used for each other of anything; none that takes something away, for which no other will do."""
_OF_THINGS: Final = (
    (frozenset(("create", "make", "add", "new", "open", "file", "raise", "submit", "post", "log", "report")), frozenset(("issue", "ticket", "bug"))),
    (frozenset(("create", "open", "make", "submit", "new")), frozenset(("pull", "pr", "merge"))),
    (frozenset(("create", "make", "add", "new", "schedule", "book", "arrange", "set", "insert", "plan")), frozenset(("event", "meeting", "appointment"))),
    (frozenset(("send", "post", "deliver", "dispatch", "publish")), frozenset(("message", "email", "mail", "notification"))),
    (frozenset(("create", "add", "make", "new", "write", "save", "take")), frozenset(("note", "memo"))),
    (frozenset(("create", "add", "make", "new", "save", "insert")), frozenset(("contact", "task", "todo"))),
    (frozenset(("create", "issue", "make", "give")), frozenset(("refund",))),
    (frozenset(("run", "execute", "exec", "trigger", "start", "launch", "submit")), frozenset(("job", "workflow", "pipeline", "build", "simulation", "scan"))),
    (frozenset(("set", "update", "change", "edit", "modify", "adjust")), frozenset(("thermostat", "temperature", "brightness", "volume"))),
    (frozenset(("write", "create", "save")), frozenset(("file",))),
)  # fmt: skip
"""Verbs that are used for each other of these things only: an issue is opened when it is made, a file is not."""
_SAME: Final = frozenset().union(*_DEEDS, *(verbs for verbs, _ in _OF_THINGS))
"""Verbs of tools that may be named so."""
_ALONE: Final = frozenset(("refund", "email", "mail"))
"""Deeds that are said by the thing alone."""
_NOUNS: Final = frozenset(
    ("comment", "request", "report", "order", "review", "reply", "note", "log", "refund", "release", "post", "commit", "book", "draft",
     "transfer", "message", "email", "mail", "payment", "ticket", "issue")
)  # fmt: skip
"""Verbs that are nouns, too."""
_TWINS: Final = (
    frozenset(("mail", "email")), frozenset(("db", "database")), frozenset(("ticket", "issue")), frozenset(("todo", "task")),
    frozenset(("folder", "directory", "dir")), frozenset(("booking", "reservation")), frozenset(("meeting", "event", "appointment")),
    frozenset(("memo", "note")), frozenset(("sql", "query")), frozenset(("cart", "basket")),
)  # fmt: skip
"""Nouns that name the same, where no tool of the other name is offered."""
_SAFE: Final = frozenset(("low", "medium"))
"""Risks of tools that may be named so."""
LONG: Final = 6
"""Letters of a noun in which one may be a slip."""
_IDLE: Final = frozenset(("a", "an", "the", "new"))
"""Words that say nothing beside the thing."""
_COMMANDS: Final = frozenset(("command", "shell", "query", "sql"))
"""Things that say in their text which program they are for."""
_MEANING: Final = MODIFIERS | ATTRIBUTES | OTHERS | DIRECTIONS


def is_same_deed(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name says the same deed of the same thing; what it says before that has to stand in the description."""
    own, name = _verb_first(_plain(written)), _verb_first(_plain(words(spec.name)))
    if spec.risk not in _SAFE or not own or not name or not agree(written, spec):
        return False
    if not _COMMANDS.isdisjoint(name) and not SERVICES.isdisjoint(written):
        return False
    if own == name:
        return True
    if own[0] in _ALONE and own[0] == name[-1]:
        return name[0] in _SAME and _knows(own[1:], spec)
    is_deed = own[0] == name[0] or _are_same_verbs(own[0], name[0], name)
    return is_deed and name[0] in _SAME and len(name) > 1 and _are_things(own[1:], name[1:], spec)


def _are_same_verbs(one: str, other: str, name: tuple[str, ...]) -> bool:
    pair = {one, other}
    groups = (*_DEEDS, *(verbs for verbs, things in _OF_THINGS if not things.isdisjoint(name)))
    return any(pair <= group for group in groups)


def are_twins(one: str, other: str) -> bool:
    """Return whether two nouns name the same thing."""
    return any({one, other} <= twins for twins in _TWINS)


def is_without_verb(written: tuple[str, ...], name: str) -> bool:
    """Return whether a name is only that of the thing which a tool makes."""
    return _plain(written) == _plain(words(name))[1:]


def _plain(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name in the singular, without services, and without what says nothing where something else does."""
    own = tuple(singular(word) for word in name if word not in SERVICES)
    return own[:1] + tuple(word for word in own[1:] if word not in _IDLE or len(own) < 3)  # noqa: PLR2004 - verb, thing, more


def _verb_first(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words with the verb first that stands within or behind: `calendar_create_event`, `note_create`."""
    if not name or (name[0] in ACTIONS and name[0] not in _NOUNS) or name[0] in _DEEDS[0]:
        return name
    verbs = [place for place, word in enumerate(name) if word in ACTIONS and word not in _NOUNS]
    return (name[verbs[0]], *name[: verbs[0]], *name[verbs[0] + 1 :]) if len(verbs) == 1 else name


def _are_things(written: tuple[str, ...], nouns: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether words name the nouns, one of them in another word for it, and before the last one only what the tool says of itself.

    The last word says what a thing is: an `event_attendee` is no event.
    """
    left, others, rest = [*nouns], 0, list[str]()
    own = expanded(written, nouns)
    if not own or not _is_thing(own[-1], nouns[-1]):
        return False
    for word in own:
        meant = next((noun for noun in left if _is_thing(word, noun)), None)
        if meant is None:
            rest.append(word)
            continue
        others += word != meant
        left.remove(meant)
    return not left and others <= 1 and _knows(tuple(rest), spec)


def _knows(rest: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether the tool's description or its parameters have these words, and none of them makes another thing of it."""
    known = {singular(word) for text in (spec.description[:200], *properties(spec.parameters)) for word in words(text)}
    return {*rest} <= known - _MEANING - (ACTIONS - _NOUNS)


def _is_thing(word: str, noun: str) -> bool:
    if word == noun or are_twins(word, noun) or is_short_for(word, noun):
        return True
    return len(noun) >= LONG and abs(len(word) - len(noun)) <= 1 and _is_misspelt(word, noun)


def _is_misspelt(word: str, noun: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no tool has

    return bool(OSA.distance(word, noun, score_cutoff=2) == 1) and is_slip(word, noun)
