"""What the strands of a recorded program did, and which recorded strand a strand of the replay is.

A strand is a thread or a task of one owner: what it does is in order. Strands have no names that hold from run to run, so a
strand of the replay is known by what it does: it is a recorded strand that began in the same way. Where two recorded strands
did the same and were answered differently, nothing tells them apart, and that is said.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from playhead.replay.calls import digest
from playhead.trace.events import (
    FactRecorded,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import owner_inside
from playhead.trace.parameters import comparable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.instrument.worlds import Act
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

Kind = Literal["request", "call", "fact"]


@dataclass(eq=False, slots=True)
class Entry:
    """What a recorded program did once at a port, and the answer that it got."""

    owner: str
    strand: int
    kind: Kind
    name: str
    """The tool, the fact, or the wire format."""
    key: str
    """Equal for equal requests, and for calls with equal arguments."""
    seq: int
    asked: EventBase
    iteration: int | None = None
    """The turn of a call."""
    child: str = ""
    """The owner of what a call caused."""
    answer: LlmResponded | LlmFailed | ToolCallCompleted | FactRecorded | None = None
    """None when the recording ends before it."""
    caused: list[Entry] = field(default_factory=list)
    """What the program that a call entered did."""
    taken: bool = False

    def fits(self, act: Act) -> bool:
        """Return whether this is what the program does now, as far as redaction shows."""
        if (self.kind, self.name) != (act.kind, act.name):
            return False
        return self.key == act.key or self.is_hidden(act.key)

    def is_hidden(self, key: str) -> bool:
        """Return whether redaction made this and what the program does now look the same, and nothing tells them apart."""
        (one, *then), (other, *now) = (each.partition(" ")[0].split(".") for each in (self.key, key))
        return one == other and bool(then or now) and not (then and now and comparable(then[0], now[0]))

    @property
    def is_known(self) -> bool:
        """Whether there is an answer to serve: not of what was cancelled, or outlived its program."""
        answer = self.answer
        if isinstance(answer, LlmFailed):
            return not answer.cancelled
        return answer is not None and not (isinstance(answer, ToolCallCompleted) and answer.ended == "cancelled")

    def outcome(self) -> str:
        """Return the answer, and all that came of it, as one text."""
        answer = self.answer
        if isinstance(answer, ToolCallCompleted):
            told: object = (answer.ok, answer.result, None if answer.error is None else answer.error.message)
        elif isinstance(answer, FactRecorded):
            told = answer.value
        else:
            told = None if answer is None or answer.wire is None else answer.wire.model_dump(mode="json")
        caused = sorted(digest(each.kind, each.name, each.key, each.outcome()) for each in self.caused)
        return digest(told, caused)


class Found(NamedTuple):
    """The recorded counterpart of what a program does now."""

    entry: Entry
    in_order: bool
    """Whether the recorded strand did it at this point."""
    rival: Entry | None = None
    """An entry that could be meant as well, and was answered differently, or led to other answers."""


class Strands:
    """The recorded strands of one owner."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = sorted(entries, key=lambda each: each.seq)
        self._recorded: dict[int, list[Entry]] = defaultdict(list)
        for each in self.entries:
            self._recorded[each.strand].append(each)
        self._bound: dict[int, int] = {}
        """The recorded strand of each strand of the replay."""

    def take(self, act: Act) -> Found | None:
        """Take the recorded counterpart of an act; None if there is none left."""
        bound = self._bound.get(act.strand)
        if bound is None:
            found = self._begin(act)
        else:
            following = self._next(bound)
            found = Found(following, in_order=True) if following is not None and following.fits(act) else None
            found = found or self._switch(act, bound)
        if found is None:
            late = next((each for each in self.entries if not each.taken and each.fits(act)), None)
            found = None if late is None else Found(late, in_order=False)
        if found is not None:
            found.entry.taken = True
        return found

    def expected(self, strand: int) -> Entry | None:
        """Return what the recorded strand did at this point, for a message."""
        bound = self._bound.get(strand)
        if bound is not None:
            return self._next(bound)
        return next((each for each in self.entries if not each.taken), None)

    def left(self) -> Iterator[Entry]:
        """Yield what was recorded and has not come again."""
        return (each for each in self.entries if not each.taken)

    def _begin(self, act: Act) -> Found | None:
        """Take the first of the recorded strands that begin in this way and are nobody's yet."""
        used = set(self._bound.values())
        free = [number for number in self._recorded if number not in used and self._fits_first(number, act)]
        if not free:
            return None
        self._bound[act.strand] = free[0]
        rivals = (self._rival(free[0], other) for other in free[1:])
        return Found(self._recorded[free[0]][0], in_order=True, rival=next(filter(None, rivals), None))

    def _fits_first(self, number: int, act: Act) -> bool:
        first = self._recorded[number][0]
        return first.fits(act) and not first.taken

    def _rival(self, one: int, other: int) -> Entry | None:
        """Return where two recorded strands that did the same so far were answered differently."""
        for mine, theirs in zip(self._recorded[one], self._recorded[other], strict=False):
            if (mine.kind, mine.name, mine.key) != (theirs.kind, theirs.name, theirs.key):
                return None
            if mine.outcome() != theirs.outcome():
                return theirs
        return None

    def _next(self, recorded: int) -> Entry | None:
        return next((each for each in self._recorded[recorded] if not each.taken), None)

    def _switch(self, act: Act, mine: int) -> Found | None:
        """Become another recorded strand that did, and was answered, the same so far, and then did this."""
        done = [each for each in self._recorded[mine] if each.taken]
        for number, entries in self._recorded.items():
            rest = entries[len(done) :]
            if number == mine or not rest or not rest[0].fits(act) or rest[0].taken:
                continue
            same = all(
                (one.kind, one.name, one.key, one.outcome()) == (other.kind, other.name, other.key, other.outcome())
                for one, other in zip(done, entries, strict=False)
            )
            owner = next((strand for strand, other in self._bound.items() if other == number), None)
            if not same or (owner is not None and any(each.taken for each in rest)):
                continue
            if owner is None:
                for one, other in zip(done, entries, strict=False):
                    one.taken, other.taken = False, True
            else:
                self._bound[owner] = mine
            self._bound[act.strand] = number
            return Found(rest[0], in_order=True)
        return None


