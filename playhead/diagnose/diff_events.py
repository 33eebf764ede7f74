"""The first event that differs between two runs; ids of calls and owners are replaced by names that both runs share."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from playhead.diagnose.diff_types import FirstDivergence
from playhead.diagnose.divergence import Comparison
from playhead.diagnose.summaries import summarise
from playhead.trace.base import altered
from playhead.trace.events import AgentStarted, LlmResponded, RunStarted, ToolCallStarted
from playhead.trace.owners import is_within
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from playhead.diagnose.diff_calls import Alignment
    from playhead.diagnose.divergence import Parting, Placed
    from playhead.diagnose.recording import Recording
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

MEASURES: Final = frozenset({"usage", "cost_usd", "delay_s"})
"""Fields of cost and waiting time: the diff sums them up, and they are no divergence."""
_IDS: Final = frozenset({"call_id", "tool_call_id", "key", "id", "call"})
"""Names under which an event, a message, a call or a reference has the id of a call."""
_WITH_IDS: Final = ("call_id", "tool_call_id", "key", "tool_calls", "ref")
"""Fields of events that hold such ids."""
_PAYLOADS: Final = ("llm.request", "llm.response")
"""Tags whose payload holds such ids."""


def first_divergence(alignment: Alignment) -> tuple[FirstDivergence | None, list[str]]:
    """Return where the runs part first, in the original's order, and what could not be compared."""
    one, other = alignment.original.recording, alignment.replay.recording
    owners = {owner: alignment.owners.get(owner, f"{owner} (replay)") for owner in other.owners}
    comparison = Comparison(
        _named_records(one, {}, alignment.not_entered[0]),
        open_ended=one.ending is None,
        left_out=MEASURES,
        compares=_is_compared,
    )
    for record in _named_records(other, owners, alignment.not_entered[1]):
        comparison.add(record)
    found = [each for each in comparison.partings() if each.now or other.ending is not None]
    return _first(found[0], one, other) if found else None, sorted(comparison.not_compared)


def _first(parting: Parting, original: Recording, replay: Recording) -> FirstDivergence:
    one, other = _as_recorded(original, parting.recorded), _as_recorded(replay, parting.now)
    record = one or other
    assert record is not None  # noqa: S101 - there is an event on one side at least
    found, (expected, actual) = parting.differences(), parting.sides()
    change: Any = "changed" if one and other else "missing" if one else "extra"
    return FirstDivergence(
        change="replaced" if one and other and one.kind != other.kind else change,
        kind=record.kind,
        owner=record.owner,
        iteration=record.iteration,
        original_seq=one.seq if one else None,
        replay_seq=other.seq if other else None,
        what=parting.sentence(found, "the other run"),
        expected=expected,
        actual=actual,
        expected_text=_as_text(one),
        actual_text=_as_text(other),
        differences=found,
    )


def _as_recorded(recording: Recording, placed: Placed | None) -> Record | None:
    """Return an event with the ids that it has in its file."""
    return None if placed is None else next(each for each in recording.records if each.seq == placed.record.seq)


def _as_text(record: Record | None) -> str | None:
    return None if record is None else scrub(f"{record.kind}: {summarise(record.event)}")


def _is_compared(event: EventBase) -> bool:
    return not (event.incidental or isinstance(event, RunStarted))  # the header's fields are inputs


def _named_records(recording: Recording, owners: dict[str, str], not_entered: set[str]) -> list[Record]:
    """Return the events with calls and owners by their names, without those of owners that are not entered."""
    names = call_names(recording)
    return [
        record._replace(owner=owners.get(record.owner, record.owner), event=_named_event(record, names, owners))
        for record in recording.records
        if not any(is_within(record.owner, each) for each in not_entered)
    ]


def call_names(recording: Recording) -> dict[str, dict[str, str]]:
    """Return a name for each call id of each owner: providers make new ids in every run."""
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
    held = [name for name in _WITH_IDS if fields.get(name)]
    if fields.get("tag") in _PAYLOADS:
        held += [name for name in ("before", "after") if name in fields]
    return altered(event, {name: _named(name, fields[name], names[record.owner]) for name in held}) if held else event


def _named(name: str, value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - JSON, or models of it
    """Return a value as JSON, with calls by their names, where the format has ids of calls."""
    if isinstance(value, str):
        return names.get(value, value) if name in _IDS else value
    if isinstance(value, (list, tuple)):
        return [_named(name, each, names) for each in value]
    if isinstance(value, BaseModel):
        value = value.__dict__
    if isinstance(value, dict):
        inside = _IDS | {"messages", "tool_calls"}
        return {key: _named(key, each, names) if key in inside else each for key, each in value.items()}
    return value
