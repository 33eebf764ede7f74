"""The first event of two runs that is not the same, whatever ids, times and the order of concurrent work may be.

Events are laid side by side lane by lane (`lanes.LaneOrder`); ids are named by what they stand for first. In the first
lane that differs a short look ahead tells a changed event from one that is missing or was put in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from playhead.diagnose.diff_calls import is_inside
from playhead.diagnose.diff_values import plain
from playhead.diagnose.lanes import Lane, LaneOrder, Placed, same_event, told
from playhead.trace.events import AgentStarted, LlmResponded, RunStarted, ToolCallStarted, UnknownEvent
from playhead.trace.types import altered
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    from playhead.diagnose.diff_calls import Alignment
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording

MEASURES: Final = frozenset({"usage", "cost_usd", "delay_s"})
"""Fields that tell what something cost or how long was waited: the diff sums them up, and they are no divergence."""
_COUNTERS: Final = MEASURES | {
    *("id", "request", "attempt", "messages", "position", "replaces", "steps", "call_id", "ref", "tool_call_id", "key")
}
"""Fields that count, or name what is counted: an event that was put in shifts them in all that follow."""
_IDS: Final = frozenset({"call_id", "tool_call_id", "key", "id", "call"})
"""Names under which an event, a message, a call or a reference has the id of a call."""
_WITH_IDS: Final = ("call_id", "tool_call_id", "key", "tool_calls", "ref")
"""Fields of events that hold such ids."""
_PAYLOADS: Final = ("llm.request", "llm.response")
"""Tags whose payload holds such ids."""
_NUMBERED: Final = ("llm-requested", "llm-responded", "llm-failed", "tool-call-started", "tool-call-completed")
_SINGLE: Final = ("final-answer", "agent-started", "agent-completed", "run-completed")
_LOOK_AHEAD: Final = 80
"""Events that are looked at to tell a change from what is missing or was put in."""

Change = Literal["changed", "replaced", "extra", "missing"]


class Split(NamedTuple):
    """Where two runs part."""

    change: Change
    original: Record | None
    """The original's event; None when it has none."""
    replay: Record | None
    """The replay's event; None when it has none."""
    after: Record | None
    """For an extra event, the original's event that it follows."""
    expected: dict[str, Any] | None
    """The original's event as it was compared."""
    actual: dict[str, Any] | None
    """The replay's event as it was compared."""


class Lanes:
    """The events of one run by lane, with ids named by what they stand for."""

    def __init__(self, recording: Recording, owners: dict[str, str], not_entered: set[str]) -> None:
        """`owners` are the names of those that are not called by their own; `not_entered` are left out with all below them."""
        self.recording = recording
        self.lanes: dict[Lane, list[tuple[int, Placed]]] = defaultdict(list)
        """Events, each with its place in the file."""
        self.not_compared: Counter[str] = Counter()
        """Kinds that this version does not know, with how many events there are."""
        names, order = call_names(recording), LaneOrder()
        for index, record in enumerate(recording.records):
            event = record.event
            if not_entered and is_inside(record.owner, not_entered):
                continue
            if isinstance(event, UnknownEvent):
                self.not_compared[event.kind] += 1
            elif not event.incidental and not isinstance(event, RunStarted):
                owner = owners.get(record.owner, record.owner)
                placed = order.place(record._replace(owner=owner, event=_named_event(record, names, owners)))
                self.lanes[placed.lane].append((index, placed))


def call_names(recording: Recording) -> dict[str, dict[str, str]]:
    """Return for each owner what its call ids stand for: the providers make them anew in every run."""
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for record in recording.records:
        event, mine = record.event, names[record.owner]
        if isinstance(event, LlmResponded):
            for place, call in enumerate(event.tool_calls):
                mine.setdefault(call.id, f"call {place} of request {event.request}")
        elif isinstance(event, ToolCallStarted) and event.source == "native":  # the others' ids are the kernel's own
            mine.setdefault(event.call_id, f"call {event.position} of turn {record.iteration}")
    return names


def _named_event(record: Record, names: dict[str, dict[str, str]], owners: dict[str, str]) -> EventBase:
    """Return the event with calls and owners by their names."""
    event, fields = record.event, record.event.__dict__
    if isinstance(event, AgentStarted):
        called = names[event.parent].get(event.call_id, event.call_id)
        return altered(event, {"call_id": called, "parent": owners.get(event.parent, event.parent)})
    held = [name for name in _WITH_IDS if fields.get(name) is not None]
    if fields.get("tag") in _PAYLOADS:
        held += [name for name in ("before", "after") if name in fields]
    return altered(event, {name: _named(name, plain(fields[name]), names[record.owner]) for name in held})


