"""Writing and reading small traces, for the tests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from playhead.trace.events import EventBase, RunCompleted, RunStarted, Thought, UnknownEvent
from playhead.trace.format import FORMAT
from playhead.trace.header import AgentHeader
from playhead.trace.line import Record, encode_data
from playhead.trace.reader import Problem, scan
from playhead.trace.recorder import Recorder
from playhead.trace.writer import TraceWriter, Written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from playhead.trace.recorder import Subscriptions
    from playhead.trace.redaction import Redactor
    from playhead.trace.writer import Durability


class Ticks:
    """A clock that goes on by one microsecond each time it is read."""

    def __init__(self, start: int = 1_790_000_000_000_000) -> None:
        self.now = start

    def now_us(self) -> int:
        """Return one more than before."""
        self.now += 1
        return self.now


def header(run_id: str = "run", task: str = "Find it.") -> RunStarted:
    """Return the first event of a run."""
    return RunStarted(format=FORMAT, run_id=run_id, agent=AgentHeader(name="tester", model="test/model"), task=task)


def ending(lost: int = 0) -> RunCompleted:
    """Return the last event of a run."""
    return RunCompleted(
        status="done", terminated_by="end_turn", terminated_source="kernel", output="42", lost_events=lost
    )


def unknown(kind: str, **fields: Any) -> UnknownEvent:
    """Return an event of a kind that this version does not know."""
    return UnknownEvent.model_validate({"kind": kind, **fields})


def thought(number: int, size: int = 0) -> Thought:
    """Return an event that tells itself from others, of at least `size` bytes."""
    return Thought(request=number, text=f"thought {number} " + "x" * size)


def thoughts(count: int) -> list[EventBase]:
    """Return the events of a run of `count` events."""
    return [header(), *(thought(number) for number in range(1, count - 1)), ending()]


def writer_of(path: Path, durability: Durability = "write") -> TraceWriter:
    """Return the writer of a trace whose clock ticks."""
    return TraceWriter(path, Ticks().now_us, durability)


def recorder_of(
    path: Path | None, *subscriptions: Subscriptions, redactor: Redactor | None = None, durability: Durability = "write"
) -> Recorder:
    """Return a recorder, with a file or without."""
    return Recorder(Ticks(), writer_of(path, durability) if path else None, redactor, subscriptions)


def record(path: Path, events: Iterable[EventBase]) -> list[EventBase]:
    """Write a trace of exactly these events, and return them."""
    written, recorder = list(events), recorder_of(path)
    for number, event in enumerate(written):
        assert recorder.emit(event, "root", number), recorder.error
    recorder.seal()
    assert recorder.complete
    return written


def append(writer: TraceWriter, event: EventBase) -> Written:
    """Append an event of the root to a file."""
    return writer.append(event.kind, "root", 0, encode_data(event))


def read(path: Path) -> tuple[list[Record], list[Problem]]:
    """Return everything that a scan yields, told apart."""
    items = list(scan(path))
    return (
        [item for item in items if isinstance(item, Record)],
        [item for item in items if isinstance(item, Problem)],
    )


def events_of(path: Path) -> list[EventBase]:
    """Return the events of a trace that nothing is wrong with."""
    records, problems = read(path)
    assert problems == []
    return [record.event for record in records]


def rehashed(lines: Iterable[bytes]) -> list[bytes]:
    """Return the lines chained anew, as somebody who covers his traces would."""
    h, chained = "", []
    for line in lines:
        body = line.rpartition(b',"h":"')[0]
        h = hashlib.sha256(h.encode() + body).hexdigest()
        chained.append(b'%b,"h":"%b"}\n' % (body, h.encode()))
    return chained
