"""Tool spans and the calls that models asked for, put together: whatever the order in which the spans stand.

First by the call's id, then by name and arguments, then by name and the result that a later prompt shows for the call, and
only then by name in order. Where calls agree in what they are put together by, each span is taken for the newest call that
was asked for before it began; where it could as well be another one's, and that would make a difference, it is a doubt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.agents import ToolItem
from playhead.importing.readings import merged
from playhead.importing.thread import digest
from playhead.importing.values import NOTHING
from playhead.trace.values import as_text, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from playhead.importing.agents import ModelItem
    from playhead.importing.readings import ForeignCall, ForeignMessage

    Key = Callable[[Any], Hashable | None]
    Pair = tuple["Asked", ToolItem]

_MOST_SHAPES: Final = 8
"""Sets of argument names of one tool that are looked for among what a span was given."""


@dataclass(eq=False)
class Asked:
    """A call that a model asked for."""

    call: ForeignCall
    position: int
    model: ModelItem
    told: ForeignMessage | None = None
    """The result, as a later prompt shows it."""
    item: ToolItem | None = None
    """The span that answers it."""


@dataclass
class Pairing:
    """What became of tool spans and calls."""

    how: Counter[str] = field(default_factory=Counter)
    """How many spans were put to their calls by `id`, by `arguments`, by `result`, in `order`, or to `nothing`."""
    early: int = 0
    """Spans that began before their call was asked for."""
    doubled: int = 0
    """Spans of a call that another span answers already, which were put together."""
    doubtful: list[str] = field(default_factory=list)
    """Tools whose spans could as well be those of other calls."""
    left: list[ToolItem] = field(default_factory=list)
    """Spans of calls that no model asked for."""


def pair(asked: list[Asked], items: list[ToolItem], *, strict: bool = False) -> Pairing:
    """Put spans to calls.

    Args:
        asked: the calls, in the order in which they were asked for.
        items: the spans, in the order in which they began.
        strict: whether a span with an id never answers a call of another id. It never does when other ids agree.
    """
    pairing = Pairing()
    left = _Left(asked, items, pairing)
    for key in (_by_id_and_arguments, _by_id_and_name, _by_id):
        left.join("id", key, key)
    left.items = _without_doubles(left.items, asked, pairing)
    without_id = [item for item in left.items if item.reading.call_id is None]
    with_id = [item for item in left.items if item.reading.call_id is not None]
    ids_agree = strict or pairing.how["id"] > 0
    pairing.left += _by_what_they_say(left.asked, without_id, pairing)
    free = [each for each in left.asked if each.item is None and not (ids_agree and each.call.id is not None)]
    pairing.left += _by_what_they_say(free, with_id, pairing)
    pairing.doubtful = list(dict.fromkeys(pairing.doubtful))
    return pairing


def _by_what_they_say(asked: list[Asked], items: list[ToolItem], pairing: Pairing) -> list[ToolItem]:
    """Put spans to calls without a look at ids; return the spans that are left."""
    left = _Left(asked, items, pairing)
    if items and asked:
        left.join("arguments", _by_arguments_and_result, _by_arguments_and_result)
        left.join("arguments", _by_arguments, _by_arguments)
        left.join("arguments", _by_arguments, _Shapes(asked).key)
        left.join("result", _by_result, _by_result)
        left.join("order", _by_name, _by_name, any_time=False)
    return left.items


class _Left:
    """The calls and the spans that are not put together yet."""

    def __init__(self, asked: list[Asked], items: list[ToolItem], pairing: Pairing) -> None:
        self.asked = asked
        self.items = items
        self.pairing = pairing

    def join(self, how: str, key_of_asked: Key, key_of_item: Key, *, any_time: bool = True) -> None:
        """Put together those of the same key."""
        if not self.items or not self.asked:
            return
        calls, spans = _grouped(self.asked, key_of_asked), _grouped(self.items, key_of_item)
        taken: set[int] = set()
        for key, group in spans.items():
            if key not in calls:
                continue
            for asked, item in self._paired(calls[key], group, how, any_time=any_time):
                asked.item = item
                taken.add(id(item))
                self.pairing.how[how] += 1
            if how != "id" and any(_differ(one, other) for one, other in pairwise(group)):
                self.pairing.doubtful.append(group[0].reading.name or group[0].span.name)
        self.asked = [each for each in self.asked if each.item is None]
        self.items = [item for item in self.items if id(item) not in taken]

    def _paired(self, asked: list[Asked], items: list[ToolItem], how: str, *, any_time: bool) -> list[Pair]:
        found: list[Pair] = []
        for moment in (_answered_ns, _begun_ns):
            pairs = list(_newest_before(asked, items, moment))
            if _is_doubtful(pairs, asked, moment, how):
                self.pairing.doubtful.append(items[0].reading.name or items[0].span.name)
            found += pairs
            paired = {id(each) for pair in pairs for each in pair}
            asked = [each for each in asked if id(each) not in paired]
            items = [item for item in items if id(item) not in paired]
        if any_time:
            late = list(zip(asked, items, strict=False))
            self.pairing.early += len(late)
            if any(_differ(one[1], other[1]) for one, other in pairwise(late)):
                self.pairing.doubtful.append(late[0][0].call.name)
            found += late
        return found


def _newest_before(asked: list[Asked], items: list[ToolItem], moment: Callable[[Asked], int]) -> Iterator[Pair]:
    """Yield each span with the newest call before it that no later span takes; those of one answer in order."""
    waiting = sorted(asked, key=moment)
    place = len(waiting) - 1
    taken: list[Pair] = []
    for item in reversed(items):
        while place >= 0 and moment(waiting[place]) > item.span.start_ns:
            place -= 1
        if place < 0:
            break
        taken.append((waiting[place], item))
        place -= 1
    calls: dict[int, Iterator[Asked]] = {
        model: iter(list(group)) for model, group in groupby(waiting, lambda each: id(each.model))
    }
    yield from ((next(calls[id(call.model)]), item) for call, item in reversed(taken))


def _is_doubtful(pairs: list[Pair], asked: list[Asked], moment: Callable[[Asked], int], how: str) -> bool:
    """Tell whether two spans could change places, or one be that of a call of the same answer which has none."""
    for (_, before), (call, item) in pairwise(pairs):
        if moment(call) <= before.span.start_ns and _differ(before, item):
            return True
    if how != "order":
        return False
    answers = Counter(id(each.model) for each in asked)
    used = Counter(id(call.model) for call, _ in pairs)
    return any(answers[model] > count for model, count in used.items()) and any(_says(item) for _, item in pairs)


def _without_doubles(items: list[ToolItem], asked: list[Asked], pairing: Pairing) -> list[ToolItem]:
    """Put spans to a call that another span answers already, as a retry does or a second instrumentation; return the others."""
    answered = {each.call.id: each for each in asked if each.item is not None and each.call.id is not None}
    doubles: dict[str, list[ToolItem]] = defaultdict(list)
    left: list[ToolItem] = []
    for item in items:
        known = answered.get(item.reading.call_id or "")
        same = known is not None and plain_name(known.call.name) == plain_name(item.reading.name or "")
        (doubles[str(item.reading.call_id)] if same else left).append(item)
    for call_id, others in doubles.items():
        call = answered[call_id]
        candidates = [each for each in (call.item, *others) if each is not None]
        call.item = best = max(candidates, key=lambda item: _weight(item, call.told))
        pairing.doubled += len(others)
        if call.told is None and any(_says(each) and _differ(each, best) for each in candidates):
            pairing.doubtful.append(call.call.name)
        for each in candidates:
            best.reading = merged(best.reading, each.reading) or best.reading
    return left


def _weight(item: ToolItem, told: ForeignMessage | None) -> tuple[bool, bool, bool, int]:
    """Return how much speaks for a span among several of one call: that it did the work, that the model was told its result."""
    shown = told is not None and _result_of(item) == told.content
    return item.inside is not None, shown, item.error is None, item.span.start_ns


def _grouped(each_of: Iterable[Any], key_of: Key) -> dict[Hashable, list[Any]]:
    groups: dict[Hashable, list[Any]] = defaultdict(list)
    for each in each_of:
        key = key_of(each)
        if key is not None:
            groups[key].append(each)
    return groups


def _answered_ns(asked: Asked) -> int:
    span = asked.model.span
    return max(span.start_ns, span.end_ns or 0)


def _begun_ns(asked: Asked) -> int:
    return asked.model.span.start_ns


def _said(each: Asked | ToolItem) -> tuple[str | None, str, dict[str, Any] | None]:
    """Return id, plain name and arguments."""
    if isinstance(each, Asked):
        return each.call.id, plain_name(each.call.name), each.call.arguments
    return each.reading.call_id, plain_name(each.reading.name or ""), each.reading.arguments


def _by_id(each: Asked | ToolItem) -> Hashable | None:
    return _said(each)[0]


def _by_id_and_name(each: Asked | ToolItem) -> Hashable | None:
    call_id, name, _ = _said(each)
    return None if call_id is None else (call_id, name)


def _by_id_and_arguments(each: Asked | ToolItem) -> Hashable | None:
    call_id, name, arguments = _said(each)
    return None if call_id is None or arguments is None else (call_id, name, digest(arguments))


def _by_name(each: Asked | ToolItem) -> Hashable | None:
    return _said(each)[1]


def _by_arguments(each: Asked | ToolItem) -> Hashable | None:
    _, name, arguments = _said(each)
    return None if arguments is None else (name, digest(arguments))


class _Shapes:
    """The sets of argument names with which each tool was asked for: programs add arguments of their own to a call."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._of: dict[str, list[frozenset[str]]] = defaultdict(list)
        for each in asked:
            _, name, arguments = _said(each)
            shape, known = frozenset(arguments or ()), self._of[name]
            if shape and shape not in known and len(known) < _MOST_SHAPES:
                known.append(shape)

    def key(self, item: ToolItem) -> Hashable | None:
        """Return the key of the call that a span is of, with what its program added taken away."""
        _, name, arguments = _said(item)
        given = arguments or {}
        shape = max((each for each in self._of.get(name, ()) if each < given.keys()), key=len, default=None)
        return None if shape is None else (name, digest({each: given[each] for each in shape}))