def _named(name: str, value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return what stands under a name with calls by their names, where the format has ids of calls."""
    if isinstance(value, str):
        return names.get(value, value) if name in _IDS else value
    if isinstance(value, list):
        return [_named(name, each, names) for each in value]
    if isinstance(value, dict):
        inside = _IDS | {"messages", "tool_calls"}
        return {key: _named(key, each, names) if key in inside else each for key, each in value.items()}
    return value


def first_split(alignment: Alignment) -> tuple[Split | None, Counter[str]]:
    """Return where the runs part first, in the original's order, and which kinds could not be compared."""
    one = Lanes(alignment.original.recording, {}, alignment.not_entered[0])
    other = Lanes(alignment.replay.recording, _canonical(alignment), alignment.not_entered[1])
    return _split(one, other), one.not_compared + other.not_compared


def _canonical(alignment: Alignment) -> dict[str, str]:
    """Return a name for each of the replay's owners: the original's, or one that no owner of the original has."""
    owners = alignment.replay.recording.owners
    return {owner: alignment.owners.get(owner, f"{owner} (replay)") for owner in owners}


def _alike(a: Placed, b: Placed) -> bool:
    return a.calls_before == b.calls_before and same_event(a.record, b.record, MEASURES)


def _split(one: Lanes, other: Lanes) -> Split | None:
    """Return where the lanes part first, in the original's order."""
    matched: dict[int, int] = {}
    """The original's place in the file of each of the replay's events that has one there, alike or changed."""
    rests: list[tuple[list[tuple[int, Placed]], list[tuple[int, Placed]]]] = []
    for lane in dict.fromkeys([*one.lanes, *other.lanes]):
        left, right = one.lanes.get(lane, []), other.lanes.get(lane, [])
        both = list(zip(left, right, strict=False))
        place = next((place for place, (a, b) in enumerate(both) if not _alike(a[1], b[1])), len(both))
        matched.update((b[0], a[0]) for a, b in both[: place + 1])
        if place < max(len(left), len(right)):
            rests.append((left[place : place + _LOOK_AHEAD], right[place : place + _LOOK_AHEAD]))
    found = [_parting(one, other, rest, matched) for rest in rests]
    first = min((each for each in found if each is not None), key=lambda each: each[0], default=None)
    return first[1] if first else None


def _parting(
    one: Lanes, other: Lanes, rest: tuple[list[tuple[int, Placed]], list[tuple[int, Placed]]], matched: dict[int, int]
) -> tuple[tuple[float, int], Split] | None:
    """Return what happened where a lane parts, with its rank in the original's order; None beyond the end of a cut file."""
    left, right = rest
    change = _classify([placed for _, placed in left], [placed for _, placed in right])
    originals, replays = one.recording.records, other.recording.records
    if change == "extra":
        at, placed = right[0]
        if one.recording.ending is None and at > max(matched, default=-1):
            return None
        after = max((original for replay, original in matched.items() if replay < at), default=-1)
        return (after + 0.5, at), Split("extra", None, replays[at], originals[max(after, 0)], None, _shown(placed))
    at, placed = left[0]
    if change == "missing":
        cut = other.recording.ending is None and at > max(matched.values(), default=-1)
        return None if cut else ((at, 0), Split("missing", originals[at], None, None, _shown(placed), None))
    there, now = right[0]
    return (at, 0), Split(change, originals[at], replays[there], None, _shown(placed), _shown(now))


def _shown(placed: Placed) -> dict[str, Any]:
    shown = told(placed.record.event, MEASURES)
    return shown | ({"calls_before": placed.calls_before} if placed.calls_before else {})


def _classify(left: list[Placed], right: list[Placed]) -> Change:
    """Return what happened at the first event of two lanes' rests."""
    if not left or not right:
        return "missing" if left else "extra"
    if _is_same_event(left[0].record, right[0].record):
        return "changed"
    one, other = [_without_counters(each) for each in left], [_without_counters(each) for each in right]
    later = other.index(one[0]) if one[0] in other else _LOOK_AHEAD
    sooner = one.index(other[0]) if other[0] in one else _LOOK_AHEAD
    if later != sooner:
        return "extra" if later < sooner else "missing"
    return "changed" if left[0].record.kind == right[0].record.kind else "replaced"


def _is_same_event(one: Record, other: Record) -> bool:
    """Return whether two events of a kind have the same number, or their owner has only one of it."""
    if one.kind != other.kind or one.kind not in _NUMBERED:
        return one.kind == other.kind and one.kind in _SINGLE
    left, right = one.event.__dict__, other.event.__dict__
    numbers = ("request", "attempt", "position")
    return one.iteration == other.iteration and all(left.get(name) == right.get(name) for name in numbers)


def _without_counters(placed: Placed) -> str:
    return json_hash([placed.record.kind, told(placed.record.event, _COUNTERS)])
