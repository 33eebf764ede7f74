"""Find where two runs diverge: the comparison of events that `reproduce`, `resume` and `diff` share.

Events are compared lane by lane (`LaneOrder`), so ids, times and the order in which concurrent calls finish do not matter. Only
the first difference of each lane is kept, because later ones may follow from it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.diff_values import differences, plain, same_fields
from playhead.trace.base import volatile_fields
from playhead.trace.events import (
    EmissionChanged,
    EmissionSuppressed,
    FactRecorded,
    LlmRequested,
    MessageAdded,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
    UnknownEvent,
)
from playhead.trace.owners import is_within
from playhead.trace.parameters import comparable, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from playhead.diagnose.diff_types import Difference
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue

ENDINGS: Final = frozenset({"final-answer", "kernel-state-snapshot", "agent-completed", "run-completed"})
"""Kinds that an agent writes when it ends, for any reason."""
SPENDING: Final = frozenset({"usage", "cost_usd", "cost_unknown"})
"""Fields that sum up what an agent and those below it spent."""
SHOWN: Final = 6
"""Fields of an event that a divergence names when they differ."""


Lane = tuple[str, str]
"""An owner, and a call or an emission of it that may come beside others or, as an empty text, its own thread of events."""


class Placed(NamedTuple):
    """A record and its lane."""

    lane: Lane
    record: Record
    calls_before: int
    """Calls of the owner that had ended when this one started; 0 for any other event."""


class LaneOrder:
    """Sorts records into lanes.

    Read-only calls may run concurrently and finish in any order, so each has its own lane. All other calls run alone: they are
    in their owner's lane, and each start records how many calls had ended before it. Transforms change payloads while calls
    run concurrently, so each emission has its own lane, too.
    """

    def __init__(self) -> None:
        self._read_only: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str], Lane] = {}
        self._ended: dict[str, int] = defaultdict(int)

    def place(self, record: Record) -> Placed:
        """Return the record with its lane; records must be given in the order of their run."""
        owner, event = record.owner, record.event
        if isinstance(event, ToolsDefined) and not event.offered:
            self._read_only |= {(owner, spec.name) for spec in event.tools if spec.read_only}
        if isinstance(event, (EmissionChanged, EmissionSuppressed)):
            return Placed((owner, f"{event.tag} {event.key}"), record, 0)
        if isinstance(event, ToolCallStarted):
            beside = (owner, event.tool) in self._read_only
            lane = self._calls[owner, event.call_id] = (owner, event.call_id if beside else "")
            return Placed(lane, record, 0 if beside else self._ended[owner])
        lane = self._calls.get((owner, call_of(event)), (owner, ""))
        if isinstance(event, ToolCallCompleted):
            self._ended[owner] += 1
            if (owner, event.tool) in self._read_only:  # also one whose start is in a damaged line
                lane = (owner, event.call_id)
        return Placed(lane, record, 0)


def call_of(event: EventBase) -> str:
    """Return the id of the call that an event belongs to, or an empty text."""
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    if event.kind == "fact-recorded":
        return str(fields.get("key", ""))
    return "" if event.kind == "agent-started" else str(fields.get("call_id", ""))


def is_compared(event: EventBase) -> bool:
    """Return whether an event is an act of the agent that recurs without the user's hooks."""
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    of_hook = fields.get("by") is not None or (isinstance(event, FactRecorded) and event.name == "hook")
    return not (event.incidental or of_hook)


def same_event(one: Record, other: Record, left_out: AbstractSet[str] = frozenset()) -> bool:
    """Return whether two records are equal, except for ids, times and the fields to leave out."""
    left, right = one.event, other.event
    return left.kind == right.kind and one.iteration == other.iteration and same_fields(left, right, left_out)


# --- the comparison ---------------------------------------------------------------------------------------------------


