"""Names that say with another verb, without the service, or with the thing alone what a tool that changes something does.

Only such a name and arguments that are the tool's own say together which one is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.kernel.healing.schema import properties
from playhead.kernel.healing.vocabulary import ACTIONS, ATTRIBUTES, DIRECTIONS, MODIFIERS, OTHERS, SERVICES
from playhead.kernel.healing.words import is_short_for, singular, words

if TYPE_CHECKING:
    from playhead.trace.types import ToolSpec

_DEEDS: Final = (
    frozenset(("create", "make", "add", "new", "register", "insert", "open", "file", "log", "record", "submit", "post", "raise", "issue",
               "write", "save")),
    frozenset(("update", "edit", "modify", "change", "set", "alter", "revise", "amend")),
    frozenset(("send", "post", "deliver", "dispatch", "transmit", "publish")),
    frozenset(("book", "reserve", "schedule", "create", "make", "arrange")),
    frozenset(("run", "execute", "exec", "trigger")),
    frozenset(("start", "launch")),
    frozenset(("buy", "purchase", "order")),
)  # fmt: skip
"""Verbs that are used for each other; none that takes something away, for which no other will do."""
_STARTED: Final = frozenset(("run", "execute", "exec", "trigger", "start", "launch", "submit"))
_JOBS: Final = frozenset(("job", "workflow", "pipeline", "build", "simulation", "scan"))
"""Things that run as soon as they are started."""
_MADE: Final = frozenset(
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
        "send",
    )
)
"""Verbs that are left out where the thing alone says what is done: `refund`, `email`."""
_NOUNS: Final = frozenset(
    ("comment", "request", "report", "order", "review", "reply", "note", "log", "refund", "release", "post", "commit", "book", "draft",
     "transfer", "message", "email", "mail", "payment", "ticket", "issue")
)  # fmt: skip
"""Verbs that are nouns, too."""
_TWINS: Final = (
    frozenset(("mail", "email")), frozenset(("db", "database")), frozenset(("ticket", "issue")), frozenset(("todo", "task")),
    frozenset(("folder", "directory", "dir")), frozenset(("photo", "picture", "image")), frozenset(("invoice", "bill")),
    frozenset(("booking", "reservation")), frozenset(("parcel", "package")), frozenset(("meeting", "event", "appointment")),
    frozenset(("memo", "note")), frozenset(("customer", "client")), frozenset(("cart", "basket")),
)  # fmt: skip
"""Nouns that name the same, where no tool of the other name is offered."""
_SAFE: Final = frozenset(("low", "medium"))
"""Risks of tools that may be named so."""
_IDLE: Final = frozenset(("a", "an", "the", "new", "to", "message", "messages", "text"))
"""Words that say nothing beside the thing."""
_MEANING: Final = MODIFIERS | ATTRIBUTES | OTHERS | DIRECTIONS


def is_same_deed(written: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether a name says the same deed of the same thing; what else it says has to be in the tool's description or parameters."""
    own, name = _verb_first(_plain(written)), _verb_first(_plain(words(spec.name)))
    if spec.risk not in _SAFE or not own or not name:
        return False
    if own == name or (own == name[1:] and name[0] in _MADE and own[0] not in ACTIONS - _NOUNS):
        return True
    if len(name) > 1 and own[0] == name[1] and own[0] in _NOUNS:  # `refund_payment` of `create_refund`
        return name[0] in _MADE and _are_things(own, name[1:], spec)
    is_deed = own[0] == name[0] or any({own[0], name[0]} <= group for group in _DEEDS)
    is_deed = is_deed or (not _JOBS.isdisjoint(name) and {own[0], name[0]} <= _STARTED)
    return is_deed and len(name) > 1 and _are_things(own[1:], name[1:], spec)


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
    if not name or (name[0] in ACTIONS and name[0] not in _NOUNS):
        return name
    verbs = [place for place, word in enumerate(name) if word in ACTIONS and word not in _NOUNS]
    return (name[verbs[0]], *name[: verbs[0]], *name[verbs[0] + 1 :]) if len(verbs) == 1 else name


def _are_things(written: tuple[str, ...], nouns: tuple[str, ...], spec: ToolSpec) -> bool:
    """Return whether words name the nouns, one of them in another word for it, and besides only what is known of the tool."""
    left, others = [*nouns], 0
    rest = []
    for word in written:
        meant = next((noun for noun in left if _is_thing(word, noun)), None)
        if meant is None:
            rest.append(word)
            continue
        others += word != meant
        left.remove(meant)
    known = {singular(word) for text in (spec.description[:200], *properties(spec.parameters)) for word in words(text)}
    return not left and others <= 1 and {*rest} <= known - _MEANING - (ACTIONS - _NOUNS)


def _is_thing(word: str, noun: str) -> bool:
    return word == noun or are_twins(word, noun) or is_short_for(word, noun)
