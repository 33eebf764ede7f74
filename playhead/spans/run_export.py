"""One run on its way to a destination: which of its spans are still to be delivered, in which order."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from playhead.spans.cursor import NOTHING, Reached
from playhead.spans.destination import plain
from playhead.trace.events import RunCompleted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.cursor import Cursor
    from playhead.spans.run import SpanBuilder
    from playhead.spans.sources import Source
    from playhead.trace.reader import Problem


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
        open_source: Callable[[], Source],
        make_builder: Callable[[], SpanBuilder],
        cursor: Cursor | None = None,
        *,
        resume: bool = False,
        next_seq: Callable[[], int] = lambda: 0,
    ) -> None:
        """Export a run; nothing is opened before the first span is taken.

        Args:
            run_id: the run.
            path: its trace; None when it has none.
            open_source: opens where its records come from.
            make_builder: makes the builder of its spans.
            cursor: the file of what was settled; None: it is not kept.
            resume: whether to leave out what the cursor says is settled.
            next_seq: returns the number of the event that the run records next; for runs of this process.
        """
        self.run_id, self.path, self.cursor = run_id, path, cursor
        self.next_seq = next_seq
        self.reached = Reached()
        """What is settled by now."""
        self.accepted = 0
        """Spans that this export delivered."""
        self.refused: list[tuple[str, str]] = []
        """Names and ids of the spans that the destination refused in this export, and why."""
        self.skipped = self.refused_before = 0
        """Spans that were settled before; of these, the ones that were refused."""
        self.interrupted = 0
        """Spans that were still open when the run was over."""
        self.left_out = 0
        """Events that are part of no span."""
        self.failure: str | None = None
        """Why the trace cannot be read; None while it can."""
        self._open_source, self._make_builder, self._resume = open_source, make_builder, resume
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
        """Events that a full queue dropped."""
        return 0 if self._source is None else self._source.lost

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the file."""
        return () if self._source is None else self._source.problems

    def has_settled(self, seq: int) -> bool:
        """Return whether every span that closed up to this event is settled."""
        return self.done or self.reached.seq >= seq

    def take(self) -> Closed | None:
        """Return the next span to deliver; None when there is none now. Raises like `playhead.trace.reader.scan`."""
        with self._lock:
            while not (self._waiting or self._counted) and (closed := self._read_on()):
                self._waiting.extend(closed)
            if self._counted or not self._waiting:
                self._note_settled()
                return None
            self._under_way.append(self._waiting.popleft())
            return self._under_way[-1]

    def settle(self, count: int, refused: Sequence[tuple[ReadableSpan, str]]) -> None:
        """Note that the first `count` of the spans that were taken are settled: accepted, but for those refused."""
        for _ in range(count):
            self._under_way.popleft()
        self.refused += [(_name_of(span), reason) for span, reason in refused]
        self.accepted += count - len(refused)
        self.reached.accepted += count - len(refused)
        self.reached.refused += len(refused)
        self._note_settled()

    def count_rest(self, late_at: float) -> int | None:
        """Return how many spans are not settled, with those that are open; the run is not delivered any further.

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

    def close(self) -> None:
        """Drop the builder; what is not settled by then is for another export."""
        if self.cursor is not None and self.cursor.error is not None:
            self.cursor.save(self._first, self.reached)
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
        source = self._source = self._open_source()
        builder = self._builder = self._make_builder()
        while True:
            for record in source.new():
                spans = builder.feed(record)
                self.left_out = builder.left_out
                if self._at == NOTHING and not self._begin(record.h):
                    return
                self._at = record.seq
                if isinstance(record.event, RunCompleted) and record.owner == "root":
                    self._ended = True
                if spans and not self._skip(len(spans), was_settled=record.seq <= self._from.seq):
                    yield [Closed(self, record.seq, span) for span in spans]
            if source.over:
                break
            yield None
        left = [] if source.lost else builder.interrupted()
        self.interrupted = len(left)
        was_settled = self._from.seq == self._from.interrupted_at == self._at
        if left and not self._skip(len(left), was_settled=was_settled):
            yield [Closed(self, self._at + 1, span) for span in left]

    def _begin(self, first: str) -> bool:
        """Load how far the run came whose first line has this hash; return whether anything is left."""
        self._first = first
        reached = None if self.cursor is None else self.cursor.load(first)
        if reached is not None and self._resume:
            self.reached, self._from = reached, reached.model_copy()
            self.refused_before = reached.refused
            self.skipped = reached.accepted + reached.refused if reached.complete else 0
        return not self.reached.complete

    def _skip(self, spans: int, *, was_settled: bool) -> bool:
        self.skipped += spans if was_settled else 0
        return was_settled

    # --- what is settled ----------------------------------------------------------------------------------------------

    def _note_settled(self) -> None:
        """Keep what is settled: all that closed before the first span that is not."""
        following, interrupted_at, complete = self._under_way or self._waiting, self.reached.interrupted_at, False
        seq = following[0].seq - 1 if following else self._at
        if self._counted and not following:
            return
        if self._drained and not following:
            interrupted_at, complete = self._at if self.interrupted else None, self._ended
            self._all_settled = True
        known = {"seq": max(seq, self._from.seq), "complete": complete, "interrupted_at": interrupted_at}
        newer = self.reached.model_copy(update=known)
        if self.reached.complete or self.reached == newer:
            return
        self.reached = newer
        if self.cursor is not None:
            self.cursor.save(self._first, newer)


def _name_of(span: ReadableSpan) -> str:
    return f"{plain(span.name)} {span.context.span_id:016x}" if span.context else plain(span.name)
