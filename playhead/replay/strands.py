"""What the strands of a recorded program did, and which recorded strand a strand of the replay is.

A strand is a thread or a task of one owner. It does one thing after another, so its entries have an order; entries of different
strands have none. No id of a thread or task is the same in the next run: a strand of the replay is recognized by what it does. It
counts as a recorded strand that began in the same way, until it does what only another one did (`Strands._switch`). Where two
recorded strands did the same and were answered differently, nothing tells them apart, and the result is inconclusive.

In a reproduction, tasks get their answers in the recorded order (`Turns`): how far a task came when another one returned, failed or
was cancelled depends on it. Blocking calls are answered at once, because waiting would block the event loop.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import chain, takewhile
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
"""Seconds between two looks of a task that waits."""
PATIENCE: Final = 300
"""Looks without progress after which a task waits no longer: a program that pauses for longer than this loses the recorded order."""


@dataclass(eq=False, slots=True)
class Entry:
    """One act of a recorded program at a port, and the answer that it got."""

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
    """The owner of what the body of a call did."""
    answer: LlmResponded | LlmFailed | ToolCallCompleted | FactRecorded | None = None
    """None when the recording ends before it."""
    end_seq: int = 0
    """The position of the answer in the trace; `seq` is that of the request, call or fact itself."""
    took_us: int = 0
    """How long the answer took."""
    caused: list[Entry] = field(default_factory=list)
    """What the body of a call did."""
    taken: bool = False
    """Whether the program of the replay has done this."""
    passed: bool = False
    """Whether it has the answer, too."""
    enters: bool = False
    """Whether this is the call of a recorded function or an agent, whose body runs in a reproduction."""

    @property
    def said(self) -> tuple[Kind, str, str]:
        """What was asked, without the answer."""
        return self.kind, self.name, self.key

    def fits(self, act: Act) -> bool:
        """Return whether an act of the replay is equal to this, as far as redaction lets that be seen."""
        if (self.kind, self.name) != (act.kind, act.name):
            return False
        return self.key == act.key or self.is_hidden(act.key)

    def is_hidden(self, key: str) -> bool:
        """Return whether both keys are equal after redaction, and no fingerprints tell whether they were equal before."""
        (hash_then, *then), (hash_now, *now) = (each.partition(" ")[0].split(".") for each in (self.key, key))
        return hash_then == hash_now and bool(then or now) and not (then and now and comparable(then[0], now[0]))

    @property
    def is_known(self) -> bool:
        """Whether there is an answer to serve: there is none to what was cancelled, or still open when the program ended."""
        answer = self.answer
        if isinstance(answer, LlmFailed):
            return not answer.cancelled
        return answer is not None and not (isinstance(answer, ToolCallCompleted) and answer.ended == "cancelled")

    def outcome(self) -> str:
        """Return a digest of the answer and of everything that the body of a call did: equal only if nothing tells two apart."""
        answer = self.answer
        if isinstance(answer, ToolCallCompleted):
            answered: object = (answer.ok, answer.result, None if answer.error is None else answer.error.message)
        elif isinstance(answer, FactRecorded):
            answered = answer.value
        else:
            answered = None if answer is None or answer.wire is None else answer.wire.model_dump(mode="json")
        caused = sorted(digest(each.kind, each.name, each.key, each.outcome()) for each in self.caused)
        return digest(answered, caused)


class Found(NamedTuple):
    """The recorded counterpart of an act of the replay."""

    entry: Entry
    rival: Entry | None = None
    """Where another recorded strand, which this could be as well, was answered differently."""


class Strands:
    """The recorded strands of one owner."""

    def __init__(self, entries: Iterable[Entry], cut: Collection[int] = (), *, at_work: bool = False) -> None:
        self.cut, self.at_work = cut, at_work
        """The strands whose task was cancelled, and whether tasks were still at work when the function ended."""
        self.entries = sorted(entries, key=lambda each: each.seq)
        self._recorded: dict[int, list[Entry]] = defaultdict(list)
        """The entries by recorded strand. Equal beginnings of two strands may have been exchanged."""
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
        """Do the same, or take an equal one from anywhere: a program whose model is live may do things in another order."""
        found = self.take(act) or next((Found(each) for each in self.left() if each.fits(act)), None)
        if found is not None:
            found.entry.taken = True
        return found

    def expected(self, strand: int) -> Entry | None:
        """Return what the recording has next for a strand, for a message."""
        bound = self._bound.get(strand)
        return next(self.left(), None) if bound is None else self._next(bound)

    def is_beyond(self, strand: int) -> bool:
        """Return whether a strand may have come further than in the recording.

        It may if the recording has nothing, or nothing more, of it, and it was cancelled, or at work when its function ended.
        """
        bound = self._bound.get(strand)
        if bound is None:
            return strand > 0 or 0 in self.cut  # the function itself has the first one
        return self._next(bound) is None and (bound in self.cut or (self.at_work and strand > 0))

    def left(self) -> Iterator[Entry]:
        """Yield what was recorded and has not been done again."""
        return (each for each in self.entries if not each.taken)

    def _begin(self, act: Act) -> Found | None:
        """Bind a new strand to the first recorded one that begins with this act and is not bound yet."""
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
        """Return the first entry at which two recorded strands, having done the same, were answered differently."""
        for mine, theirs in zip(self._recorded[one], self._recorded[other], strict=False):
            if mine.said != theirs.said:
                return None
            if mine.outcome() != theirs.outcome():
                return theirs
        return None

    def _next(self, recorded: int) -> Entry | None:
        return next((each for each in self._recorded[recorded] if not each.taken), None)

    def _switch(self, act: Act, mine: int) -> Found | None:
        """Bind a strand to another recorded one, if its act shows that it is that one.

        An example: two tasks look up x. One then looks up a, the other b. Whichever comes first in the replay is bound to the
        first recorded one. When it looks up b, it turns out to be the other one, and the two are exchanged.
        """
        done = [*takewhile(lambda each: each.taken, self._recorded[mine])]
        for number, entries in self._recorded.items():
            if number != mine and _continues(done, entries, act):
                self._exchange(mine, number, len(done))
                return Found(entries[len(done)])
        return None

    def _exchange(self, mine: int, other: int, count: int) -> None:
        """Let the strands bound to two recorded ones change places. Each takes along the `count` equal entries of its beginning."""
        places = {mine: other, other: mine}
        self._bound = {strand: places.get(number, number) for strand, number in self._bound.items()}
        one, two = self._recorded[mine], self._recorded[other]
        one[:count], two[:count] = two[:count], one[:count]


def _continues(done: list[Entry], entries: list[Entry], act: Act) -> bool:
    """Return whether a recorded strand begins like `done`, with equal answers, and continues with this act, done by nobody yet."""
    rest = entries[len(done) :]
    if not rest or not rest[0].fits(act) or any(each.taken for each in rest):
        return False
    return all(
        (one.said, one.outcome()) == (same.said, same.outcome()) for one, same in zip(done, entries, strict=False)
    )


def strands_of(recording: Recording, kinds: Collection[Kind]) -> dict[str, Strands]:
    """Return the strands of each owner in a recording, with the entries of these kinds."""
    owners, by_rules = recording.owners, recording.header.redacted
    found = {name: list(_entries(owner, by_rules=by_rules)) for name, owner in owners.items()}
    cut = {name: {each.value for each in owner.facts if each.name == CANCELLED} for name, owner in owners.items()}
    for each in chain.from_iterable(found.values()):
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
    """Yield what an owner did at its ports, without the calls that a killswitch or an approver kept from running."""
    open_: dict[object, tuple[Entry, int]] = {}  # with the time of each
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
    """Return what the start and the end of a request or call have in common."""
    if isinstance(event, (LlmRequested, LlmResponded, LlmFailed)):
        return event.request, event.attempt
    return getattr(event, "call_id", id(event))


class Turns:
    """The recorded order of answers, in which the tasks of a reproduced program take turns.

    An answer is due when the program has every answer that came before it in the recording, and has asked everything that it had
    asked before it.
    """

    def __init__(self, strands: Mapping[str, Strands]) -> None:
        entries = [*done_again(strands, "root")]
        self._to_ask = deque(sorted(entries, key=lambda each: each.seq))
        self._to_answer = deque(sorted((each for each in entries if each.is_known), key=lambda each: each.end_seq))
        self.moves = 0
        """Grows whenever the program asks something or gets an answer."""
        self.is_lost = False
        """Whether the program stood still before it came as far as in the recording, so that nothing waits for its turn any more."""

    def pass_on(self, entry: Entry) -> None:
        """Note that the program has this answer."""
        entry.passed = True
        self.moves += 1

    async def come(self, entry: Entry) -> None:
        """Wait until an answer is due, and note that the program has it."""
        await self.wait(lambda: self.is_lost or self._is_due(entry))
        self.pass_on(entry)

    async def wait(self, ready: Callable[[], bool], least_s: float = 0) -> bool:
        """Wait until `ready`; return False if the program makes no progress for `PATIENCE` looks, which begin after `least_s`."""
        moves = looks = -1
        while not ready():
            if moves != self.moves:  # progress since the last look, or the first look
                moves, looks, since_s = self.moves, 0, time.monotonic()
            looks += time.monotonic() - since_s >= least_s
            if looks > PATIENCE:
                self.is_lost = True
                return False
            await anyio.sleep(POLL_S)
        return True

    def _is_due(self, entry: Entry) -> bool:
        while self._to_ask and self._to_ask[0].taken:
            self._to_ask.popleft()
        while self._to_answer and self._to_answer[0].passed:
            self._to_answer.popleft()
        is_next = not self._to_answer or self._to_answer[0].end_seq >= entry.end_seq
        return is_next and (not self._to_ask or self._to_ask[0].seq > entry.end_seq)


def done_again(strands: Mapping[str, Strands], owner: str) -> Iterator[Entry]:
    """Yield what a program does again in a reproduction: not what the bodies of its tools did, which do not run."""
    for each in strands[owner].entries if owner in strands else ():
        yield each
        if each.enters:
            yield from done_again(strands, each.child)
