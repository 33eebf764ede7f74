"""The tool calls of two runs, which calls correspond, and how they differ.

Calls and agents run concurrently, so their order in the file means little. Here a turn's calls are sorted by their position
in the turn, and what happened inside a call follows right after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.diagnose.diff_types import CallChange, ToolEdit, ToolUse
from playhead.diagnose.diff_values import differences, same, unlike_part
from playhead.trace.owners import agent_path, is_within, owner_inside, places_of
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from playhead.diagnose.diff_types import EditKind
    from playhead.diagnose.recording import RecordedCall, Recording
    from playhead.trace.values import JsonValue

    Pair = tuple[int, int]


@dataclass(eq=False, slots=True)
class Call:
    """One tool call."""

    owner: str
    made: RecordedCall
    use: ToolUse
    child: str
    """The owner of what the call does inside."""
    place: int = -1
    """Place among all calls of the run."""

    @property
    def outcome(self) -> JsonValue:
        """The result or the error; None if its end is not recorded."""
        end = self.made.completed
        if end is None or end.ok:
            return {"result": end.result} if end else None
        error = end.error
        return {"error": {"type": error.type, "message": error.message} if error else {"type": "error", "message": ""}}

    @property
    def reason(self) -> str | None:
        """The stated reason."""
        return self.made.started.rationale.why if self.made.started.rationale else None


class RunCalls:
    """The calls of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        calls = [_call(owner.owner, each) for owner in recording.owners.values() for each in owner.calls.values()]
        self.all = sorted(calls, key=lambda call: places_of(call.child))
        """Every call once; calls made inside a call follow right after it."""
        self.by_owner: dict[str, list[Call]] = defaultdict(list)
        """In the order in which they were requested."""
        self.leave_out(())

    def leave_out(self, owners: Iterable[str]) -> None:
        """Leave out the calls of these owners and of those below them."""
        for owner in owners:
            self.all = [call for call in self.all if not is_within(call.owner, owner)]
        self.by_owner.clear()
        for place, call in enumerate(self.all):
            call.place = place
            self.by_owner[call.owner].append(call)


def _call(owner: str, made: RecordedCall) -> Call:
    started = made.started
    use = ToolUse(agent_path(owner), started.tool, json_hash(started.args))
    return Call(owner, made, use, owner_inside(owner, started.tool, made.iteration, started.position))


@dataclass(eq=False)
class Alignment:
    """The corresponding calls and owners of two runs."""

    original: RunCalls
    replay: RunCalls
    pairs: list[tuple[Call, Call]] = field(default_factory=list)
    """Calls of the same tool by the same agent, with the same arguments, or in the same place with different ones."""
    owners: dict[str, str] = field(default_factory=dict)
    """The original's owner for each owner of the replay that has one."""
    not_entered: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Owners inside the bodies of tools, of the original and of the replay, where the other run took the result from a
    recording. That a body did not run is not a difference."""

    def __post_init__(self) -> None:
        self._paired: set[int] = set()
        self._taken: set[str] = set()
        self._todo: list[tuple[str, str]] = []
        self._enter("root", "root")
        self._work()
        self.original.leave_out(self.not_entered[0])
        self.replay.leave_out(self.not_entered[1])
        left, right = self._free(self.original.all), self._free(self.replay.all)
        for one, other in equal_pairs([call.use for call in left], [call.use for call in right]):
            self._pair(left[one], right[other])  # they moved from one instance of an agent to another
        self._work()

    def _work(self) -> None:
        while self._todo:
            one, other = self._todo.pop()
            left, right = self.original.by_owner.get(one, ()), self.replay.by_owner.get(other, ())
            for a, b in align(self._free(left), self._free(right)):
                self._pair(a, b)

    def _free(self, calls: Iterable[Call]) -> list[Call]:
        return [call for call in calls if id(call) not in self._paired]

    def _pair(self, a: Call, b: Call) -> None:
        self.pairs.append((a, b))
        self._paired |= {id(a), id(b)}
        inside = a.child in self.original.recording.owners, b.child in self.replay.recording.owners
        if all(inside):
            self._enter(a.child, b.child)
        elif inside[0] and _is_served(b):
            self.not_entered[0].add(a.child)
        elif inside[1] and _is_served(a):
            self.not_entered[1].add(b.child)

    def _enter(self, one: str, other: str) -> None:
        """Pair two owners, unless one of them does not exist or is already paired."""
        known = one in self.original.recording.owners and other in self.replay.recording.owners
        if known and other not in self.owners and one not in self._taken:
            self.owners[other] = one
            self._taken.add(one)
            self._todo.append((one, other))


def _is_served(call: Call) -> bool:
    """Return whether the result of a call came from a recording, so that no body ran."""
    return call.made.completed is not None and call.made.completed.rung not in (None, "live")


def align(left: list[Call], right: list[Call]) -> Iterator[tuple[Call, Call]]:
    """Yield the corresponding calls of two owners.

    First those in the same order, then equal ones that moved, then those of the same tool between the same two neighbours,
    which were called with different arguments.
    """
    kept = common_pairs([call.use[1:] for call in left], [call.use[1:] for call in right])
    yield from ((left[one], right[other]) for one, other in kept)
    free = [_free(left, [one for one, _ in kept]), _free(right, [other for _, other in kept])]
    for alike in (lambda _, call: call.use[1:], lambda gap, call: (gap, call.use.tool)):
        pairs = equal_pairs(*([alike(*each) for each in side] for side in free))
        yield from ((free[0][one][1], free[1][other][1]) for one, other in pairs)
        for side, places in enumerate(zip(*pairs, strict=True)):
            taken = set(places)
            free[side] = [each for place, each in enumerate(free[side]) if place not in taken]


def _free(calls: list[Call], kept: list[int]) -> list[tuple[int, Call]]:
    """Return the calls that are not kept, each with the number of kept ones before it."""
    taken = set(kept)
    return [(bisect_left(kept, place), call) for place, call in enumerate(calls) if place not in taken]


# --- how calls differ ------------------------------------------------------------------------------------------------


def call_script(alignment: Alignment) -> tuple[ToolEdit, ...]:
    """Return every call, edited or unchanged, in the replay's order; removed calls stand where they were."""
    in_place = set(longest_increasing((a.place, b.place) for a, b in alignment.pairs))
    rows = [_edit(_kind(a, b, in_place), a, b) for a, b in alignment.pairs]
    paired = {id(call) for pair in alignment.pairs for call in pair}
    rows += [_edit("removed", call, None) for call in alignment.original.all if id(call) not in paired]
    rows += [_edit("added", None, call) for call in alignment.replay.all if id(call) not in paired]
    both = sorted((a.place, b.place) for a, b in alignment.pairs if _kind(a, b, in_place) != "reordered")

    def order(row: ToolEdit) -> tuple[float, int]:
        if row.replay_place is not None:
            return row.replay_place, 0
        place = row.original_place or 0
        before = bisect_left(both, (place, -1)) - 1
        return (both[before][1] + 0.5 if before >= 0 else -0.5), place

    return tuple(sorted(rows, key=order))


