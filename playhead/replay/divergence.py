"""Where a replay differs from its recording, as reproductions and resumed runs report it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.diagnose.divergence import ENDINGS, Comparison, Parting, call_of
from playhead.errors import RecordingEndedError
from playhead.trace.events import KillswitchFired, LlmFailed, ToolCallCompleted

if TYPE_CHECKING:
    from playhead.trace.line import Record
    from playhead.trace.values import JsonValue


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event of a lane that differs from the recording."""

    owner: str
    """The event's owner."""
    where: str
    """Turn, call and kind."""
    what: str
    """What differs, as a sentence."""
    expected: JsonValue
    """The recorded value."""
    actual: JsonValue
    """What the replay did."""
    seq: int | None
    """`seq` of the recorded event; None for an extra event of the replay."""


def divergence_of(parting: Parting) -> Divergence:
    """Return the first difference of a lane as a divergence."""
    placed = parting.recorded or parting.now
    assert placed is not None  # noqa: S101 - there is an event on one side at least
    found, (expected, actual) = parting.differences(), parting.sides()
    if found:
        expected, actual = found[0].original, found[0].replay
    seq = None if parting.recorded is None else parting.recorded.record.seq
    return Divergence(placed.record.owner, _where(placed.record), parting.sentence(found), expected, actual, seq)


def divergences_of(comparison: Comparison, *, cut_short: bool) -> tuple[Divergence, ...]:
    """Return where a replay differs, at most once per lane, in the recording's order.

    With `cut_short`, the replay may lack events that agents write because they end. All other recorded events must recur.
    """
    return tuple(map(divergence_of, comparison.partings(is_ending if cut_short else None)))


def is_ending(record: Record) -> bool:
    """Return whether an agent writes this because it ends, or because an answer is no longer awaited."""
    event = record.event
    if isinstance(event, LlmFailed):
        return bool(event.cancelled) or event.error.type == RecordingEndedError.__name__
    if isinstance(event, KillswitchFired):
        return event.at == "outside"  # at a moment that no replay has
    return record.kind in ENDINGS or (isinstance(event, ToolCallCompleted) and event.ended == "cancelled")


def _where(record: Record) -> str:
    place = "outside the loop" if record.iteration is None else f"iteration {record.iteration}"
    call = call_of(record.event)
    return f"{place}{f', call {call}' if call else ''}: {record.kind}"
