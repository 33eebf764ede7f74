"""The events of a run in lanes whose order is determined, and whether two events are the same: what reproduce and diff share.

Calls that may run beside each other finish in any order, so the order of a file says little. Inside a lane it says all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.diagnose.diff_values import plain, same
from playhead.trace.events import (
    EmissionChanged,
    EmissionSuppressed,
    FactRecorded,
    ToolCallCompleted,
    ToolCallStarted,
    ToolsDefined,
)
from playhead.trace.types import AgentHeader, volatile_fields

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

Lane = tuple[str, str]
"""An owner, and a call or an emission of it that may come beside others or, as an empty text, its own thread of events."""


class Placed(NamedTuple):
    """A record in the lane that it belongs to."""

    lane: Lane
    record: Record
    calls_before: int
    """Calls of the owner that had ended when this one started; 0 for whatever else."""


class LaneOrder:
    """Sorts records into lanes.

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
            beside = (owner, event.tool) in self._read_only
            lane = self._calls[owner, event.call_id] = (owner, event.call_id if beside else "")
            return Placed(lane, record, 0 if beside else self._ended[owner])
        lane = self._calls.get((owner, call_of(event)), (owner, ""))
        if isinstance(event, ToolCallCompleted):
            self._ended[owner] += 1
            if (owner, event.tool) in self._read_only:  # also one whose start stands in a damaged line
                lane = (owner, event.call_id)
        return Placed(lane, record, 0)


def call_of(event: EventBase) -> str:
    """Return the id of the call that an event belongs to, or an empty text."""
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    if event.kind == "fact-recorded":
        return str(fields.get("key", ""))
    return "" if event.kind == "agent-started" else str(fields.get("call_id", ""))


def is_compared(event: EventBase) -> bool:
    """Return whether an event tells what the agent did, and comes again without the code of a hook of the user's."""
    of_hook = getattr(event, "by", None) is not None or (isinstance(event, FactRecorded) and event.name == "hook")
    return not (event.incidental or of_hook)


def same_event(one: Record, other: Record, left_out: AbstractSet[str] = frozenset()) -> bool:
    """Return whether two records tell the same, but for ids, times and the fields to leave out."""
    if one.kind != other.kind or one.iteration != other.iteration:
        return False
    left, right, volatile = one.event.__dict__, other.event.__dict__, volatile_fields(type(one.event))
    for name, value in left.items():  # a loop, and `is` first: this is most of the time that a reproduction takes
        now = right.get(name)
        if value is now or name in volatile or name in left_out:
            continue
        if not (value == now if type(value) is str else same(_comparable(value), _comparable(now))):
            return False
    return True


def told(event: EventBase, left_out: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """Return what is compared of an event, as JSON."""
    skipped = volatile_fields(type(event)) | left_out | {"kind"}
    fields = ((name, each) for name, each in event.__dict__.items() if name not in skipped and each is not None)
    return {name: plain(_comparable(each)) for name, each in fields}


def _comparable(value: Any) -> Any:  # noqa: ANN401 - any field of any event
    """Return a field; what the fingerprints of code say is no event of a run, other parts of reproduce and diff have it."""
    return value.model_copy(update={"sources": None}) if isinstance(value, AgentHeader) else value
