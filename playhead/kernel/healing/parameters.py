"""Third stage: the parameters' names. Each unknown name has to mean one parameter, and each parameter one name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.healing.elimination import by_elimination
from playhead.kernel.healing.remarks import is_for_caller
from playhead.kernel.healing.schema import Schema, fits, is_closed, properties, required
from playhead.kernel.healing.side_by_side import COUNTED, counts, covers, each_another, is_limit_of
from playhead.kernel.healing.structure import bounds_of, by_structure
from playhead.kernel.healing.switches import is_same_address, is_same_switch, is_same_time, is_where_to, turned
from playhead.kernel.healing.vocabulary import ATTRIBUTES, MODIFIERS, OTHERS
from playhead.kernel.healing.whole_names import are_names_for_each_other
from playhead.kernel.healing.words import expanded, folded, same_word, singular, words

if TYPE_CHECKING:
    from collections.abc import Collection

    from playhead.kernel.healing.values import Types

MAX_UNKNOWN: Final = 20
"""More unknown names than these, and nothing is renamed."""
SAME, SPELT, WORDS, WHOLE, PART = 6, 5, 4, 3, 2
"""How sure it is that a name means a parameter: the same but for case; a letter; other words for it; it and more; some of it."""
MAX_LENGTH: Final = 60
_MADE: Final = frozenset({"output", "out", "target", "dest", "destination", "save", "export"})
"""Words of what is made: a `path` alone is what is read."""
_WISHES: Final = (("target",), ("desired",), ("wanted",), ("requested",))
_CHANGING: Final = frozenset({"update", "edit", "modify", "change", "set", "patch", "adjust"})
"""What tools do of which a value may be called the new one."""
_BOUNDS: Final = frozenset({"min", "max", "minimum", "maximum"})
_KINDS: Final = frozenset({"type", "kind", "mode", "option", "choice", "action"})
"""Names that only say that one of several is chosen."""
_SAYS_NOTHING: Final = frozenset({"file", "output", "export", "result", "document", "data", "response"})
"""Words before them that do not say of what."""
_NO_CHOICE: Final = frozenset({"none", "all", "any", "other", "default", "auto"})
"""Values of many parameters."""
_NO_IDS: Final = ("name", "mail", "login", "title")
"""Ends of words for what names something, but is not its id."""
_NAMING: Final = frozenset({"name", "title", "label", "description"})
_IDS: Final = frozenset({"id", "sku", "code", "number", "key", "uuid", "isbn", "iban", "barcode", "serial"})
_DELTAS: Final = frozenset({"delta", "change", "diff", "difference", "increment", "decrement"})
"""Words for how much a number becomes another one: a name without them may say what it becomes."""
_GENERAL: Final = (
    _IDS
    | _NAMING
    | frozenset({"type", "date", "time", "path", "file", "folder", "text", "list", "value", "kind", "data", "no"})
)
"""Words that many names of a tool may end with."""
_TEXTS: Final = frozenset(
    ("message", "text", "body", "content", "note", "comment", "description", "summary", "title", "subject", "query")
)
_HOLDING: Final = frozenset({"list", "array"})
_NUMBERING: Final = frozenset({"id", "number", "code", "key", "reference", "ref"})
"""Ends of words for what says which one of its kind is meant."""
_SECRETS: Final = frozenset({"api", "access", "secret", "private", "public", "primary", "foreign", "partition", "sort"})
"""Words before a `key` that is no name for a thing."""
_LETTERS: Final = frozenset({"a", "e", "s", "q", "n"})
"""Letters that are no unit: of `e_mail`, of a plural."""
_NUMBERS: Final = frozenset({"no", "nr", "num"})
_FILE: Final = re.compile(r"(?:[^\n]*[/\\])?[^/\\\n.]+\.[A-Za-z]\w{0,4}")
_SWITCHES: Final = (("mode",), ("flag",), ("option",), ("setting",), ("enabled",))
_COUNTS: Final = frozenset({"count", "limit", "number", "num", "total", "amount", "size"})


@dataclass(frozen=True, slots=True)
class Renamed:
    """An object with its properties under their own names."""

    value: dict[str, Any]
    """The object; names that mean nothing, or more than one thing, are left."""
    why: str = ""
    """What could not be read, for the model."""


def renamed(schema: Schema, value: dict[str, Any], types: Types) -> Renamed:
    """Return an object with each unknown name replaced by the one parameter that it can mean."""
    known = properties(schema)
    unknown = [name for name in value if name not in known]
    if not unknown or not (is_closed(schema) or any(name not in value for name in required(schema))):
        return Renamed(value)
    if len(unknown) > MAX_UNKNOWN:
        return Renamed(value, f"{len(unknown)} of its parameters are unknown")
    free = [name for name in known if name not in value]
    needed = {name for name in free if name in required(schema)}
    found: dict[str, str] = {}
    why = ""
    for name in unknown:
        meant = _meant(name, value[name], free, needed, schema, types, value)
        if len(meant) == 1:
            found[name] = meant[0]
        else:
            why = why or _unclear(name, meant, known)
    left = [name for name in unknown if name not in found]
    if len(left) == 1 and (
        meant_for := by_elimination(left[0], value[left[0]], {*free} - {*found.values()}, schema, types.tool[0])
    ):
        found[left[0]] = meant_for
    found |= bounds_of(unknown, free, value)
    found |= by_structure(value, [name for name in unknown if name not in found], needed - {*found.values()}, schema)
    targets = list(found.values())
    twice = [name for name in found.values() if targets.count(name) > 1]
    if twice:
        return Renamed(
            value,
            f"{' and '.join(sorted(each for each in found if found[each] in twice))} both seem to mean {twice[0]}",
        )
    return Renamed({found.get(name, name): item for name, item in value.items()}, why)


def _meant(  # noqa: PLR0913, PLR0917 - what is asked about, and of what
    name: str,
    item: Any,  # noqa: ANN401 - any JSON value
    free: list[str],
    needed: set[str],
    schema: Schema,
    types: Types,
    given: Collection[str],
) -> list[str]:
    """Return the parameters that a name can mean, and that take its value; those of which it is surest."""
    from playhead.kernel.healing.values import is_empty  # noqa: PLC0415 - which renames by this

    if len(name) > MAX_LENGTH:
        return []
    known = properties(schema)
    scores = {each: _score(name, item, each, schema, types, given) for each in free}
    best = max(scores.values(), default=0)
    if not best:
        return []
    says_none = is_empty(item)  # such a value is left out, where it need not be there
    candidates = [
        each
        for each in free
        if scores[each]
        and (_takes(known[each], item, each, types) or (scores[each] == SAME and says_none and each not in needed))
    ]
    sure = max((scores[each] for each in candidates), default=0)
    meant = [each for each in candidates if scores[each] == sure]
    if sure in (WHOLE, PART) and meant and _is_part_of_another(name, known, free):
        return []
    if len(meant) > 1 and _MADE.isdisjoint(words(name)):
        meant = [each for each in meant if _MADE.isdisjoint(words(each))] or meant
    if len(meant) > 1 and sure in (WORDS, WHOLE, PART):
        meant = (
            [each for each in meant if each in needed]
            if sure == WORDS and len(needed.intersection(meant)) == 1 and len(free) == len(meant)
            else meant
        )
    if sure < best and best >= SPELT:  # the parameter that is meant does not take the value
        return []
    return meant


def _score(  # noqa: PLR0913, PLR0917 - what is asked about, and of what
    name: str,
    item: Any,  # noqa: ANN401 - any JSON value
    each: str,
    schema: Schema,
    types: Types,
    given: Collection[str],
) -> int:
    """Return how sure it is that a name, with its value, means one parameter."""
    from playhead.kernel.healing.related import is_other_money, measures_other, related, says_other_side  # noqa: PLC0415 - only for a name that no parameter has

    known = properties(schema)
    if words(name) in (("date",), ("time",)) and _count_of_days(known) > 1:
        return 0  # which of them
    if words(name) == ("timestamp",) and each not in required(schema) and len(words(each)) > 1:
        return 0  # it may be the call's own
    if (
        is_other_money(name, each)
        or is_for_caller(name, each)
        or says_other_side(name, each, types.tool)
        or measures_other(name, each, known[each])
    ):
        return 0
    by_name = max(likeness(name, each), related(name, each, known, given, types.tool))
    by_name = by_name or _without_thing(name, each, types.tool[0])
    return (
        by_name
        or (
            PART
            if is_same_switch(name, each, known[each], schema)
            or is_same_time(name, each, known[each], schema)
            or is_where_to(name, each, known[each], schema)
            or is_same_address(name, each, known[each], schema)
            else 0
        )
        or _described(name, known[each])
        or _wished(name, each, known[each], types.tool[0])
        or _switched(name, each, known[each])
        or _chosen(name, item, known[each])
    )


def _count_of_days(known: dict[str, Any]) -> int:
    """Return how many parameters are days or times, other than the end of what another begins."""
    return sum(
        isinstance(own, dict)
        and own.get("format") in ("date", "date-time")
        and {"end", "until", "return"}.isdisjoint(words(name))
        for name, own in known.items()
    )


def _without_thing(written: str, name: str, tool: str) -> int:
    """Return PART where a name says besides only what the tool is about: `parking_zone` of `extend_parking`, where it has a `zone_code`."""
    things, own, other = {*map(singular, words(tool)[1:])}, words(written), words(name)
    rest = [word for word in own if singular(word) not in things]
    if len(rest) == len(own) or not rest or not things.isdisjoint(map(singular, other)) or _GENERAL.issuperset(rest):
        return 0
    if not all(word in _GENERAL or any(same_word(word, each) for each in rest) for word in other):
        return 0
    return (
        PART
        if MODIFIERS.isdisjoint(rest) and ATTRIBUTES.isdisjoint({*rest} - {*other}) and likeness("_".join(rest), name)
        else 0
    )


def _is_part_of_another(name: str, known: dict[str, Any], free: list[str]) -> bool:
    """Return whether a name says as little of a parameter that has its value already: `time`, beside `start_time`, of `end_time`."""
    own = words(name)
    return any(
        each not in free
        and not MODIFIERS.isdisjoint(words(each))
        and {*map(singular, own)} < {*map(singular, words(each))}
        for each in known
    )


def _takes(schema: object, item: Any, name: str, types: Types) -> bool:  # noqa: ANN401 - any JSON value
    from playhead.kernel.healing.values import NO_READING  # noqa: PLC0415 - which renames by this

    if isinstance(schema, dict) and schema.get("format") == "directory-path" and _is_file(item):
        return False
    return fits(schema, item, types.root) or types.read(schema, item, name, 1) is not NO_READING


def _is_file(item: object) -> bool:
    """Return whether a path has the ending of a file: under another name it is hardly meant for a folder."""
    return isinstance(item, str) and _FILE.fullmatch(item) is not None


def likeness(written: str, name: str) -> int:
    """Return how sure it is that a written name means this parameter; 0 when it does not."""
    if folded(written) == folded(name):
        return SAME if folded(name) else 0
    own, other = words(written), words(name)
    own, other = expanded(_numbered(own), other), expanded(_numbered(other), own)
    if is_limit_of(own, other):
        return PART
    if not own or not other or _say_other_bounds(own, other):
        return 0
    if _is_misspelt(written, name):
        return SPELT
    return WORDS if are_names_for_each_other(written, name) else _likeness_in_forms(own, other)


def _likeness_in_forms(own: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how alike two names are, one of them as it stands, turned, or without the words that only count or hold."""
    if own[:-1] == other[:-1] and own[:-1] and {own[-1], other[-1]} <= _NUMBERING:
        return 0 if "key" in (own[-1], other[-1]) and not _SECRETS.isdisjoint(own) else WORDS
    if counts(own) and other[-1] in _NUMBERING:
        return 0
    forms = (
        own,
        own[2:] if own[:2] in COUNTED else (),
        () if counts(own) else turned(own),
        own[:-1] if own[-1] in _HOLDING else (),
    )
    return max(_likeness_of_words(each, other) for each in forms if each)