class Parting(NamedTuple):
    """The first difference of a lane: both events, or the only one."""

    recorded: Placed | None
    now: Placed | None
    after: Record | None
    """For an extra event, the last matched recorded event before it."""
    left_out: AbstractSet[str]
    """Fields that are not compared."""

    @property
    def place(self) -> float:
        """Its position in the recording; an extra event follows the last matched event."""
        return self.recorded.record.seq if self.recorded else (self.after.seq if self.after else -1) + 0.5

    def sides(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return both events as they are compared, as JSON."""
        one, other = (None if each is None else _compared(each, self.left_out) for each in self[:2])
        return one, other

    def differences(self) -> tuple[Difference, ...]:
        """Return the fields that differ; none where an event is missing, or of another kind."""
        if self.recorded is None or self.now is None or self.recorded.record.kind != self.now.record.kind:
            return ()
        found = differences(*self.sides())
        return found if len(found) == 1 else tuple(each for each in found if each.path != "args_hash")

    def sentence(self, found: tuple[Difference, ...], replay: str = "the replay") -> str:
        """Return what differs, as a sentence."""
        if self.recorded is None:
            return f"only {replay} has {_named(self.now)} here"
        if self.now is None:
            return f"{replay} has no {_named(self.recorded)} here"
        one, other = _named(self.recorded), _named(self.now)
        if self.recorded.record.kind != self.now.record.kind:
            return f"{other} instead of {one}"
        if self.recorded.record.iteration != self.now.record.iteration:
            return f"{one} comes in turn {self.now.record.iteration} instead of {self.recorded.record.iteration}"
        if self.recorded.calls_before != self.now.calls_before:
            return "other calls had ended when this one started, which has to run alone"
        first, *more = [each.path or "the value" for each in found[:SHOWN]] or [""]
        besides = f", and {', '.join(more)}" if more else ""
        of = f"{first} of " if first else ""  # nothing: a field that a newer version added to a part of an event
        return f"{of}{one} differs{besides}"


class Comparison:
    """Compares each event of a run with the recorded one at its place, as the events occur.

    Events are not stored, so a replay of a long run needs no more memory than the recording.
    """

    def __init__(
        self,
        recorded: Iterable[Record],
        *,
        open_ended: bool,
        open_owners: Collection[str] = (),
        left_out: AbstractSet[str] = frozenset(),
        compares: Callable[[EventBase], bool] = is_compared,
    ) -> None:
        """Compare with these records; `open_ended` says that the recording may end before the other run does.

        Of `open_owners` alone it may do so, too; what those above them spent in all is not compared then.
        """
        self.not_compared: set[str] = set()
        """Kinds, and fields of kinds, that a newer version recorded and this one does not know, and parameters that are not
        recorded and of which the fingerprints are of two keys."""
        self._open_ended, self._open_owners = open_ended, open_owners
        self._left_out, self._compares = left_out, compares
        self._lanes: dict[Lane, list[Placed]] = defaultdict(list)
        self._order = LaneOrder()
        self._seen: dict[Lane, int] = defaultdict(int)
        self._found: dict[Lane, Parting] = {}
        self._last: Record | None = None
        order = LaneOrder()
        for record in recorded:
            if self.is_comparable(record):
                placed = order.place(record)
                self._lanes[placed.lane].append(placed)

    @property
    def first(self) -> Parting | None:
        """The first difference so far."""
        return next(iter(self._found.values()), None)

    def add(self, record: Record) -> bool:
        """Compare the next event; return whether there is a recorded one at its place."""
        if not self.is_comparable(record):
            return False
        now = self._order.place(record)
        place, recorded = self._seen[now.lane], self._lanes.get(now.lane, [])
        self._seen[now.lane] = place + 1
        if place >= len(recorded):
            if not (self._open_ended or record.owner in self._open_owners):
                self._found.setdefault(now.lane, Parting(None, now, self._last, self._left_out))
            return False
        then = self._last = recorded[place].record
        if isinstance(record.event, LlmRequested):
            asked = getattr(then.event, "parameters", {})
            self.not_compared.update(_not_comparable(asked, record.event.parameters))
        sums_up = record.event.kind in ENDINGS and any(is_within(owner, record.owner) for owner in self._open_owners)
        left_out = self._left_out | SPENDING if sums_up else self._left_out
        same = recorded[place].calls_before == now.calls_before and same_event(then, record, left_out)
        if not same:
            self._found.setdefault(now.lane, Parting(recorded[place], now, None, left_out))
        return True

    def events(self) -> int:
        """Return how many recorded events have been compared."""
        return sum(min(self._seen[lane], len(recorded)) for lane, recorded in self._lanes.items())

    def partings(self, may_lack: Callable[[Record], bool] | None = None) -> list[Parting]:
        """Return the differences, at most one per lane, in the recording's order.

        All recorded events must recur in the other run, except those that it may lack.
        """
        found = dict(self._found)
        for lane, recorded in self._lanes.items():
            left = recorded[self._seen[lane] :]
            missing = next((each for each in left if may_lack is None or not may_lack(each.record)), None)
            if missing is not None:
                found.setdefault(lane, Parting(missing, None, None, self._left_out))
        return sorted(found.values(), key=lambda each: each.place)

    def is_comparable(self, record: Record) -> bool:
        """Return whether this version knows the event, and it is an act of the agent."""
        event = record.event
        if isinstance(event, UnknownEvent):
            self.not_compared.add(event.kind)
            return False
        if event.__pydantic_extra__:
            self.not_compared.update(f"{event.kind}.{name}" for name in event.__pydantic_extra__)
        return self._compares(event)


def _compared(placed: Placed, left_out: AbstractSet[str]) -> dict[str, Any]:
    """Return what is compared of an event, as JSON."""
    event = placed.record.event
    skipped = volatile_fields(type(event)) | left_out | {"kind"}
    fields = ((name, each) for name, each in event.__dict__.items() if name not in skipped and each is not None)
    before = {"calls_before": placed.calls_before} if placed.calls_before else {}
    return {name: plain(each) for name, each in fields} | before


def _named(placed: Placed | None) -> str:
    """Return the kind of an event with its tool, or the role of a message."""
    if placed is None:
        return "nothing"
    event = placed.record.event
    if isinstance(event, MessageAdded):
        return f"the {event.role} message"
    tool = getattr(event, "tool", None)
    return f"{event.kind} ({tool})" if tool else event.kind


def _not_comparable(then: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the paths at which two recorded sets of parameters have fingerprints made with different keys."""
    made = dict(unrecorded(now))
    yield from (
        f"parameters.{path}" for path, kept in unrecorded(then) if path in made and not comparable(kept, made[path])
    )