def strands_of(recording: Recording, kinds: Collection[Kind]) -> dict[str, Strands]:
    """Return the strands of each owner of a recorded program, with what they did at these ports."""
    found = {name: list(_entries(owner)) for name, owner in recording.owners.items()}
    for entries in found.values():
        for each in entries:
            each.caused = found.get(each.child, [])
    return {name: Strands(each for each in entries if each.kind in kinds) for name, entries in found.items()}


def _entries(owner: OwnerRecording) -> Iterator[Entry]:
    """Yield what an owner did at its ports; not the calls that a killswitch or an approver kept from running."""
    open_: dict[object, Entry] = {}
    found: list[Entry] = []
    for record in owner.records:
        entry = _entry(owner.owner, record)
        if entry is not None:
            found.append(entry)
            open_[_name(record.event)] = entry
        elif isinstance(record.event, (LlmResponded, LlmFailed, ToolCallCompleted)):
            entry = open_.get(_name(record.event))
            if entry is not None:
                entry.answer = record.event
    for each in found:
        if not isinstance(each.answer, ToolCallCompleted) or each.answer.end.body_ran:
            yield each


def _entry(owner: str, record: Record) -> Entry | None:
    event = record.event
    if isinstance(event, LlmRequested) and event.wire is not None:
        wire = event.wire
        return Entry(
            owner, wire.strand or 0, "request", wire.format or "http", f"{wire.body_hash} {wire.url}", record.seq, event
        )
    if isinstance(event, ToolCallStarted) and event.strand is not None:
        child = owner_inside(owner, event.tool, record.iteration, event.position)
        key = event.args_hash if event.args_fingerprint is None else f"{event.args_hash}.{event.args_fingerprint}"
        return Entry(owner, event.strand, "call", event.tool, key, record.seq, event, record.iteration, child)
    if isinstance(event, FactRecorded) and event.key.isdecimal():
        return Entry(owner, int(event.key), "fact", event.name, "", record.seq, event, answer=event)
    return None


def _name(event: EventBase) -> object:
    if isinstance(event, (LlmRequested, LlmResponded, LlmFailed)):
        return event.request, event.attempt
    return getattr(event, "call_id", id(event))
