"""Several runs on their way to one destination: full requests, in turn, and one that waits while nobody takes it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import TraceError
from playhead.spans.delivery import Patience, Sink, deliver_one_by_one
from playhead.spans.encoding import MAX_BYTES, size_of

if TYPE_CHECKING:
    from playhead.spans.delivery import Delivered
    from playhead.spans.run_export import Closed, RunExport
    from playhead.spans.wire import Answer

MAX_SPANS: Final = 512
"""Spans of one request."""
BREAKS: Final = 3
"""Times that a collector may break at a request before its spans are sent one by one."""
MAX_REMARKS: Final = 10
"""Texts of a destination that are passed on; it may count something in each."""
_MORE_REMARKS: Final = "more of this kind, which is not told any more"
UNREADABLE_S: Final = 10.0
"""Seconds after which a trace that cannot be read, for now, is given up."""
_ROOM: Final = MAX_BYTES * 3 // 4
"""Bytes of one request by estimate; what is larger after all is split."""

Step = Literal["sent", "stuck", "idle"]
"""`sent`: something was settled. `stuck`: the destination takes nothing now, or what is left cannot be read now. `idle`: there is nothing to send now."""


@dataclass
class Totals:
    """What became of the spans of all runs."""

    accepted: int = 0
    refused: int = 0
    remarks: list[str] = field(default_factory=list)
    """What the destination said of spans that it took, each text once; of more than `MAX_REMARKS`, that there are more."""

    def add(self, delivered: Delivered) -> None:
        """Count what became of spans."""
        self.refused += delivered.refused
        self.accepted += delivered.settled - delivered.refused
        for remark in delivered.remarks:
            if remark not in self.remarks and len(self.remarks) <= MAX_REMARKS:
                self.remarks.append(remark if len(self.remarks) < MAX_REMARKS else _MORE_REMARKS)


class Pump:
    """Delivers the spans of runs, each run's in order. For one thread."""

    def __init__(self, sink: Sink, patience: Patience | None = None, *, unreadable_s: float = UNREADABLE_S) -> None:
        """Deliver to a sink.

        Args:
            sink: takes the spans.
            patience: when it is asked again.
            unreadable_s: seconds after which a trace that cannot be read for now is given up.
        """
        self.sink = sink
        self._unreadable_s = unreadable_s
        self.patience = patience or Patience()
        self.runs: list[RunExport] = []
        """Those that are not done, in the order in which they came."""
        self._turn = 0
        self.totals = Totals()
        self.stopped: Answer | None = None
        """Why the destination took nothing the last time; None when it did."""
        self._batch: list[Closed] = []
        self._broke = 0

    def step(self, *, timeout_s: float | None = None) -> Step:
        """Deliver one request, unless there is nothing to deliver, or the destination wants to be left alone."""
        if time.monotonic() < self.patience.again_at:
            return "stuck"
        self._batch = self._batch or self._gather()
        if not self._batch:
            return "stuck" if any(run.reading.shortage.reason for run in self.runs) else "idle"
        delivered = self._delivered(timeout_s)
        self._settle(delivered)
        stopped = self.stopped = delivered.stopped
        if stopped is None:
            self.patience.succeeded()
            return "sent"
        self._broke = self._broke + 1 if stopped.meaning == "failed" else 0
        self.patience.failed(stopped)
        return "sent" if delivered.settled else "stuck"

    def finished(self) -> list[RunExport]:
        """Return the runs that are done, and think of them no more."""
        done = [run for run in self.runs if run.done]
        for run in done:
            run.close()
        if done:
            self.runs = [run for run in self.runs if not run.done]
        return done

    def _delivered(self, timeout_s: float | None) -> Delivered:
        """Deliver the request; one at which the collector breaks again and again, span by span."""
        if self._broke < BREAKS:
            return self.sink.deliver([each.span for each in self._batch], timeout_s=timeout_s)
        self._broke = 0
        self._batch += self._gather() if len(self._batch) == 1 else []  # for one alone says nothing of the collector
        return deliver_one_by_one(self.sink, [each.span for each in self._batch], timeout_s=timeout_s)

    def _gather(self) -> list[Closed]:
        """Return the next spans, of each run in turn until a request is full."""
        batch: list[Closed] = []
        size = 0
        first = self._turn % len(self.runs) if self.runs else 0
        for run in [each for each in (*self.runs[first:], *self.runs[:first]) if each.failure is None]:
            while len(batch) < MAX_SPANS and size < _ROOM and (closed := self._taken(run)) is not None:
                batch.append(closed)
                size += size_of(closed.span)
        self._turn += 1
        return batch

    def _settle(self, delivered: Delivered) -> None:
        settled, self._batch = self._batch[: delivered.settled], self._batch[delivered.settled :]
        for run, count in Counter(each.run for each in settled).items():
            run.settle(count, delivered, settled)
        self.totals.add(delivered)

    def _taken(self, run: RunExport) -> Closed | None:
        try:
            closed = run.take()
        except (TraceError, OSError) as error:
            run.failure = str(error)
        except Exception as error:  # noqa: BLE001 - one run that cannot be read must not hold up the others
            run.failure = f"this is a bug in Playhead ({type(error).__name__}: {error})"[:300]
        else:
            shortage = run.reading.shortage
            if shortage.reason is not None and time.monotonic() - shortage.since > self._unreadable_s:
                run.failure = shortage.reason
            return closed
        return None
