"""Do two runs consist of the same events? All but ids and times, per owner, whatever order calls finished in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def compare(
    recorded: Iterable[Record], replayed: Iterable[Record], *, cut_short: bool, open_ended: bool
) -> list[Divergence]:
    """Return where the replay is not what was recorded: at most one divergence a lane, in the recording's order.

    With `cut_short` the replay may stop anywhere, with `open_ended` the recording may: then the one has to be the
    beginning of the other.
    """
    lanes, others = _lanes(recorded), _lanes(replayed)
    found = [
        divergence
        for lane in [*lanes, *(lane for lane in others if lane not in lanes)]
        if (divergence := _compare_lane(lanes.get(lane, []), others.get(lane, []), cut_short, open_ended))
    ]
    return sorted(found, key=lambda each: (each.seq is None, each.seq or 0))


def _lanes(records: Iterable[Record]) -> dict[Lane, list[Record]]:
    """Sort records into sequences whose order is determined: calls of one turn finish in any."""
    lanes: dict[Lane, list[Record]] = defaultdict(list)
    for record in records:
        if record.kind not in INCIDENTAL:
            lanes[record.owner, _call_of(record.event)].append(record)
    return dict(lanes)


def _call_of(event: EventBase) -> str:
    fields = event.__dict__  # asking a model for a field that it lacks is slow
    if event.kind == "fact-recorded":
        return str(fields.get("key", ""))
    return "" if event.kind == "agent-started" else str(fields.get("call_id", ""))


def _compare_lane(
    recorded: Sequence[Record], replayed: Sequence[Record], cut_short: bool, open_ended: bool  # noqa: FBT001
) -> Divergence | None:
    for one, other in zip(recorded, replayed, strict=False):
        if not _same(one, other):
            return _difference(one, other)
    if len(replayed) > len(recorded) and not open_ended:
        extra = replayed[len(recorded)]
        return Divergence(
            extra.owner, _where(extra), f"the replay goes on with {extra.kind}", None, _data(extra.event), None
        )
    if len(replayed) < len(recorded) and not cut_short:
        missing = recorded[len(replayed)]
        what = f"the replay has no {missing.kind} here"
        return Divergence(missing.owner, _where(missing), what, _data(missing.event), None, missing.seq)
    return None


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
