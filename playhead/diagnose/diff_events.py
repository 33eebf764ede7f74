"""The first event of two runs that is not the same, whatever ids, times and the order of concurrent work may be.

Events are laid side by side lane by lane (`divergence.LaneOrder`); ids are named by what they stand for first. In the
first lane that differs a short look ahead tells a changed event from one that is missing or was put in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from playhead.diagnose.diff_calls import is_inside
from playhead.diagnose.diff_values import plain, same
from playhead.diagnose.divergence import LaneOrder
from playhead.trace.events import (
    AgentStarted,
    EmissionChanged,
    EmissionSuppressed,
    LlmResponded,
    RunStarted,
    ToolCallCompleted,
    ToolCallStarted,
    UnknownEvent,
)
from playhead.trace.events.base import volatile_fields

if TYPE_CHECKING:
    from playhead.diagnose.diff_calls import Alignment
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.recording import Recording

MEASURES: Final = frozenset({"usage", "cost_usd", "delay_s"})
"""Fields that tell what something cost or how long was waited: the diff sums them up, and they are no divergence."""
_COUNTERS: Final = frozenset(
    {"id", "request", "attempt", "messages", "position", "replaces", "steps", "call_id", "ref", "tool_call_id", "key"}
)
"""Fields that count, or name what is counted: an event that was put in shifts them in all that follow."""
_NUMBERED: Final = ("llm-requested", "llm-responded", "llm-failed", "tool-call-started", "tool-call-completed")
_SINGLE: Final = ("final-answer", "agent-started", "agent-completed", "run-completed")
_LOOK_AHEAD: Final = 40
"""Events that may be missing or put in at one place, and still be told from a change."""
_SURE: Final = 12
"""Events in a row that fit; more make no difference."""

Lane = tuple[str, str]
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


class Item(NamedTuple):
    """An event in its lane, ready to be compared."""

    at: int
    """Place in the file."""
    record: Record
    fields: dict[str, Any]
    calls_before: int


@dataclass(eq=False)
class Lanes:
    """The events of one run by lane, with ids named by what they stand for."""

    recording: Recording
    owners: dict[str, str]
    """The name of each owner that is not its own."""
    not_entered: set[str]
    """Owners that are left out, with all that is below them."""
    lanes: dict[Lane, list[Item]] = field(default_factory=lambda: defaultdict(list))
    not_compared: Counter[str] = field(default_factory=Counter)
    """Kinds that this version does not know, with how many events there are."""
    last_index: int = -1
    """Place in the file of the last event that is compared."""

    def __post_init__(self) -> None:
        names = call_names(self.recording)
        order = LaneOrder()
        for index, record in enumerate(self.recording.records):
            event = record.event
            if self.not_entered and is_inside(record.owner, self.not_entered):
                continue
            if isinstance(event, UnknownEvent):
                self.not_compared[event.kind] += 1
            elif not event.incidental and not isinstance(event, RunStarted):
                mine = names.get(record.owner, {})
                place = order.place(record)
                owner = self.owners.get(record.owner, record.owner)
                lane = (owner, _lane_name(event, _call_lane(record, place.lane[1], order), mine))
                fields = _fields(event, mine, names, self.owners)
                self.lanes[lane].append(Item(index, record, fields, place.calls_before))
                self.last_index = index


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


def _call_lane(record: Record, lane: str, order: LaneOrder) -> str:
    """Return the call of a lane; one whose start is missing has its own lane, too."""
    event = record.event
    if lane or not isinstance(event, ToolCallCompleted) or not order.may_run_beside(record.owner, event.tool):
        return lane
    return event.call_id


def _lane_name(event: EventBase, lane: str, names: dict[str, str]) -> str:
    if isinstance(event, (EmissionChanged, EmissionSuppressed)):
        return f"{event.tag} {names.get(event.key, event.key)}"
    return names.get(lane, lane)


def _fields(
    event: EventBase, mine: dict[str, str], names: dict[str, dict[str, str]], owners: dict[str, str]
) -> dict[str, Any]:
    """Return what counts of an event, as JSON, with calls and owners by their names."""
    skipped = volatile_fields(type(event)) | MEASURES | {"kind"}
    fields = {name: plain(value) for name, value in event.__dict__.items() if name not in skipped}
    for name in ("call_id", "tool_call_id", "key"):
        if isinstance(fields.get(name), str):
            fields[name] = mine.get(fields[name], fields[name])
    if isinstance(event, AgentStarted):
        fields["call_id"] = names.get(event.parent, {}).get(event.call_id, event.call_id)
        fields["parent"] = owners.get(event.parent, event.parent)
        fields["agent"].pop("prices", None)
    if fields.get("tool_calls"):
        fields["tool_calls"] = [{**call, "id": mine.get(call["id"], call["id"])} for call in fields["tool_calls"]]
    if fields.get("ref"):
        fields["ref"]["call"] = mine.get(fields["ref"]["call"], fields["ref"]["call"])
    if isinstance(event, (EmissionChanged, EmissionSuppressed)):
        for name in ("before", "after"):
            if name in fields:
                fields[name] = _payload(event.tag, fields[name], mine)
    return fields


def _payload(tag: str, value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return an emission's payload with its calls by their names, where the kernel put ids of calls."""
    if tag == "llm.request" and isinstance(value, dict) and isinstance(value.get("messages"), list):
        return {**value, "messages": [_message(each, names) for each in value["messages"]]}
    return _message(value, names) if tag == "llm.response" else value


