"""The tool calls of a run in the order of asking, and which call of one run is which of the other.

A turn runs its calls beside each other, and agents work beside each other, so the order of the file says little. Here a
turn's calls stand by their place in it, and what an agent that was called did stands right after the call.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead.diagnose.diff_sequence import common_pairs, equal_pairs
from playhead.diagnose.diff_types import ToolUse
from playhead.trace.events import ToolCallCompleted, ToolCallStarted
from playhead.trace.forks import computed_once
from playhead.trace.owners import agent_path, owner_inside
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from playhead.trace.line import Record
    from playhead.trace.recording import Recording


@dataclass(eq=False, slots=True)
class Call:
    """One tool call."""

    record: Record
    event: ToolCallStarted
    use: ToolUse
    place: int = -1
    """Place among all calls of the run."""
    completed: Record | None = None

    @property
    def child(self) -> str:
        """The owner of what the call does inside."""
        return owner_inside(self.record.owner, self.event.tool, self.record.iteration, self.event.position)

    @property
    def end(self) -> ToolCallCompleted | None:
        """How the call ended."""
        event = self.completed.event if self.completed else None
        return event if isinstance(event, ToolCallCompleted) else None


@dataclass(eq=False)
class RunCalls:
    """The calls of a recording."""

    recording: Recording
    by_owner: dict[str, list[Call]] = field(default_factory=dict)
    """In order of asking."""

    def __post_init__(self) -> None:
        open_calls: dict[tuple[str, str], Call] = {}
        for record in self.recording.records:
            event = record.event
            if isinstance(event, ToolCallStarted):
                use = ToolUse(agent_path(record.owner), event.tool, json_hash(event.args))
                call = open_calls[record.owner, event.call_id] = Call(record, event, use)
                self.by_owner.setdefault(record.owner, []).append(call)
            elif isinstance(event, ToolCallCompleted):
                ended = open_calls.pop((record.owner, event.call_id), None)
                if ended is not None:
                    ended.completed = record
        self.by_owner = {owner: _as_asked(calls) for owner, calls in self.by_owner.items()}
        self._number()

    def leave_out(self, owners: Iterable[str]) -> None:
        """Leave out what happened to these owners and below them."""
        gone = frozenset(owners)
        if gone:
            self.by_owner = {name: calls for name, calls in self.by_owner.items() if not is_inside(name, gone)}
            self.__dict__.pop("all", None)
            self._number()

    def _number(self) -> None:
        for place, call in enumerate(self.all):
            call.place = place

    @computed_once
    def all(self) -> list[Call]:
        """Every call once, what happened inside a call right after it."""
        ordered: list[Call] = []
        seen: set[str] = set()
        for owner in ["root", *self.by_owner]:
            self._walk(owner, ordered, seen)
        return ordered

    def _walk(self, owner: str, ordered: list[Call], seen: set[str]) -> None:
        if owner in seen or _has_caller(owner, self.callers):
            return
        stack: list[Iterator[Call]] = [self._enter(owner, seen)]
        while stack:  # no recursion: a hostile file may nest as deep as it likes
            call = next(stack[-1], None)
            if call is None:
                stack.pop()
                continue
            ordered.append(call)
            if call.child in self.by_owner and call.child not in seen:
                stack.append(self._enter(call.child, seen))

    def _enter(self, owner: str, seen: set[str]) -> Iterator[Call]:
        seen.add(owner)
        return iter(self.by_owner.get(owner, ()))

    @computed_once
    def callers(self) -> set[str]:
        """Owners that a call of another owner led to."""
        return {call.child for calls in self.by_owner.values() for call in calls}

    def uses(self) -> tuple[ToolUse, ...]:
        """Return the sequence that is compared."""
        return tuple(call.use for call in self.all)


def tool_sequence(recording: Recording, *, not_entered: Iterable[str] = ()) -> tuple[ToolUse, ...]:
    """Return the tool calls of a run in the order of asking: the sequence that `apply_edits` works on.

    `not_entered` are the owners that a diff did not compare (`RunDiff.not_entered`, `RunDiff.replay_not_entered`).
    """
    calls = RunCalls(recording)
    calls.leave_out(not_entered)
    return calls.uses()


def is_inside(owner: str, owners: AbstractSet[str]) -> bool:
    """Return whether an owner is one of these, or below one."""
    while owner:
        if owner in owners:
            return True
        owner = owner.rpartition("/")[0]
    return False


def _has_caller(owner: str, callers: set[str]) -> bool:
    return owner != "root" and owner in callers


def _as_asked(calls: list[Call]) -> list[Call]:
    turns: dict[int | None, int] = {}
    for call in calls:
        turns.setdefault(call.record.iteration, len(turns))
    return sorted(calls, key=lambda call: (turns[call.record.iteration], call.event.position))


@dataclass(eq=False)
class Alignment:
    """Which calls, and which owners, of two runs belong together."""

    original: RunCalls
    replay: RunCalls
    pairs: list[tuple[Call, Call]] = field(default_factory=list)
    """Calls of the same tool by the same agent: with the same arguments, or in the same place with others."""
    owners: dict[str, str] = field(default_factory=dict)
    """The original's owner for each of the replay's that has one."""
    not_entered: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Owners inside the bodies of tools, the original's and the replay's, whose result the other run took from a
    recording: a body that did not run is no difference."""

    def __post_init__(self) -> None:
        self._paired: set[int] = set()
        self._taken: set[str] = set()
        self._todo: list[tuple[str, str]] = []
        self._enter("root", "root")
        self._work()
        self._pair_strays()
        self._work()
        self.original.leave_out(self.not_entered[0])
        self.replay.leave_out(self.not_entered[1])
        self._pair_leftovers()
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
        """Pair two owners, unless there is no such owner, or one of them has its partner already."""
        known = one in self.original.recording.owners and other in self.replay.recording.owners
        if known and other not in self.owners and one not in self._taken:
            self.owners[other] = one
            self._taken.add(one)
            self._todo.append((one, other))

    def _pair_leftovers(self) -> None:
        """Pair what is left of equal calls: they moved from one instance of an agent to another."""
        left, right = self._free(self.original.all), self._free(self.replay.all)
        for one, other in equal_pairs([call.use for call in left], [call.use for call in right]):
            self._pair(left[one], right[other])

    def _pair_strays(self) -> None:
        """Pair owners that no recorded call led to, which only damage can leave, by their names."""
        for owner in self.replay.recording.owners:
            if owner not in self.replay.callers:
                self._enter(owner, owner)


