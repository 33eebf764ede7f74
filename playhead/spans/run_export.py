"""One run on its way to a destination: which of its spans are still to be delivered, in which order."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.spans.cursor import NOTHING, Reached
from playhead.spans.destination import plain
from playhead.trace.events import RunCompleted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.cursor import Cursor
    from playhead.spans.delivery import Delivered, Refusal
    from playhead.spans.sources import Source
    from playhead.trace.reader import Problem

NAMED: Final = 5
"""Spans of a refusal that are named."""
_LONGEST_NAME: Final = 80
_OR_OTHERS: Final = "; or spans of another run are meant"


@dataclass(frozen=True, slots=True)
class Refused:
    """Spans of a run that the destination does not take."""

    count: int
    """How many."""
    reason: str
    """In the destination's words."""
    spans: tuple[str, ...] = ()
    """Names and ids of the first of those that may be meant."""
    among: int | None = None
    """Of how many spans it is some, when the destination did not say which of them; None: all of those that may be meant."""


class Closed(NamedTuple):
    """A span that is to be delivered."""

    run: RunExport
    seq: int
    """The event that closed it; of one that is still open in a run that is over, one more than the last event."""
    span: ReadableSpan


class RunExport:
    """One run on its way to a destination. Spans close in the order of the events, so one number says how far it is."""

    def __init__(  # noqa: PLR0913 - what an export is made of
        self,
        run_id: str,
        path: Path | None,
        opened: Callable[[], Source],
        builder: Callable[[], SpanBuilder],
        cursor: Cursor | None = None,
        *,
        resume: bool = False,
        next_seq: Callable[[], int] = lambda: 0,
    ) -> None:
        """Export a run; nothing is opened before the first span is asked for.

        Args:
            run_id: the run.
            path: its trace; None when it has none.
            opened: opens where its records come from.
            builder: makes what folds them.
            cursor: where to write down what was settled; None when nobody will ask.
            resume: whether to leave out what the cursor says is settled.
            next_seq: returns the number of the event that the run records next; known of those of this process.
        """
        self.run_id, self.path, self.cursor = run_id, path, cursor
        self.next_seq = next_seq
        self.reached = Reached()
        """What is settled by now."""
        self.accepted = self.refused = 0
        """What became of the spans of this export."""
        self.refusals: list[Refused] = []
        """What was refused by this export."""
        self.smaller: list[str] = []
        """Names and ids of spans that were accepted only without their content, for they were too large."""
        self.skipped = self.refused_before = 0
        """Spans that were settled before; of these, the ones that were refused: nobody has them."""
        self.interrupted = 0
        """Spans that were still open when the run was over."""
        self.left_out = 0
        """Events that belong to nothing that began."""
        self.failure: str | None = None
        """Why it cannot be read on; None while it can."""
        self._opened, self._make_builder, self._resume = opened, builder, resume
        self._source: Source | None = None
        self._builder: SpanBuilder | None = None
        self._lock = threading.Lock()  # of the reading: the end of a process reads on, to count
        self._reading: Iterator[Sequence[Closed] | None] | None = self._closings()
        self._waiting: deque[Closed] = deque()
        self._under_way: deque[Closed] = deque()
        self._from = Reached()
        self._first = ""
        self._at = NOTHING
        self._ended = self._drained = self._all_settled = self._counted = False

    @property
    def done(self) -> bool:
        """Whether nothing is left to deliver, now or later."""
        return self.failure is not None or self._all_settled

    @property
    def lost(self) -> int:
        """Events that were never folded."""
        return 0 if self._source is None else self._source.lost

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the file."""
        return () if self._source is None else self._source.problems

    def has_come_to(self, seq: int) -> bool:
        """Return whether every span that closed up to this event is settled."""
        return self.done or self.reached.seq >= seq

    def take(self) -> Closed | None:
        """Return the next span to deliver; None when there is none now. Raises like `playhead.trace.reader.scan`."""
        with self._lock:
            while not (self._waiting or self._counted) and (closed := self._read_on()):
                self._waiting.extend(closed)
            if self._counted or not self._waiting:
                self._note_down()
                return None
            self._under_way.append(self._waiting.popleft())
            return self._under_way[-1]

    def settle(self, count: int, delivered: Delivered, batch: Sequence[Closed]) -> None:
        """Note that the first `count` of the spans that were taken are settled, as it was delivered of this batch."""
        for _ in range(count):
            self._under_way.popleft()
        refusals = [found for each in delivered.refusals if (found := self._refused(each, batch)) is not None]
        refused = sum(each.count for each in refusals)
        self.refusals += refusals
        self.smaller += [name_of(batch[at].span) for at in delivered.without_content if batch[at].run is self]
        self.accepted, self.refused = self.accepted + count - refused, self.refused + refused
        self.reached.accepted += count - refused
        self.reached.refused += refused
        self._note_down()

    def count_rest(self, late_at: float) -> int | None:
        """Return how many spans are not settled, with those that are open, for now the run is over; it is not read on after this.

        None when some of its events were lost or cannot be read, or reading them takes beyond `late_at`, in monotonic seconds.
        """
        with self._lock:
            self._counted = True
            number = len(self._waiting) + len(self._under_way)
            try:
                while time.monotonic() < late_at:
                    closed = self._read_on()
                    number += len(closed)
                    if not closed:
                        open_now = self._builder.interrupted() if self._builder and not self._drained else ()
                        return None if self.lost else number + len(open_now)
            except Exception:  # noqa: BLE001 - what cannot be read cannot be counted
                return None
        return None

    def rest(self) -> None:
        """Hold no file open until it is read on."""
        with self._lock:
            if self._source is not None:
                self._source.rest()

    def close(self) -> None:
        """Let go of the file and of what was folded; what is not settled by then is for another export."""
        if self.cursor is not None and self.cursor.error is not None:
            self.cursor.save(self._first, self.reached)
        self.rest()
        self._builder = self._reading = None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read_on(self) -> Sequence[Closed]:
        """Return what the next events close; nothing when there is nothing now, or nothing more."""
        closed = () if self._reading is None else next(self._reading, ())
        if closed is None:
            return ()
        self._drained = self._drained or not closed
        return closed

    def _closings(self) -> Iterator[Sequence[Closed] | None]:
        """Yield what each event closes, and at the end what is still open; None while nothing more has come."""
        source, builder = self._begin_reading()
        while True:
            for record in source.new():
                spans = builder.feed(record)
                self.left_out = builder.left_out
                if self._at == NOTHING and not self._begin(record.h):
                    return
                self._at = record.seq
                if isinstance(record.event, RunCompleted) and record.owner == "root":
                    self._ended = True
                if spans and not self._is_known(len(spans), record.seq <= self._from.seq):
                    yield [Closed(self, record.seq, span) for span in spans]
            if source.over:
                break
            yield None
        left = [] if source.lost else builder.interrupted()
        self.interrupted = len(left)
        sent_before = self._from.seq == self._from.interrupted_at == self._at
        if left and not self._is_known(len(left), sent_before):
            yield [Closed(self, self._at + 1, span) for span in left]

    def _begin_reading(self) -> tuple[Source, SpanBuilder]:
        self._source, self._builder = self._opened(), self._make_builder()
        return self._source, self._builder

    def _begin(self, first: str) -> bool:
        """Find out how far the run came whose first line has this hash; return whether anything is left."""
        self._first = first
        found = None if self.cursor is None else self.cursor.load(first)
        if found is not None and self._resume:
            self.reached, self._from = found, found.model_copy()
            self.refused_before = found.refused
            self.skipped = found.accepted + found.refused if found.complete else 0
        return not self.reached.complete

    def _is_known(self, spans: int, known: bool) -> bool:  # noqa: FBT001 - what it says
        self.skipped += spans if known else 0
        return known

    # --- what is settled ----------------------------------------------------------------------------------------------

    def _refused(self, refusal: Refusal, batch: Sequence[Closed]) -> Refused | None:
        """Return what was refused of this run, at most; None when its spans are not meant."""
        meant = batch[refusal.first : refusal.last + 1]
        own = [each for each in meant if each.run is self]
        if not own:
            return None
        names = tuple(name_of(each.span) for each in own[:NAMED])
        among = None if refusal.count == len(meant) else len(own)
        reason = refusal.reason if among is None or len(own) == len(meant) else refusal.reason + _OR_OTHERS
        return Refused(min(refusal.count, len(own)), reason, names, among)

    def _note_down(self) -> None:
        """Keep what is settled: all that closed before the first span that is not."""
        following = self._under_way or self._waiting
        if following:
            self._write(following[0].seq - 1, interrupted_at=self.reached.interrupted_at)
        elif self._drained and not self._counted:
            self._write(self._at, complete=self._ended, interrupted_at=self._at if self.interrupted else None)
            self._all_settled = True
        elif not self._counted:
            self._write(self._at, interrupted_at=self.reached.interrupted_at)

    def _write(self, seq: int, *, interrupted_at: int | None, complete: bool = False) -> None:
        reached = self.reached
        known = {"seq": max(seq, self._from.seq), "complete": complete, "interrupted_at": interrupted_at}
        if reached.complete or reached == reached.model_copy(update=known):
            return
        self.reached = reached.model_copy(update=known)
        if self.cursor is not None:
            self.cursor.save(self._first, self.reached)


def name_of(span: ReadableSpan) -> str:
    """Return a span's name and id, as one plain line."""
    context = span.context
    name = plain(span.name)[:_LONGEST_NAME]
    return f"{name} {context.span_id:016x}" if context is not None else name
