"""One run on its way to a destination: which of its spans are still to be delivered, in which order."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.spans.cursor import Refused
from playhead.spans.naming import NAMED, name_of
from playhead.spans.reading import Reading
from playhead.spans.settled import Settled
from playhead.spans.sources import TraceSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.cursor import Cursor
    from playhead.spans.delivery import Delivered, Refusal
    from playhead.spans.reading import Step
    from playhead.spans.sources import Source

_OR_OTHERS: Final = "; or spans of another run are meant"


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
        self.next_seq = next_seq
        self.settled = Settled(cursor, resume=resume)
        self.reading = Reading(opened, builder, self.settled.begin)
        self.failure: str | None = None
        """Why it cannot be read on; None while it can."""
        self._make_builder = builder
        self._lock = threading.Lock()  # of the reading: the end of a process reads on, to count
        self._waiting: deque[Closed] = deque()
        self._under_way: deque[Closed] = deque()
        self._all_settled = False

    @property
    def done(self) -> bool:
        """Whether nothing is left to deliver, now or later."""
        return self.failure is not None or self._all_settled

    def has_come_to(self, seq: int) -> bool:
        """Return whether every span that closed up to this event is settled."""
        return self.done or self.settled.reached.seq >= seq

    def take(self) -> Closed | None:
        """Return the next span to deliver; None when there is none now. Raises like `Reading.next`."""
        with self._lock:
            while not self._waiting and (step := self.reading.next()) is not None:
                self._take_in(step)
        if not self._waiting:
            self._note_down()
            return None
        closed = self._waiting[0]
        self._under_way.append(closed)
        self._waiting.popleft()
        return closed

    def settle(self, count: int, delivered: Delivered, batch: Sequence[Closed]) -> None:
        """Note that the first `count` of the spans that were taken are settled, as it was delivered of this batch."""
        for _ in range(count):
            self._under_way.popleft()
        refused = [found for each in delivered.refusals if (found := self._refused(each, batch)) is not None]
        smaller = [name_of(batch[at].span) for at in delivered.without_content if batch[at].run is self]
        self.settled.add(count, refused, smaller)
        self._note_down()

    def count_rest(self, late_at: float) -> int | None:
        """Return how many spans of a run without a trace are not settled, with those that are open, for now it is over.

        None when some of its events were lost, or reading them takes beyond `late_at`, in monotonic seconds.
        """
        with self._lock:
            while time.monotonic() < late_at and (step := self.reading.next()) is not None:
                self._take_in(step)
            if self.reading.missing.lost or time.monotonic() >= late_at:
                return None
            return len(self._waiting) + len(self._under_way) + self.reading.open_now()

    def rest(self) -> RunExport:
        """Return the same run from where it stands, to be read anew as one that is over."""
        assert self.path is not None  # noqa: S101 - a queue is read once
        path = self.path
        rest = RunExport(self.run_id, path, lambda: TraceSource(path, lambda: True), self._make_builder)
        rest.settled.start_from(self.settled.reached)
        return rest

    def close(self) -> None:
        """Let go of the file and of what was folded; what is not settled by then is for another export."""
        self.settled.close()
        self.reading.close()

    def _take_in(self, step: Step) -> None:
        if step.spans and not self.settled.skip(step.seq, len(step.spans), at_end=step.at_end):
            self._waiting.extend(Closed(self, step.seq, span) for span in step.spans)

    def _refused(self, refusal: Refusal, batch: Sequence[Closed]) -> Refused | None:
        """Return what was refused of this run, at most; None when its spans are not meant."""
        meant = batch[refusal.first : refusal.last + 1]
        own = [each for each in meant if each.run is self]
        if not own:
            return None
        names = tuple(name_of(each.span) for each in own[:NAMED])
        among = None if refusal.count == len(meant) else len(own)
        reason = refusal.reason if among is None or len(own) == len(meant) else refusal.reason + _OR_OTHERS
        return Refused(min(refusal.count, len(own)), own[0].seq, own[-1].seq, reason, names, among)

    def _note_down(self) -> None:
        """Keep what is settled."""
        following, reading = self._under_way or self._waiting, self.reading
        if following:
            self.settled.reach(following[0].seq - 1)
        elif reading.drained:
            self.settled.finish(reading.at, ended=reading.ended, interrupted=reading.interrupted > 0)
            self._all_settled = True
        else:
            self.settled.reach(reading.at)