def _is_served(call: Call) -> bool:
    """Return whether the result of a call came from a recording, so that no body ran."""
    return call.end is not None and call.end.rung not in (None, "live")


def align(left: list[Call], right: list[Call]) -> list[tuple[Call, Call]]:
    """Return the calls of two owners that belong together.

    First those that come in the same order, then equal ones that moved, then those of the same tool between the same
    two neighbours: they were called with other arguments.
    """
    a, b = [call.use[1:] for call in left], [call.use[1:] for call in right]
    kept = common_pairs(a, b)
    pairs = list(kept)
    free_a, free_b = _free(len(a), kept, 0), _free(len(b), kept, 1)
    moved = [
        (free_a[one], free_b[other])
        for one, other in equal_pairs([a[place] for place in free_a], [b[place] for place in free_b])
    ]
    pairs += moved
    pairs += _rewritten(left, right, kept, moved)
    return [(left[one], right[other]) for one, other in pairs]


def _free(count: int, pairs: list[tuple[int, int]], side: int) -> list[int]:
    taken = {pair[side] for pair in pairs}
    return [place for place in range(count) if place not in taken]


def _rewritten(
    left: list[Call], right: list[Call], kept: list[tuple[int, int]], moved: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return calls of the same tool that stand in the same gap between kept calls, in order."""
    waiting: dict[Any, list[int]] = defaultdict(list)
    gaps_a, gaps_b = _gaps(len(left), kept, 0), _gaps(len(right), kept, 1)
    for place in reversed(_free(len(left), kept + moved, 0)):
        waiting[gaps_a[place], left[place].event.tool].append(place)
    return [
        (waiting[key].pop(), place)
        for place in _free(len(right), kept + moved, 1)
        if waiting.get(key := (gaps_b[place], right[place].event.tool))
    ]


def _gaps(count: int, kept: list[tuple[int, int]], side: int) -> list[int]:
    """Return for each place how many kept calls stand before it."""
    starts = {pair[side] for pair in kept}
    gaps, seen = [], 0
    for place in range(count):
        gaps.append(seen)
        seen += place in starts
    return gaps
