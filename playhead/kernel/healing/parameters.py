"""Third stage: the parameters' names. Each unknown name has to mean one parameter, and each parameter one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import nearest
from playhead.kernel.healing.schema import Schema, fits, is_closed, properties, required
from playhead.kernel.healing.vocabulary import MODIFIERS
from playhead.kernel.healing.words import folded, same_word, singular, words

if TYPE_CHECKING:
    from playhead.kernel.healing.values import Types

MAX_UNKNOWN: Final = 20
"""More unknown names than these, and nothing is renamed."""
SAME, SPELT, WORDS, PART = 5, 4, 3, 2
"""How sure it is that a name means a parameter: the same but for case; a letter; other words for it; some of its words."""
MAX_LENGTH: Final = 60
_WISHES: Final = (("target",), ("desired",), ("wanted",), ("requested",))
_BOUNDS: Final = frozenset({"min", "max", "minimum", "maximum"})
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
        meant = _meant(name, value[name], free, needed, schema, types)
        if len(meant) == 1:
            found[name] = meant[0]
        else:
            why = why or _unclear(name, meant, known)
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
) -> list[str]:
    """Return the parameters that a name can mean, and that take its value; those of which it is surest."""
    from playhead.kernel.healing.values import is_empty  # noqa: PLC0415 - which renames by this

    if len(name) > MAX_LENGTH:
        return []
    known = properties(schema)
    scores = {
        each: likeness(name, each) or _described(name, known[each]) or _wished(name, each, known[each]) for each in free
    }
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
    if len(meant) > 1 and sure in (WORDS, PART):
        meant = (
            [each for each in meant if each in needed]
            if sure == WORDS and len(needed.intersection(meant)) == 1 and len(free) == len(meant)
            else meant
        )
    if sure < best and best >= SPELT:  # the parameter that is meant does not take the value
        return []
    return meant


def _takes(schema: object, item: Any, name: str, types: Types) -> bool:  # noqa: ANN401 - any JSON value
    from playhead.kernel.healing.values import NO_READING  # noqa: PLC0415 - which renames by this

    return fits(schema, item, types.root) or types.read(schema, item, name, 1) is not NO_READING


def likeness(written: str, name: str) -> int:
    """Return how sure it is that a written name means this parameter; 0 when it does not."""
    if folded(written) == folded(name):
        return SAME if folded(name) else 0
    own, other = words(written), words(name)
    if not own or not other:
        return 0
    if _is_misspelt(written, name):
        return SPELT
    if len(own) == len(other) and _covers(own, other) and _covers(other, own):
        return WORDS
    return PART if _is_part(own, other) else 0


def _described(written: str, schema: object) -> int:
    """Return PART where the description of a parameter has all words of a name."""
    said = schema.get("description") if isinstance(schema, dict) else None
    own = [*map(singular, words(written))]
    if not isinstance(said, str) or not own or MODIFIERS.intersection(own):
        return 0
    return PART if {*own} <= {*map(singular, words(said))} else 0


def _wished(written: str, name: str, schema: object) -> int:
    """Return PART where a name says that the number is the one wished for; of a path or a text it may say another one."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    own = words(written)
    return PART if kind in ("integer", "number") and own[:1] in _WISHES and own[1:] == words(name) else 0


def _is_misspelt(written: str, name: str) -> bool:
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - only for a name that no parameter has

    one, other = folded(written), folded(name)
    if singular(one) == singular(other):
        return True
    return len(other) > 3 and OSA.distance(one, other, score_cutoff=2) <= 1  # noqa: PLR2004 - of short names all are near


def _covers(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return all(any(same_word(one, other) for other in others) for one in some)


def _is_part(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether one of two names has all words of the other, and none besides that make another thing of it."""
    if _covers(other, own):
        return MODIFIERS.isdisjoint(_left_over(own, other))
    if _covers(own, other):
        is_bound = not _BOUNDS.isdisjoint(other) and not any(word in _COUNTS or singular(word) != word for word in own)
        return not is_bound and not {"no", "not", "exclude", "ignore"}.intersection(other)
    return False


def _left_over(own: tuple[str, ...], other: tuple[str, ...]) -> list[str]:
    """Return the words of one name that say more than the other; a word that is there already stands for no second one."""
    same = {*map(singular, own)}.intersection(map(singular, other))
    free = tuple(word for word in other if singular(word) not in same)
    return [word for word in own if singular(word) not in same and not _covers((word,), free)]


def _unclear(name: str, meant: list[str], known: dict[str, Any]) -> str:
    name = name[:MAX_LENGTH]
    if meant:
        return f"{name} could be {' or '.join(meant[:3])}"
    return f"{name} is no parameter.{nearest(name, known)}"