def _kind(a: Call, b: Call, in_place: set[tuple[int, int]]) -> EditKind:
    if a.use != b.use:
        return "arguments"
    return "same" if (a.place, b.place) in in_place else "reordered"


def _edit(kind: EditKind, a: Call | None, b: Call | None) -> ToolEdit:
    call = b or a
    assert call is not None  # noqa: S101 - an edit is of a call
    return ToolEdit(
        kind=kind,
        owner=call.use.owner,
        tool=call.use.tool,
        args_hash=call.use.args_hash,
        original_place=a.place if a else None,
        replay_place=b.place if b else None,
        original_seq=a.made.seq if a else None,
        replay_seq=b.made.seq if b else None,
        original_args=a.made.started.args if a else None,
        replay_args=b.made.started.args if b else None,
        differences=differences(a.made.started.args, b.made.started.args) if a and b and kind == "arguments" else (),
    )


def result_changes(alignment: Alignment) -> tuple[CallChange, ...]:
    """Return the calls with the same arguments and different outcomes, as far as both runs are known."""
    known = [run.recording.ending is not None for run in (alignment.original, alignment.replay)]
    pairs = (
        (a, b) for a, b in alignment.pairs if a.use == b.use and (a.outcome or known[0]) and (b.outcome or known[1])
    )
    return _changes(pairs, lambda call: call.outcome)


def rationale_changes(alignment: Alignment) -> tuple[CallChange, ...]:
    """Return the calls of both runs whose stated reason differs."""
    return _changes(alignment.pairs, lambda call: call.reason)


def _changes(pairs: Iterable[tuple[Call, Call]], shown: Callable[[Call], JsonValue]) -> tuple[CallChange, ...]:
    """Return the pairs of calls that differ in what is shown of them, in the original's order."""
    return tuple(
        CallChange(
            owner=a.use.owner,
            tool=a.use.tool,
            args=a.made.started.args,
            original_seq=a.made.seq,
            replay_seq=b.made.seq,
            original=shown(a),
            replay=shown(b),
            rung=b.made.completed.rung if b.made.completed else None,
        )
        for a, b in sorted(pairs, key=lambda pair: pair[0].place)
        if not same(shown(a), shown(b))
    )


# --- sequences --------------------------------------------------------------------------------------------------------


def common_pairs(left: list[Hashable], right: list[Hashable]) -> list[Pair]:
    """Return the places of a common subsequence, in order; it is long, but not always the longest."""
    start, a, b = unlike_part(left, right)
    end = len(left) - start - len(a)
    middle = longest_increasing(equal_pairs(a, b))
    return [
        *((place, place) for place in range(start)),
        *((one + start, other + start) for one, other in middle),
        *((len(left) - place, len(right) - place) for place in range(end, 0, -1)),
    ]


def equal_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Pair equal items: the first on the left with the first on the right, the second with the second, and so on."""
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for place, item in enumerate(right):
        places[item].append(place)
    return [(place, places[item].popleft()) for place, item in enumerate(left) if places.get(item)]


def longest_increasing(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the most pairs that stand in the same order on both sides, in n log n steps. No place may occur twice."""
    ends: list[int] = []
    """By length: the lowest place at which an increasing sequence of this length ends."""
    chains: list[Any] = []
    """The pairs of that sequence, each with those before it."""
    for pair in sorted(pairs):
        length = bisect_left(ends, pair[1])
        ends[length : length + 1] = [pair[1]]
        chains[length : length + 1] = [(pair, chains[length - 1] if length else None)]
    kept: list[Pair] = []
    chain = chains[-1] if chains else None
    while chain is not None:
        pair, chain = chain
        kept.append(pair)
    return kept[::-1]
