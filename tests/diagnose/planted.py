"""Changes planted in recordings: one event is altered, left out or put in, and it is known which."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.diagnose.divergence import call_of
from playhead.diagnose.recording import Recording
from playhead.trace.events import LlmRequested, LlmResponded, MessageAdded, NudgeIssued, ToolCallCompleted
from playhead.trace.events import ToolCallStarted as Started
from playhead.trace.line import Record, decode_data
from playhead.trace.owners import is_within, owner_inside
from playhead.trace.values import json_hash

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from playhead.trace.events import EventBase


@dataclass(frozen=True)
class Planted:
    """A changed copy, and where it was changed."""

    kind: str
    """What was done."""
    replay: Recording
    original_seq: int | None
    replay_seq: int | None


def recording_of(records: Iterable[Record], path: str = "planted.jsonl") -> Recording:
    """Return a recording of these events, numbered anew."""
    numbered = (record._replace(seq=seq) for seq, record in enumerate(records))
    return Recording(Path(path), tuple(numbered), ())


def renamed(recording: Recording) -> Recording:
    """Return the same run as another one would record it: other provider ids, another run id, other times."""
    ids = {
        call.id for record in recording.records if isinstance(record.event, LlmResponded) for call in record.event.tool_calls
    }  # fmt: skip
    return recording_of(_renamed(record, ids) for record in recording.records)


def _renamed(record: Record, ids: set[str]) -> Record:
    text = json.dumps(record.as_json()["data"])
    for name in ids:
        text = text.replace(f": {json.dumps(name)}", f": {json.dumps(f'{name}-anew')}")
    data = json.loads(text)
    if record.kind == "run-started":
        data["run_id"] = "another"
    for name in ("duration_ms", "latency_ms"):
        if name in data:
            data[name] += 17.25
    return record._replace(
        ts=record.ts + 3_600_000_000, event=decode_data(record.kind.encode(), json.dumps(data).encode())
    )


def altered(recording: Recording, index: int, **fields: Any) -> list[Record]:
    """Return the events, one of them with other fields."""
    records = list(recording.records)
    records[index] = records[index]._replace(event=records[index].event.model_copy(update=fields))
    return records


def plant(recording: Recording, chance: random.Random) -> Planted | None:
    """Return the recording with one change, or None when it has no place for the one that was drawn."""
    return chance.choice(KINDS)(recording, chance)


def _some(recording: Recording, chance: random.Random, wanted: Callable[[Record], bool]) -> int | None:
    places = [index for index, record in enumerate(recording.records) if wanted(record)]
    return chance.choice(places) if places else None


def _change(kind: str, wanted: Callable[[Record], bool], fields: Callable[[Any], dict[str, Any]]) -> Any:
    def change(recording: Recording, chance: random.Random) -> Planted | None:
        index = _some(recording, chance, wanted)
        if index is None:
            return None
        records = altered(recording, index, **fields(recording.records[index].event))
        return Planted(kind, recording_of(records), index, index)

    return change


def _is(*types: type[EventBase], **fields: Any) -> Callable[[Record], bool]:
    def wanted(record: Record) -> bool:
        return isinstance(record.event, types) and all(
            getattr(record.event, key) == each for key, each in fields.items()
        )

    return wanted


def _other_args(event: Started) -> dict[str, Any]:
    args = {**event.args, "planted": True} if isinstance(event.args, dict) else {"planted": True}
    return {"args": args, "args_hash": json_hash(args)}


def _swapped(recording: Recording, chance: random.Random) -> Planted | None:
    """Swap two calls that one answer asks for."""

    def wanted(record: Record) -> bool:
        calls = record.event.tool_calls if isinstance(record.event, LlmResponded) else ()
        return len(calls) > 1 and (calls[0].name, calls[0].arguments) != (calls[1].name, calls[1].arguments)

    index = _some(recording, chance, wanted)
    if index is None:
        return None
    first, second, *rest = recording.records[index].event.tool_calls  # type: ignore[attr-defined]
    return Planted("order", recording_of(altered(recording, index, tool_calls=(second, first, *rest))), index, index)


def _extra(recording: Recording, chance: random.Random) -> Planted:
    """Put a word of the kernel in."""
    index = chance.randint(1, len(recording.records) - 1)
    beside = recording.records[index - 1]
    nudge = beside._replace(event=NudgeIssued(nudge="planted", text="planted"))
    return Planted("extra", recording_of([*recording.records[:index], nudge, *recording.records[index:]]), None, index)


def _extra_call(recording: Recording, chance: random.Random) -> Planted | None:
    """Put a call in, with its end."""
    index = _some(recording, chance, _is(Started))
    if index is None:
        return None
    beside = recording.records[index]
    begin = Started(call_id="planted", tool="planted", position=99, args={}, args_hash=json_hash({}))
    end = ToolCallCompleted(call_id="planted", tool="planted", position=99, ok=True)
    put_in = [beside._replace(event=begin), beside._replace(event=end)]
    return Planted(
        "extra call", recording_of([*recording.records[:index], *put_in, *recording.records[index:]]), None, index
    )


def _missing(recording: Recording, chance: random.Random) -> Planted | None:
    """Leave one event out."""
    ends = {"run-started", "run-completed"}
    index = _some(recording, chance, lambda record: not record.event.incidental and record.kind not in ends)
    if index is None or any(is_within(owner, _inside(recording.records[index])) for owner in recording.owners):
        return None
    records = [*recording.records[:index], *recording.records[index + 1 :]]
    return Planted(f"missing {recording.records[index].kind}", recording_of(records), index, None)


def _missing_call(recording: Recording, chance: random.Random) -> Planted | None:
    """Leave a call out, with all that belongs to it."""
    index = _some(recording, chance, _is(Started))
    if index is None:
        return None
    gone = recording.records[index]
    key = (gone.owner, call_of(gone.event))
    left = (each for each in recording.records if not is_within(each.owner, _inside(gone)))
    records = [each for each in left if (each.owner, call_of(each.event)) != key]
    first = next(place for place, each in enumerate(recording.records) if (each.owner, call_of(each.event)) == key)
    return Planted("missing call", recording_of(records), first, None)


def _inside(started: Record) -> str:
    """Return under whose name stands what a call entered; nobody's, where the event starts no call."""
    event = started.event
    if not isinstance(event, Started):
        return "nobody"
    return owner_inside(started.owner, event.tool, started.iteration, event.position)


def _below(record: Record) -> bool:
    return record.owner != "root" and isinstance(record.event, LlmResponded)


KINDS: tuple[Callable[[Recording, random.Random], Planted | None], ...] = (
    _change("prompt", _is(MessageAdded, role="system"), lambda event: {"content": f"{event.content} Be rude."}),
    _change("task", _is(MessageAdded, role="user", ref=None), lambda event: {"content": f"{event.content} Now!"}),
    _change("arguments", _is(Started), _other_args),
    _change("result", _is(ToolCallCompleted, ok=True), lambda event: {"result": [event.result, "planted"]}),
    _change("outcome", _is(ToolCallCompleted, ok=True), lambda _: {"ok": False}),
    _change("text", _is(LlmResponded), lambda event: {"text": f"{event.text} planted"}),
    _change("model", _is(LlmRequested), lambda event: {"model": f"{event.model}-planted"}),
    _change("parameter", _is(LlmRequested), lambda event: {"parameters": {**event.parameters, "temperature": 0.73}}),
    _change("below", _below, lambda event: {"text": f"{event.text} planted"}),
    _swapped,
    _extra,
    _extra_call,
    _missing,
    _missing_call,
)
