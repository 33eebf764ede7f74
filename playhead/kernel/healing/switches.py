"""Names of switches and of times in another form: `with_lamination` of `laminate`, `time_of_measurement` of `measured_at`."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from playhead.kernel.healing.inflection import is_form_of, stem
from playhead.kernel.healing.schema import options, resolved
from playhead.kernel.healing.synonyms import GROUPS
from playhead.kernel.healing.words import same_word, words

if TYPE_CHECKING:
    from playhead.kernel.healing.schema import Schema

_IDLE: Final = frozenset(
    [
        "is",
        "are",
        "has",
        "have",
        "with",
        "use",
        "uses",
        "using",
        "do",
        "does",
        "should",
        "be",
        "the",
        "a",
        "of",
        "for",
        "to",
        "now",
        "currently",
        "flag",
        "mode",
        "option",
        "setting",
        "wanted",
        "please",
        "enable",
        "enabled",
        "activate",
        "activated",
        "active",
    ]
)
"""Words of a switch that say nothing but that it is one."""
_DOING: Final = frozenset(
    [
        "send",
        "show",
        "include",
        "add",
        "make",
        "use",
        "request",
        "issue",
        "print",
        "create",
        "apply",
        "generate",
        "get",
        "display",
        "allow",
        "allowed",
        "permitted",
        "included",
    ]
)
"""Verbs that say no more than the thing that they stand before."""
_TIMES: Final = frozenset(["at", "time", "date", "day", "on", "of", "the", "datetime", "timestamp", "when", "in"])
"""Words of a time that say only that it is one."""
_ONLY: Final = "only"
_MAIL: Final = frozenset(("email", "e", "mail", "address", "to", "recipient"))
"""Words of an address that say only that it is one."""
_TAKEN: Final = frozenset(map(stem, ("measured", "taken", "recorded", "observed", "logged", "read")))
"""Words for the time of a measurement."""
_CASES: Final = frozenset(("if", "when", "on"))
"""Words for a case, in the name of a switch."""
_WHERE_TO: Final = tuple(
    (verb, "to")
    for verb in (
        "save",
        "write",
        "store",
        "export",
        "extract",
        "unpack",
        "restore",
        "render",
        "download",
        "copy",
        "put",
    )
)
_RESULTS: Final = frozenset(("output", "destination", "target", "dest", "out", "result"))
"""Words of a place that something goes to."""


def is_same_switch(written: str, name: str, schema: object, root: Schema) -> bool:
    """Return whether two names of a switch say the same: each word of one is a form of one of the other, or says nothing."""
    kinds = {option.get("type") for option in options(resolved(schema, root), root)}
    if kinds != {"boolean"}:
        return False
    idle = _IDLE | (
        {_ONLY} if isinstance(schema, dict) and _ONLY in words(str(schema.get("description", ""))) else set()
    )
    own, other = ([word for word in words(each) if word not in idle] for each in (written, name))
    if not own or not other or not _all_in(own, other):
        return False
    left = [word for word in other if not _is_in(word, own)]
    return not left or (len(own) == len(other) - len(left) and _DOING.issuperset(left))


def is_same_time(written: str, name: str, schema: object, root: Schema) -> bool:
    """Return whether two names of a date or a time say when the same thing is."""
    formats = {option.get("format") for option in options(resolved(schema, root), root)}
    if not formats or not formats <= {"date", "date-time"}:
        return False
    own, other = ([word for word in words(each) if word not in _TIMES] for each in (written, name))
    if len(own) == len(other) == 1 and _TAKEN.issuperset(map(stem, (own[0], other[0]))):
        return True
    return bool(own) and len(own) == len(other) and _all_in(own, other) and _all_in(other, own)


def is_same_address(written: str, name: str, schema: object, root: Schema) -> bool:
    """Return whether two names of an e-mail address say the same: `report_email` of `report_to`."""
    held = [resolved(option.get("items", option), root) for option in options(resolved(schema, root), root)]
    formats = {option.get("format") for option in held if isinstance(option, dict)}
    own, other = ([word for word in words(each) if word not in _MAIL] for each in (written, name))
    return formats == {"email"} and len(own) == len(other) and _all_in(own, other)


def is_where_to(written: str, name: str, schema: object, root: Schema) -> bool:
    """Return whether a name says where what is made goes, as the parameter does: `save_to` of `output_path`."""
    own = words(written)
    formats = {option.get("format") for option in options(resolved(schema, root), root)}
    is_place = bool(formats) and formats <= {"path", "file-path", "directory-path"}
    return is_place and own in _WHERE_TO and not _RESULTS.isdisjoint(words(name))


def turned(own: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name the other way round: of `path_to_document` `document`, `path`, of `rows_to_skip` `skip`, `rows`."""
    joints = [place for place, word in enumerate(own) if word in ("to", "of", "for") and 0 < place < len(own) - 1]
    return (*own[joints[0] + 1 :], *own[: joints[0]]) if len(joints) == 1 else ()


def _all_in(some: list[str], others: list[str]) -> bool:
    return len(some) <= len(others) and all(_is_in(word, others) for word in some)


def _is_in(word: str, others: list[str]) -> bool:
    return any(_is_same(word, other) for other in others)


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - words
    if one in _CASES and other in _CASES:
        return True
    return same_word(one, other) or is_form_of(one, other) or _share_stems(one, other)


@lru_cache(maxsize=4096)
def _share_stems(one: str, other: str) -> bool:
    """Return whether two words are forms of two that are used for each other: `notified` and `informed`."""
    return any(stem(one) in stems and stem(other) in stems for stems in _stems())


@cache
def _stems() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(stem, group)) for group in GROUPS)