def _message(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Return a message, or an answer, with its calls by their names."""
    if not isinstance(value, dict):
        return value
    named = dict(value)
    if isinstance(called := value.get("tool_call_id"), str):
        named["tool_call_id"] = names.get(called, called)
    if isinstance(calls := value.get("tool_calls"), list):
        named["tool_calls"] = [_call(each, names) for each in calls]
    return named


def _call(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return value
    return {**value, "id": names.get(value["id"], value["id"])}


def first_split(alignment: Alignment) -> tuple[Split | None, Counter[str]]:
    """Return where the runs part first, in the original's order, and which kinds could not be compared."""
    one = Lanes(alignment.original.recording, {}, alignment.not_entered[0])
    other = Lanes(alignment.replay.recording, _canonical(alignment), alignment.not_entered[1])
    finder = _Finder(one, other)
    found = (finder.split(lane, place) for lane, place in finder.splits)
    first = min((each for each in found if each is not None), key=lambda each: each[0], default=None)
    return (first[1] if first else None), one.not_compared + other.not_compared


def _canonical(alignment: Alignment) -> dict[str, str]:
    """Return a name for each of the replay's owners: the original's, or one that no owner of the original has."""
    owners = alignment.replay.recording.owners
    return {owner: alignment.owners.get(owner, f"{owner} (replay)") for owner in owners}


def _alike(a: Item, b: Item) -> bool:
    return (
        a.record.kind == b.record.kind
        and a.record.iteration == b.record.iteration
        and a.calls_before == b.calls_before
        and same(a.fields, b.fields)
    )


class _Finder:
    """Lays the lanes side by side, and says what happened where one parts."""

    def __init__(self, one: Lanes, other: Lanes) -> None:
        self.splits: list[tuple[Lane, int]] = []
        """The lanes that part, each with the place in it."""
        self._one = one
        self._other = other
        self._matched: dict[int, int] = {}
        """The original's place in the file of each of the replay's events that is the same there."""
        known: dict[int, int] = {}
        for lane in [*one.lanes, *(lane for lane in other.lanes if lane not in one.lanes)]:
            left, right = one.lanes.get(lane, []), other.lanes.get(lane, [])
            place = _first_unlike(left, right)
            self._matched.update((b.at, a.at) for a, b in zip(left[:place], right[:place], strict=True))
            known.update((b.at, a.at) for a, b in zip(left[place:], right[place : place + 1], strict=False))
            if place < max(len(left), len(right)):
                self.splits.append((lane, place))
        self._before = _places_before(known | self._matched, len(other.recording.records))
        self._last_left = max(self._matched.values(), default=-1)
        self._last_right = max(self._matched, default=-1)

    def split(self, lane: Lane, place: int) -> tuple[tuple[float, int], Split] | None:
        """Return where the lane parts, with its rank in the original's order; None beyond the end of a cut file."""
        left, right = self._one.lanes.get(lane, [])[place:], self._other.lanes.get(lane, [])[place:]
        change = _classify(left[: 2 * _LOOK_AHEAD], right[: 2 * _LOOK_AHEAD])
        if change == "extra":
            return self._extra(right[0])
        if change == "missing":
            return self._missing(left[0])
        a, b = left[0], right[0]
        return (a.at, 0), Split(change, a.record, b.record, None, _shown(a), _shown(b))

    def _extra(self, item: Item) -> tuple[tuple[float, int], Split] | None:
        if _is_cut(self._one.recording) and item.at > self._last_right:
            return None
        after = self._before[item.at]
        record = self._one.recording.records[max(after, 0)]
        return (after + 0.5, item.at), Split("extra", None, item.record, record, None, _shown(item))

    def _missing(self, item: Item) -> tuple[tuple[float, int], Split] | None:
        if _is_cut(self._other.recording) and item.at > self._last_left:
            return None
        return (item.at, 0), Split("missing", item.record, None, None, _shown(item), None)


def _first_unlike(left: list[Item], right: list[Item]) -> int:
    """Return the place of the first event of a lane that is not the same on both sides."""
    unlike = (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if not _alike(a, b))
    return next(unlike, min(len(left), len(right)))


def _places_before(known: dict[int, int], count: int) -> list[int]:
    """Return for each event of the replay how far the original has come before it; -1 for not at all."""
    before, last = [], -1
    for index in range(count):
        before.append(last)
        last = max(last, known.get(index, last))
    return before


def _is_cut(recording: Recording) -> bool:
    return recording.ending is None


def _shown(item: Item) -> dict[str, Any]:
    shown = {name: value for name, value in item.fields.items() if value is not None}
    return shown | ({"calls_before": item.calls_before} if item.calls_before else {})


def _classify(left: list[Item], right: list[Item]) -> Change:
    """Return what happened at the first event of two lanes' rests."""
    if not left or not right:
        return "missing" if left else "extra"
    a, b = left[0], right[0]
    alike = a.record.kind == b.record.kind
    if alike and _is_same_event(a, b):
        return "changed"
    best = _Candidate(_fit(left[1:], right[1:]), 0, "changed" if alike else "replaced")
    for shift in range(1, _LOOK_AHEAD):
        if shift < len(right):
            best = max(best, _Candidate(_fit(left, right[shift:]), -shift, "extra"), key=_rank)
        if shift < len(left):
            best = max(best, _Candidate(_fit(left[shift:], right), -shift, "missing"), key=_rank)
    return best.change


class _Candidate(NamedTuple):
    """One account of what happened, and how well the events after it fit."""

    fit: tuple[int, int]
    shift: int
    """Events passed over, negative: of two accounts that fit as well, the one that passes over fewer is taken."""
    change: Change


def _rank(candidate: _Candidate) -> tuple[tuple[int, int], int]:
    return candidate.fit, candidate.shift


def _is_same_event(a: Item, b: Item) -> bool:
    """Return whether two events of a kind have the same number, or their owner has only one of it."""
    one, other = a.record, b.record
    if one.kind in _NUMBERED:
        return one.iteration == other.iteration and all(
            same(a.fields.get(name), b.fields.get(name)) for name in ("request", "attempt", "position")
        )
    return one.kind in _SINGLE


def _fit(left: list[Item], right: list[Item]) -> tuple[int, int]:
    """Return how many events in a row are the same, and how many but for counters; to the end of both counts as many."""
    exact = loose = 0
    both = list(zip(left[:_SURE], right[:_SURE], strict=False))
    while exact < len(both) and _alike(*both[exact]):
        exact += 1
    while loose < len(both) and (loose < exact or _is_loosely(*both[loose])):
        loose += 1
    whole = len(left) == len(right) == loose
    return exact, _SURE if whole else loose


def _is_loosely(a: Item, b: Item) -> bool:
    """Return whether two events are the same but for what an event before them would shift."""
    return (
        a.record.kind == b.record.kind
        and a.fields.keys() == b.fields.keys()
        and all(same(each, b.fields[name]) for name, each in a.fields.items() if name not in _COUNTERS)
    )
