"""Do two runs consist of the same events? All but ids and times, per owner, whatever order calls finished in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.diagnose.diff_values import differences, written_alike
from playhead.errors import RecordingEndedError
from playhead.trace.events import (
    EmissionChanged,
    EmissionSuppressed,
    FactRecorded,
    KillswitchFired,
    LlmFailed,
    LlmRequested,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
    UnknownEvent,
)
from playhead.trace.events.base import volatile_fields
from playhead.trace.parameters import not_comparable
from playhead.trace.types import AgentHeader

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue

ENDINGS: Final = frozenset({"final-answer", "kernel-state-snapshot", "agent-completed", "run-completed"})
"""Kinds that an agent writes when it ends, for whatever reason."""

SHOWN: Final = 6
"""Fields of an event that are named when they differ."""
Lane = tuple[str, str]
"""An owner, and a call or an emission of it that may come beside others or, as an empty text, its own thread of events."""


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

    def __init__(self, recorded: Iterable[Record], *, open_ended: bool, open_owners: Container[str] = ()) -> None:
        """Compare with these records; `open_ended` says that the recording may end before the replay does.

        Of `open_owners` alone it may do so, too.
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
        if record.event.incidental or _is_of_hook(record.event):
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
        if now.lane not in self._found and (divergence := _compare(recorded[place], now)) is not None:
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
        return not (event.incidental or _is_of_hook(event))


def _is_of_hook(event: EventBase) -> bool:
    """Return whether a hook of the user's recorded or asked this: without its code it does not come again."""
    return getattr(event, "by", None) is not None or (isinstance(event, FactRecorded) and event.name == "hook")


class Placed(NamedTuple):
    """A record in the lane that it belongs to."""

    lane: Lane
    record: Record
    calls_before: int
    """Calls of the owner that had ended when this one started; 0 for whatever else."""


class LaneOrder:
    """Sorts records into lanes whose order is determined.

    Read-only calls may run beside each other and finish in any order, so each has a lane of its own. All other calls
    run alone: they stand in their owner's lane, and with each start goes how many calls had ended before it. What a
    transform did to a payload comes while calls run beside each other, so each emission has a lane, too.
    """

    def __init__(self) -> None:
        self._read_only: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str], Lane] = {}
        self._ended: dict[str, int] = defaultdict(int)

    def place(self, record: Record) -> Placed:
        """Return the record's lane; records have to come in the order of their run."""
        owner, event = record.owner, record.event
        if isinstance(event, ToolsDefined) and not event.offered:
            self._read_only |= {(owner, spec.name) for spec in event.tools if spec.read_only}
        if isinstance(event, (EmissionChanged, EmissionSuppressed)):
            return Placed((owner, f"{event.tag} {event.key}"), record, 0)
        if isinstance(event, ToolCallStarted):
            return self._start(record, event)
        lane = self._calls.get((owner, call_of(event)), (owner, ""))
        if isinstance(event, ToolCallCompleted):
            self._ended[owner] += 1
        return Placed(lane, record, 0)

    def may_run_beside(self, owner: str, tool: str) -> bool:
        """Return whether calls of this tool may run beside others."""
        return (owner, tool) in self._read_only

    def _start(self, record: Record, event: ToolCallStarted) -> Placed:
        beside = self.may_run_beside(record.owner, event.tool)
        lane = self._calls[record.owner, event.call_id] = (record.owner, event.call_id if beside else "")
        return Placed(lane, record, 0 if beside else self._ended[record.owner])


def is_ending(record: Record) -> bool:
    """Return whether an agent writes this because it ends, or because nobody waits for an answer any more."""
    event = record.event
    if isinstance(event, LlmFailed):
        return bool(event.cancelled) or event.error.type == RecordingEndedError.__name__
    if isinstance(event, KillswitchFired):
        return event.at == "outside"  # at a moment that no replay has
    return record.kind in ENDINGS or (isinstance(event, ToolCallCompleted) and event.ended == "cancelled")


def call_of(event: EventBase) -> str:
    """Return the id of the call that an event belongs to, or an empty text."""
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    if event.kind == "fact-recorded":
        return str(fields.get("key", ""))
    return "" if event.kind == "agent-started" else str(fields.get("call_id", ""))


def _compare(recorded: Placed, now: Placed) -> Divergence | None:
    if not _same(recorded.record, now.record):
        return _difference(recorded.record, now.record)
    if recorded.calls_before != now.calls_before:
        record = recorded.record
        what = "other calls had ended when this one started, which has to run alone"
        return Divergence(record.owner, _where(record), what, recorded.calls_before, now.calls_before, record.seq)
    return None


def _extra(record: Record) -> Divergence:
    what = f"the replay goes on with {record.kind}"
    return Divergence(record.owner, _where(record), what, None, _data(record.event), None)


def _missing(record: Record) -> Divergence:
    what = f"the replay has no {record.kind} here"
    return Divergence(record.owner, _where(record), what, _data(record.event), None, record.seq)


def _same(one: Record, other: Record) -> bool:
    if one.kind != other.kind or one.iteration != other.iteration:
        return False
    left, right, volatile = one.event.__dict__, other.event.__dict__, volatile_fields(type(one.event))
    for name, value in left.items():  # a loop, and `is` first: this is most of the time that a reproduction takes
        now = right.get(name)
        if value is now or name in volatile:
            continue
        if not (value == now if type(value) is str else _alike(value, now)):
            return False
    return True


def _alike(recorded: Any, now: Any) -> bool:  # noqa: ANN401 - any field of any event
    if isinstance(recorded, AgentHeader) and isinstance(now, AgentHeader):
        # What the fingerprints of code say is no event of a run; `Reproduction.changed_sources` has it.
        now = now.model_copy(update={"sources": recorded.sources})
    return written_alike(recorded, now)


def _difference(one: Record, other: Record) -> Divergence:
    where = _where(one)
    if one.kind != other.kind:
        what = f"{other.kind} instead of {one.kind}"
        return Divergence(one.owner, where, what, _data(one.event), _data(other.event), one.seq)
    if one.iteration != other.iteration:
        what = f"{one.kind} comes in another turn"
        return Divergence(one.owner, where, what, one.iteration, other.iteration, one.seq)
    found = list(differences(_data(one.event), _data(other.event), SHOWN, written_alike))
    if not found:  # a field that a newer version added to a part of an event
        return Divergence(one.owner, where, f"{one.kind} differs", _data(one.event), _data(other.event), one.seq)
    first, *more = found
    besides = ", ".join(each.path for each in more)
    what = f"{first.path} of {one.kind} differs{f', and {besides}' if besides else ''}"
    return Divergence(one.owner, where, what, first.original, first.replay, one.seq)


def _data(event: EventBase) -> dict[str, Any]:
    data = event.model_dump(mode="json", exclude={"kind", *volatile_fields(type(event))}, exclude_none=True)
    if isinstance(data.get("agent"), dict):
        data["agent"].pop("sources", None)
    return data


def _where(record: Record) -> str:
    place = "outside the loop" if record.iteration is None else f"iteration {record.iteration}"
    call = call_of(record.event)
    return f"{place}{f', call {call}' if call else ''}: {record.kind}"
