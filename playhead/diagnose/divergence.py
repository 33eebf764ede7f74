"""Do two runs consist of the same events? All but ids and times, per owner, whatever order calls finished in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.diff_values import differences
from playhead.diagnose.lanes import Lane, LaneOrder, Placed, call_of, is_compared, same_event, told
from playhead.errors import RecordingEndedError
from playhead.trace.events import (
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    ToolCallCompleted,
    UnknownEvent,
)
from playhead.trace.owners import is_within
from playhead.trace.parameters import not_comparable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet

    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue

ENDINGS: Final = frozenset({"final-answer", "kernel-state-snapshot", "agent-completed", "run-completed"})
"""Kinds that an agent writes when it ends, for whatever reason."""
SPENDING: Final = frozenset({"usage", "cost_usd", "cost_unknown"})
"""Fields that sum up what an agent and those below it spent."""

SHOWN: Final = 6
"""Fields of an event that are named when they differ."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event of a lane that is not what was recorded."""

    owner: str
    """Whose event it is."""
    where: str
    """Turn, call and kind."""
    what: str
    """What differs, as a sentence."""
    expected: JsonValue
    """What the recording has there."""
    actual: JsonValue
    """What the replay did."""
    seq: int | None
    """`seq` of the recorded event; None when the replay did something more."""


class Comparison:
    """Takes the events of a replay as they come and compares each with what was recorded at its place.

    The replay's events are not kept: a replay of a long run needs no more memory than the recording does.
    """

    def __init__(self, recorded: Iterable[Record], *, open_ended: bool, open_owners: Collection[str] = ()) -> None:
        """Compare with these records; `open_ended` says that the recording may end before the replay does.

        Of `open_owners` alone it may do so, too; what those above them spent in all is not compared then.
        """
        self._open_owners = open_owners
        self.not_compared: set[str] = set()
        """Kinds, and fields of kinds, that a newer version recorded and this one does not know, and parameters that are not
        recorded and of which the fingerprints are of two keys."""
        self._open_ended = open_ended
        self._lanes: dict[Lane, list[Placed]] = defaultdict(list)
        self._order = LaneOrder()
        self._seen: dict[Lane, int] = defaultdict(int)
        self._found: dict[Lane, Divergence] = {}
        order = LaneOrder()
        for record in recorded:
            if self.is_comparable(record):
                placed = order.place(record)
                self._lanes[placed.lane].append(placed)

    @property
    def first(self) -> Divergence | None:
        """The first divergence so far."""
        return next(iter(self._found.values()), None)

    def add(self, record: Record) -> bool:
        """Compare the next event of the replay; return whether there is a recorded one at its place."""
        if not is_compared(record.event):
            return False
        now = self._order.place(record)
        place, recorded = self._seen[now.lane], self._lanes.get(now.lane, [])
        self._seen[now.lane] = place + 1
        if place >= len(recorded):
            if not (self._open_ended or record.owner in self._open_owners or now.lane in self._found):
                self._found[now.lane] = _extra(record)
            return False
        if isinstance(record.event, LlmRequested):
            then = getattr(recorded[place].record.event, "parameters", {})
            self.not_compared.update(f"parameters.{path}" for path in not_comparable(then, record.event.parameters))
        sums_up = record.kind in ENDINGS and any(is_within(owner, record.owner) for owner in self._open_owners)
        left_out = SPENDING if sums_up else frozenset[str]()
        if now.lane not in self._found and (divergence := _compare(recorded[place], now, left_out)) is not None:
            self._found[now.lane] = divergence
        return True

    def events(self) -> int:
        """Return how many recorded events have been compared."""
        return sum(min(self._seen[lane], len(recorded)) for lane, recorded in self._lanes.items())

    def divergences(self, *, cut_short: bool) -> tuple[Divergence, ...]:
        """Return where the replay is not what was recorded: at most one divergence a lane, in the recording's order.

        With `cut_short` the replay may lack what agents write because they end. Everything else that was recorded has
        to come out again, whether the recording is whole or not.
        """
        found = dict(self._found)
        for lane, recorded in self._lanes.items():
            left = [each.record for each in recorded[self._seen[lane] :]]
            missing = next((record for record in left if not (cut_short and is_ending(record))), None)
            if missing is not None:
                found.setdefault(lane, _missing(missing))
        return tuple(sorted(found.values(), key=lambda each: (each.seq is None, each.seq or 0)))

    def is_comparable(self, record: Record) -> bool:
        """Return whether this version knows the event, and it tells what the agent did."""
        event = record.event
        if isinstance(event, UnknownEvent):
            self.not_compared.add(event.kind)
            return False
        self.not_compared.update(f"{event.kind}.{name}" for name in event.__pydantic_extra__ or ())
        return is_compared(event)


def is_ending(record: Record) -> bool:
    """Return whether an agent writes this because it ends, or because nobody waits for an answer any more."""
    event = record.event
    if isinstance(event, LlmFailed):
        return bool(event.cancelled) or event.error.type == RecordingEndedError.__name__
    if isinstance(event, KillswitchFired):
        return event.at == "outside"  # at a moment that no replay has
    return record.kind in ENDINGS or (isinstance(event, ToolCallCompleted) and event.ended == "cancelled")


def _compare(recorded: Placed, now: Placed, left_out: AbstractSet[str]) -> Divergence | None:
    if not same_event(recorded.record, now.record, left_out):
        return _difference(recorded.record, now.record)
    if recorded.calls_before != now.calls_before:
        record = recorded.record
        what = "other calls had ended when this one started, which has to run alone"
        return Divergence(record.owner, _where(record), what, recorded.calls_before, now.calls_before, record.seq)
    return None


def _extra(record: Record) -> Divergence:
    what = f"the replay goes on with {record.kind}"
    return Divergence(record.owner, _where(record), what, None, told(record.event), None)


def _missing(record: Record) -> Divergence:
    what = f"the replay has no {record.kind} here"
    return Divergence(record.owner, _where(record), what, told(record.event), None, record.seq)


def _difference(one: Record, other: Record) -> Divergence:
    where = _where(one)
    if one.kind != other.kind:
        what = f"{other.kind} instead of {one.kind}"
        return Divergence(one.owner, where, what, told(one.event), told(other.event), one.seq)
    if one.iteration != other.iteration:
        what = f"{one.kind} comes in another turn"
        return Divergence(one.owner, where, what, one.iteration, other.iteration, one.seq)
    found = differences(told(one.event), told(other.event), SHOWN)
    if not found:  # a field that a newer version added to a part of an event
        return Divergence(one.owner, where, f"{one.kind} differs", told(one.event), told(other.event), one.seq)
    first, *more = found
    besides = ", ".join(each.path for each in more)
    what = f"{first.path} of {one.kind} differs{f', and {besides}' if besides else ''}"
    return Divergence(one.owner, where, what, first.original, first.replay, one.seq)


def _where(record: Record) -> str:
    place = "outside the loop" if record.iteration is None else f"iteration {record.iteration}"
    call = call_of(record.event)
    return f"{place}{f', call {call}' if call else ''}: {record.kind}"