def _numbered(own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name with `number` in place of its abbreviation at the end: `line_no`; `no` alone is none."""
    return (*own[:-1], "number") if len(own) > 1 and own[-1] in _NUMBERS else own


def _likeness_of_words(own: tuple[str, ...], other: tuple[str, ...]) -> int:
    if len(own) == len(other) and covers(own, other) and covers(other, own):
        return WORDS
    if not _is_part(own, other):
        return 0
    return WHOLE if {*map(singular, other)} <= {*map(singular, own)} else PART


def _say_other_bounds(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return _are_opposite(own, other) or _is_bound_for_limit(own, other) or _is_bound_for_limit(other, own)


def _are_opposite(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one of two names is about the least, and the other about the most."""
    bounds = [{word[:3] for word in each if word in _BOUNDS} for each in (own, other)]
    return all(bounds) and bounds[0].isdisjoint(bounds[1])


def _is_bound_for_limit(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether a bound of something would be taken for a limit of it: `max_price` is no `limit_price`, `max_rows` a `limit`."""
    rest = {*own, *other} - _BOUNDS - {"limit"} - _COUNTS
    return "limit" in other and not _BOUNDS.isdisjoint(own) and any(word in own and word in other for word in rest)


def _described(written: str, schema: object) -> int:
    """Return PART where the description of a parameter has all words of a name."""
    said = schema.get("description") if isinstance(schema, dict) else None
    own = [*map(singular, words(written))]
    if not isinstance(said, str) or not own or MODIFIERS.intersection(own) or any(map(str.isdigit, own)):
        return 0
    return PART if {*own} <= {*map(singular, words(said))} else 0


def _wished(written: str, name: str, schema: object, tool: str) -> int:
    """Return PART where a name says that the value is the one wished for; of a path or a text it may say another one."""
    is_told = isinstance(schema, dict) and (schema.get("type") in ("integer", "number") or "enum" in schema)
    own = words(written)
    is_wish = own[:1] in _WISHES or (own[:1] == ("new",) and words(tool)[0] in _CHANGING)
    return PART if is_told and is_wish and own[1:] == words(name) else 0


def _switched(written: str, name: str, schema: object) -> int:
    """Return PART where a name only says besides that the parameter is a switch or a choice: `append_mode` of `append`."""
    is_switch = isinstance(schema, dict) and (schema.get("type") == "boolean" or "enum" in schema)
    own = words(written)
    return PART if is_switch and own[-1:] in _SWITCHES and own[:-1] == words(name) else 0


def _chosen(written: str, item: object, schema: object) -> int:
    """Return PART where a name says nothing and the value is, letter by letter, one of those that the parameter takes."""
    choices = schema.get("enum") if isinstance(schema, dict) else None
    is_one = isinstance(choices, list) and isinstance(item, str) and item in choices and item.lower() not in _NO_CHOICE
    own = words(written)
    return PART if is_one and own[-1:] and own[-1] in _KINDS and _SAYS_NOTHING.issuperset(own[:-1]) else 0


def _is_misspelt(written: str, name: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no parameter has

    one, other = folded(written), folded(name)
    if [*filter(str.isdigit, one)] != [*filter(str.isdigit, other)]:
        return False
    if len(words(written)) > len(words(name)) and len(words(written)[-1]) == 1:
        return False  # `depth_m` has a unit
    if singular(one) == singular(other):
        return True
    return len(other) > 3 and OSA.distance(one, other, score_cutoff=2) <= 1  # noqa: PLR2004 - of short names all are near


def _is_part(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one of two names has all words of the other, and none besides that make another thing of it."""
    if covers(other, own):
        left = _left_over(own, other)
        if "id" in left and ({*map(singular, own)}.isdisjoint(map(singular, other)) or _TEXTS.issuperset(other)):
            return False  # a `message_id` is no `body`
        names_it = not _NAMING.isdisjoint(left) and not _IDS.isdisjoint(other)  # a name is no number
        return not names_it and not any(_says_other(word, other) for word in left)
    if covers(own, other) and each_another(own, other):
        if "id" in other and any(word.endswith(_NO_IDS) for word in own):
            return False
        is_bound = not _BOUNDS.isdisjoint({*other} - {*own}) and not any(
            word in _COUNTS or singular(word) != word for word in own
        )
        if own == ("page",) and "size" in other:
            return False  # which page, not how long
        is_delta = not _DELTAS.isdisjoint({*other} - {*own})
        return not is_bound and not is_delta and not {"no", "not", "exclude", "ignore"}.intersection(other)
    return False


def _says_other(word: str, name: tuple[str, ...]) -> bool:
    """Return whether a word beside a name makes another thing of it, or says the opposite as in `unread`."""
    return (
        word in MODIFIERS
        or word in ATTRIBUTES
        or word in OTHERS
        or word.isdigit()
        or (len(word) == 1 and word not in _LETTERS)
        or any(word != own and word.endswith(own) for own in name)
    )


def _left_over(own: tuple[str, ...], other: tuple[str, ...]) -> list[str]:
    """Return the words of one name that say more than the other; a word that is there already stands for no second one."""
    same = {*map(singular, own)}.intersection(map(singular, other))
    free = tuple(word for word in other if singular(word) not in same)
    return [word for word in own if singular(word) not in same and not covers((word,), free)]


def _unclear(name: str, meant: list[str], known: dict[str, Any]) -> str:
    name = name[:MAX_LENGTH]
    if meant:
        return f"{name} could be {' or '.join(meant[:3])}"
    return f"{name} is no parameter.{nearest(name, known)}"
