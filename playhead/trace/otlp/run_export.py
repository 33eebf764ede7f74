"""One run on its way to a destination: which of its spans are still to be delivered, in which order."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import TraceError
from playhead.trace.events import RunCompleted
from playhead.trace.otlp.cursor import NOTHING, Reached, Refused
from playhead.trace.otlp.naming import NAMED, name_of
from playhead.trace.otlp.sources import TraceSource, is_for_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.trace.line import Record
    from playhead.trace.otlp.cursor import Cursor
    from playhead.trace.otlp.delivery import Delivered, Refusal
    from playhead.trace.otlp.sources import Source
    from playhead.trace.spans import SpanBuilder

_OR_OTHERS: Final = "; or spans of another run are meant"
_AGAIN_S: Final = 1.0
"""Seconds until a trace that cannot be read now is read again; more, the longer that lasts."""
_LONGEST_S: Final = 60.0


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
        self.run_id, self.path = run_id, path
        self.cursor = cursor
        self.next_seq = next_seq
        self.skipped = self.accepted = self.refused = 0
        """Spans that were settled before, and what became of the others."""
        self.refused_before = 0
        """Of those that were settled before, the ones that were refused: nobody has them."""
        self.smaller: list[str] = []
        """Names and ids of spans that were accepted only without their content, for they were too large."""
        self.reached = Reached()
        """What is settled by now."""
        self.interrupted = 0
        """Spans that were still open when the run was over."""
        self.lost = 0
        """Events that were never folded; known when it is closed."""
        self.left_out = 0
        """Events that belong to nothing that began; known when it is closed."""
        self.source: Source | None = None
        self.builder: SpanBuilder | None = None
        self.failure: str | None = None
        """Why it cannot be read on; None while it can."""
        self.trouble: str | None = None
        """Why it cannot be read on now; None when it can."""
        self.trouble_since = 0.0
        """Monotonic seconds."""
        self._opened, self._make_builder, self._resume = opened, builder, resume
        self._records: Iterator[Record] | None = None
        self._waiting: deque[Closed] = deque()
        self._under_way: deque[Closed] = deque()
        self._reading = threading.Lock()  # the end of a process reads on, to count
        self._again_at = 0.0
        self._known = 0  # refusals that were written down before
        self._folded = NOTHING  # the last event whose spans were made before it was all read anew
        self._before = NOTHING
        self._interrupted_at: int | None = None
        self._at = NOTHING
        self._first = ""
        self._ended = self._drained = False

    @property
    def done(self) -> bool:
        """Whether nothing is left to deliver, now or later."""
        return self.failure is not None or (self._drained and not self._waiting and not self._under_way)

    def has_come_to(self, seq: int) -> bool:
        """Return whether every span that closed up to this event is settled."""
        return self.done or self.reached.seq >= seq

    @property
    def refused_now(self) -> list[Refused]:
        """What was refused by this export, as far as it is written down."""
        return self.reached.refused[self._known :]

    def take(self) -> Closed | None:
        """Return the next span to deliver; None when there is none now. Raises like `playhead.trace.reader.scan`.

        What keeps a trace from being read for now raises nothing: it is `trouble`, and is tried again.
        """
        with self._reading:
            try:
                self._fill()
            except (TraceError, OSError) as error:
                self._stumble(error)
        if not self._waiting:
            return None
        closed = self._waiting.popleft()
        self._under_way.append(closed)
        return closed

    def settle(self, count: int, delivered: Delivered, batch: Sequence[Closed]) -> None:
        """Note that the first `count` of the spans that were taken are settled, as it was delivered of this batch."""
        for _ in range(count):
            self._under_way.popleft()
        refused = sum(self._refuse(refusal, batch) for refusal in delivered.refusals)
        self.reached.accepted += count - refused
        self.accepted, self.refused = self.accepted + count - refused, self.refused + refused
        self.smaller += [name_of(batch[at].span) for at in delivered.without_content if batch[at].run is self]
        self._write_down()

    def _refuse(self, refusal: Refusal, batch: Sequence[Closed]) -> int:
        """Note what was refused, and return how many of the run's spans that are, at most."""
        meant = batch[refusal.first : refusal.last + 1]
        own = [each for each in meant if each.run is self]
        if not own:
            return 0
        count = min(refusal.count, len(own))
        names = tuple(name_of(each.span) for each in own[:NAMED])
        among = None if refusal.count == len(meant) else len(own)
        reason = refusal.reason if among is None or len(own) == len(meant) else refusal.reason + _OR_OTHERS
        self.reached.refuse(Refused(count, own[0].seq, own[-1].seq, reason, names, among))
        return count

    @property
    def held(self) -> int:
        """Spans that were made and are not settled."""
        return len(self._waiting) + len(self._under_way)

    def count_rest(self, late_at: float) -> int | None:
        """Return how many spans of a run without a trace are not settled, with those that are open, for now it is over.

        None when some of its events were lost, or reading them takes beyond `late_at`, in monotonic seconds.
        """
        with self._reading:
            while not self._drained and time.monotonic() < late_at and self._read_on():
                pass
            if self.source is None or self.source.lost or time.monotonic() >= late_at:
                return None
            return self.held + (0 if self._drained or self.builder is None else len(self.builder.interrupted()))

    def rest(self) -> RunExport:
        """Return the same run from where it stands, to be read anew as one that is over."""
        assert self.path is not None  # noqa: S101 - a queue is read once
        path, reached = self.path, self.reached
        rest = RunExport(self.run_id, path, lambda: TraceSource(path, lambda: True), self._make_builder)
        rest._before, rest._interrupted_at = reached.seq, reached.interrupted_at
        return rest

    def close(self) -> None:
        """Let go of the file and of what was folded; what is not settled by then is for another export."""
        if self.cursor is not None and self.cursor.error is not None:
            self.cursor.save(self._first, self.reached)
        self._let_go()

    def _let_go(self) -> None:
        source, self.source = self.source, None
        if source is not None:
            self.lost = source.lost
            source.close()
        self.left_out = self.left_out if self.builder is None else self.builder.left_out
        self.builder, self._records = None, None

    def _fill(self) -> None:
        """Read until a span has closed, or there is nothing to read now."""
        if time.monotonic() < self._again_at:
            return
        while not self._waiting and not self._drained and self._read_on():
            pass
        self.trouble, self.trouble_since = None, 0.0

    def _stumble(self, error: Exception) -> None:
        """Read it all anew later when that may help, without the spans that were made by now; raises when it may not."""
        if not is_for_now(error):
            raise error
        self._let_go()
        self._folded = self._at
        now = time.monotonic()
        self.trouble, self.trouble_since = str(error), self.trouble_since or now
        self._again_at = now + max(_AGAIN_S, min(now - self.trouble_since, _LONGEST_S))

    def _read_on(self) -> bool:
        """Fold one more record, or what is left open at the end; return whether that may have closed a span."""
        if self.source is None:
            self.source, self.builder = self._opened(), self._make_builder()
        self._records = self._records or self.source.new()
        record = next(self._records, None)
        if record is not None:
            self._fold(record)
            return True
        self._records = None
        if not self.source.over:
            self._write_down()
            return False
        self._finish()
        return True

    def _fold(self, record: Record) -> None:
        assert self.builder is not None  # noqa: S101 - made with the source
        if record.seq <= self._folded:
            self.builder.feed(record)
            return
        if self._at == NOTHING:
            self._begin(record)
        self._at = record.seq
        self._ended = self._ended or (isinstance(record.event, RunCompleted) and record.owner == "root")
        for span in self.builder.feed(record):
            if record.seq <= self._before:
                self.skipped += 1
            else:
                self._waiting.append(Closed(self, record.seq, span))

    def _begin(self, record: Record) -> None:
        """Find out how far the run has come; one that is there already is not read."""
        self._first = record.h
        found = None if self.cursor is None else self.cursor.load(self._first)
        if found is not None and self._resume:
            self.reached, self._known = found, len(found.refused)
            self._before, self._interrupted_at = found.seq, found.interrupted_at
            self.refused_before = sum(each.count for each in found.refused) + found.more_refused
            if self.reached.complete:
                self.skipped = self.reached.accepted + self.refused_before
                self._drained = self._ended = True

    def _finish(self) -> None:
        """Take what is still open as interrupted, unless that was done when the run was no further."""
        self._drained = True
        assert self.source is not None and self.builder is not None  # noqa: S101, PT018 - made together
        left = [] if self.source.lost else self.builder.interrupted()  # of a run that goes on, nothing is interrupted
        self.interrupted = len(left)
        if self._before == self._at == self._interrupted_at:
            self.skipped += len(left)
        else:
            self._waiting.extend(Closed(self, self._at + 1, span) for span in left)
        self._write_down()

    def _write_down(self) -> None:
        """Keep what is settled."""
        following = self._under_way or self._waiting
        before = self.reached.seq, self.reached.complete, self.reached.interrupted_at
        self.reached.seq = max(following[0].seq - 1 if following else self._at, self._before)
        if self._drained and not following:
            self.reached.complete = self._ended
            self.reached.interrupted_at = self._at if self.interrupted else None
        if self.cursor is not None and before != (
            self.reached.seq,
            self.reached.complete,
            self.reached.interrupted_at,
        ):
            self.cursor.save(self._first, self.reached)
