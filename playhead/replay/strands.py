"""What the strands of a recorded program did, and which recorded strand a strand of the replay is.

A strand is a thread or a task of one owner: what it does is in order. Strands have no names that hold from run to run, so a
strand of the replay is known by what it does: it is a recorded strand that began in the same way. Where two recorded strands
did the same and were answered differently, nothing tells them apart, and that is said.

In a reproduction no answer comes before what the recording has before it: how far a task came when another one returned, failed or
was cancelled depends on the order of their answers. Blocking calls do not wait: they would keep an event loop from it.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import anyio

from playhead.instrument.worlds import CANCELLED, UNFINISHED, call_key
from playhead.replay.calls import digest
from playhead.trace.events import (
    FactRecorded,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    ToolCallCompleted,
    ToolCallStarted,
)
from playhead.trace.owners import is_within, owner_inside
from playhead.trace.parameters import comparable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from playhead.diagnose.recording import OwnerRecording, Recording
    from playhead.instrument.worlds import Act
    from playhead.trace.events import EventBase
    from playhead.trace.line import Record

Kind = Literal["request", "call", "fact"]
POLL_S: Final = 0.001
"""Seconds after which a task that waits looks again."""
PATIENCE: Final = 300
"""How often a task looks without any progress before the order is given up: a program that pauses longer goes on without."""


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
    end_seq: int = 0
    """The position of the answer."""
    took_us: int = 0
    """How long the answer took."""
    caused: list[Entry] = field(default_factory=list)
    """What the program that a call entered did."""
    taken: bool = False
    passed: bool = False
    """Whether the program has the answer."""
    enters: bool = False
    """Whether it is the call of a recorded function or an agent."""

    @property
    def said(self) -> tuple[Kind, str, str]:
        """What it asked."""
        return self.kind, self.name, self.key

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
    rival: Entry | None = None
    """An entry that could be meant as well, and was answered differently, or led to other answers."""


class Strands:
    """The recorded strands of one owner."""

    def __init__(self, entries: Iterable[Entry], cut: Collection[int] = (), *, at_work: bool = False) -> None:
        self.cut, self.at_work = cut, at_work
        """The strands whose task was cancelled, and whether some were at work when the function ended."""
        self.entries = sorted(entries, key=lambda each: each.seq)
        self._recorded: dict[int, list[Entry]] = defaultdict(list)
        for each in self.entries:
            self._recorded[each.strand].append(each)
        self._bound: dict[int, int] = {}
        """The recorded strand of each strand of the replay."""

    def take(self, act: Act) -> Found | None:
        """Take the recorded counterpart of an act; None if it is not next in its thread or task."""
        bound = self._bound.get(act.strand)
        if bound is None:
            found = self._begin(act)
        else:
            following = self._next(bound)
            found = Found(following) if following is not None and following.fits(act) else None
            found = found or self._switch(act, bound)
        if found is not None:
            found.entry.taken = True
        return found

    def take_any(self, act: Act) -> Found | None:
        """Do the same, or take one that is not next: where a live model decides, a program takes other ways."""
        found = self.take(act) or next((Found(each) for each in self.left() if each.fits(act)), None)
        if found is not None:
            found.entry.taken = True
        return found

    def expected(self, strand: int) -> Entry | None:
        """Return what the recorded strand did at this point, for a message."""
        bound = self._bound.get(strand)
        if bound is not None:
            return self._next(bound)
        return next((each for each in self.entries if not each.taken), None)

    def is_beyond(self, strand: int) -> bool:
        """Return whether a thread or task may have come further than in the recording.

        The recording has nothing of it, or nothing more, and it was cancelled, or at work when its function ended.
        """
        bound = self._bound.get(strand)
        if bound is None:
            return strand > 0 or 0 in self.cut  # the function itself has the first one
        return self._next(bound) is None and (bound in self.cut or (self.at_work and strand > 0))

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
        return Found(self._recorded[free[0]][0], rival=next(filter(None, rivals), None))

    def _fits_first(self, number: int, act: Act) -> bool:
        first = self._recorded[number][0]
        return first.fits(act) and not first.taken

    def _rival(self, one: int, other: int) -> Entry | None:
        """Return where two recorded strands that did the same so far were answered differently."""
        for mine, theirs in zip(self._recorded[one], self._recorded[other], strict=False):
            if mine.said != theirs.said:
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
            both = [*zip(done, entries, strict=False)]
            same = all((one.said, one.outcome()) == (other.said, other.outcome()) for one, other in both)
            owner = next((strand for strand, other in self._bound.items() if other == number), None)
            if not same or (owner is not None and any(each.taken for each in rest)):
                continue
            if owner is None:
                for one, other in both:
                    one.taken, other.taken = False, True
                    one.passed, other.passed = False, one.passed
            else:
                self._bound[owner] = mine
            self._bound[act.strand] = number
            return Found(rest[0])
        return None


def strands_of(recording: Recording, kinds: Collection[Kind]) -> dict[str, Strands]:
    """Return the strands of each owner of a recorded program, with what they did at these ports."""
    owners, by_rules = recording.owners, recording.header.redacted
    found = {name: list(_entries(owner, by_rules=by_rules)) for name, owner in owners.items()}
    cut = {name: {each.value for each in owner.facts if each.name == CANCELLED} for name, owner in owners.items()}
    for each in (each for entries in found.values() for each in entries):
        each.caused = found.get(each.child, [])
        each.enters = each.child in owners and owners[each.child].started is not None
        if each.enters and not each.is_known:
            cut[each.child].add(0)  # the task of a function that was cancelled
    raced = [name for name, owner in owners.items() if any(each.name == UNFINISHED for each in owner.facts)]
    return {
        name: Strands(
            (each for each in entries if each.kind in kinds),
            cut[name],
            at_work=any(is_within(name, each) for each in raced),
        )
        for name, entries in found.items()
    }


def _entries(owner: OwnerRecording, *, by_rules: bool) -> Iterator[Entry]:
    """Yield what an owner did at its ports; not the calls that a killswitch or an approver kept from running."""
    open_: dict[object, tuple[Entry, int]] = {}
    found: list[Entry] = []
    for record in owner.records:
        entry = _entry(owner.owner, record, by_rules=by_rules)
        if entry is not None:
            found.append(entry)
            open_[_name(record.event)] = entry, record.ts
        elif isinstance(record.event, (LlmResponded, LlmFailed, ToolCallCompleted)) and _name(record.event) in open_:
            entry, asked_us = open_[_name(record.event)]
            entry.answer, entry.end_seq, entry.took_us = record.event, record.seq, record.ts - asked_us
    for each in found:
        if not isinstance(each.answer, ToolCallCompleted) or each.answer.end.body_ran:
            yield each


def _entry(owner: str, record: Record, *, by_rules: bool) -> Entry | None:
    event = record.event
    if isinstance(event, LlmRequested) and event.wire is not None:
        wire = event.wire
        return Entry(
            owner, wire.strand or 0, "request", wire.format or "http", f"{wire.body_hash} {wire.url}", record.seq, event
        )
    if isinstance(event, ToolCallStarted) and event.strand is not None:
        child = owner_inside(owner, event.tool, record.iteration, event.position)
        key = call_key(event.args_hash, event.args_fingerprint, event.args, by_rules=by_rules)
        return Entry(owner, event.strand, "call", event.tool, key, record.seq, event, record.iteration, child)
    if isinstance(event, FactRecorded) and event.key.isdecimal():
        return Entry(owner, int(event.key), "fact", event.name, "", record.seq, event, answer=event, end_seq=record.seq)
    return None


def _name(event: EventBase) -> object:
    if isinstance(event, (LlmRequested, LlmResponded, LlmFailed)):
        return event.request, event.attempt
    return getattr(event, "call_id", id(event))


class Turns:
    """The turns of a program's threads and tasks."""

    def __init__(self, strands: Mapping[str, Strands]) -> None:
        entries = [*done_again(strands, "root")]
        self._asked = deque(sorted(entries, key=lambda each: each.seq))
        self._answered = deque(sorted((each for each in entries if each.is_known), key=lambda each: each.end_seq))
        self.moves = 0
        """The progress of the program."""
        self.is_lost = False
        """Whether the program did not come as far as in the recording, so that nothing waits for its turn any more."""

    def pass_on(self, entry: Entry) -> None:
        """Note that the program has this answer."""
        entry.passed = True
        self.moves += 1

    async def come(self, entry: Entry) -> None:
        """Wait until an answer is due."""
        await self.wait(lambda: self.is_lost or self._is_due(entry))
        self.pass_on(entry)

    async def wait(self, ready: Callable[[], bool], least_s: float = 0) -> bool:
        """Wait until something holds; return False if the program makes no progress meanwhile, for `least_s` at least."""
        moves = looks = -1
        while not ready():
            if moves != self.moves:
                moves, looks, since_s = self.moves, 0, time.monotonic()
            looks += time.monotonic() - since_s >= least_s
            if looks > PATIENCE:
                self.is_lost = True
                return False
            await anyio.sleep(POLL_S)
        return True

    def _is_due(self, entry: Entry) -> bool:
        while self._asked and self._asked[0].taken:
            self._asked.popleft()
        while self._answered and self._answered[0].passed:
            self._answered.popleft()
        is_next = not self._answered or self._answered[0].end_seq >= entry.end_seq
        return is_next and (not self._asked or self._asked[0].seq > entry.end_seq)


def done_again(strands: Mapping[str, Strands], owner: str) -> Iterator[Entry]:
    """Yield what a program does again: not what the bodies of its tools did, which do not run."""
    for each in strands[owner].entries if owner in strands else ():
        yield each
        if each.enters:
            yield from done_again(strands, each.child)
