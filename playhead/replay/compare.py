"""Do two runs consist of the same events? All but ids and times, per owner, whatever order calls finished in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playhead.trace.events import EventBase
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue

VOLATILE: Final = frozenset(
    {
        "latency_ms",
        "duration_ms",
        "run_id",
        "versions",
        "replay_of",
        "replay_mode",
        "resumed_from",
        "rung",
        "lost_events",
    }
)
"""Fields that are ids or times, or say that this is a replay."""
INCIDENTAL: Final = frozenset({"hook-failed", "tool-call-late", "replay-served", "replay-diverged"})
"""Kinds that tell of observers and of the clock, not of what the agent did."""

Lane = tuple[str, str]
"""An owner, and a call of it or, as an empty text, its own thread of events."""


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

    def __init__(self, recorded: Iterable[Record], *, open_ended: bool) -> None:
        """Compare with these records; `open_ended` says that the recording may end before the replay does."""
        self._lanes: dict[Lane, list[Record]] = defaultdict(list)
        for record in recorded:
            if record.kind not in INCIDENTAL:
                self._lanes[_lane_of(record)].append(record)
        self._open_ended = open_ended
        self._seen: dict[Lane, int] = defaultdict(int)
        self._found: dict[Lane, Divergence] = {}

    def add(self, record: Record) -> None:
        """Compare the next event of the replay."""
        if record.kind in INCIDENTAL:
            return
        lane = _lane_of(record)
        place, recorded = self._seen[lane], self._lanes.get(lane, [])
        self._seen[lane] = place + 1
        if lane in self._found:
            return
        if place >= len(recorded):
            if not self._open_ended:
                self._found[lane] = _extra(record)
        elif not _same(recorded[place], record):
            self._found[lane] = _difference(recorded[place], record)

    def events(self) -> int:
        """Return how many recorded events have been compared."""
        return sum(min(self._seen[lane], len(recorded)) for lane, recorded in self._lanes.items())

    def divergences(self, *, cut_short: bool) -> tuple[Divergence, ...]:
        """Return where the replay is not what was recorded: at most one divergence a lane, in the recording's order.

        With `cut_short` the replay may stop anywhere: what it did has to be the beginning of what was recorded.
        """
        found = dict(self._found)
        for lane, recorded in self._lanes.items():
            if not cut_short and lane not in found and self._seen[lane] < len(recorded):
                found[lane] = _missing(recorded[self._seen[lane]])
        return tuple(sorted(found.values(), key=lambda each: (each.seq is None, each.seq or 0)))


def _lane_of(record: Record) -> Lane:
    """Return the sequence that a record belongs to, whose order is determined: calls of one turn finish in any."""
    return record.owner, _call_of(record.event)


def _call_of(event: EventBase) -> str:
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    if event.kind == "fact-recorded":
        return str(fields.get("key", ""))
    return "" if event.kind == "agent-started" else str(fields.get("call_id", ""))


def _extra(record: Record) -> Divergence:
    what = f"the replay goes on with {record.kind}"
    return Divergence(record.owner, _where(record), what, None, _data(record.event), None)


def _missing(record: Record) -> Divergence:
    what = f"the replay has no {record.kind} here"
    return Divergence(record.owner, _where(record), what, _data(record.event), None, record.seq)


def _same(one: Record, other: Record) -> bool:
    if one.kind != other.kind or one.iteration != other.iteration:
        return False
    left, right = one.event.__dict__, other.event.__dict__
    return all(right.get(name) == value for name, value in left.items() if name not in VOLATILE)


def _difference(one: Record, other: Record) -> Divergence:
    where = _where(one)
    if one.kind != other.kind:
        what = f"{other.kind} instead of {one.kind}"
        return Divergence(one.owner, where, what, _data(one.event), _data(other.event), one.seq)
    if one.iteration != other.iteration:
        what = f"{one.kind} comes in another turn"
        return Divergence(one.owner, where, what, one.iteration, other.iteration, one.seq)
    path, expected, actual = _first_difference(_data(one.event), _data(other.event))
    return Divergence(one.owner, where, f"{path} of {one.kind} differs", expected, actual, one.seq)


def _first_difference(expected: JsonValue, actual: JsonValue, path: str = "") -> tuple[str, JsonValue, JsonValue]:
    """Return the path of the first place where two JSON values differ, and what stands there."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            if expected.get(key) != actual.get(key):
                return _first_difference(expected.get(key), actual.get(key), f"{path}.{key}" if path else key)
    if isinstance(expected, list) and isinstance(actual, list):
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            if one != other:
                return _first_difference(one, other, f"{path}[{index}]")
    return path, expected, actual


def _data(event: EventBase) -> dict[str, Any]:
    return event.model_dump(mode="json", exclude={"kind", *VOLATILE}, exclude_none=True)


def _where(record: Record) -> str:
    place = "outside the loop" if record.iteration is None else f"iteration {record.iteration}"
    call = _call_of(record.event)
    return f"{place}{f', call {call}' if call else ''}: {record.kind}"