def _by_arguments_and_result(each: Asked | ToolItem) -> Hashable | None:
    arguments, result = _by_arguments(each), _shown(each)
    return None if arguments is None or result is None else (arguments, result)


def _by_result(each: Asked | ToolItem) -> Hashable | None:
    result = _shown(each)
    return None if result is None else (_by_name(each), result)


def _shown(each: Asked | ToolItem) -> str | None:
    """Return a result as a model is told it: a call's in a later prompt, or a span's."""
    if isinstance(each, ToolItem):
        return _result_of(each)
    return each.told.content if each.told is not None and isinstance(each.told.content, str) else None


def _result_of(item: ToolItem) -> str | None:
    return None if item.reading.result is NOTHING else as_text(to_json(item.reading.result))


def _says(item: ToolItem) -> bool:
    """Tell whether a span says anything that another might not."""
    said = item.reading
    return said.arguments is not None or said.result is not NOTHING or item.error is not None


def _differ(one: ToolItem, other: ToolItem) -> bool:
    """Tell whether it makes a difference which of two spans answers a call; what was done inside is not compared."""
    if one.inside is not None or other.inside is not None:
        return True
    return _outcome_of(one) != _outcome_of(other)


def _outcome_of(item: ToolItem) -> tuple[Any, ...]:
    return _result_of(item), item.error, item.reading.arguments


def plain_name(name: str) -> str:
    """Return a name without what frameworks add to it or change in it."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
