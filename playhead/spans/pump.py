"""Several runs on their way to one destination: full requests, in turn, and one that waits while nobody takes it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import TraceError
from playhead.spans.delivery import MAX_BYTES, Patience, Sink
from playhead.spans.encoding import size_of

if TYPE_CHECKING:
    from playhead.spans.delivery import Delivered
    from playhead.spans.run_export import Closed, RunExport
    from playhead.spans.wire import Answer

MAX_SPANS: Final = 512
"""Spans of one request."""
MAX_REMARKS: Final = 10
"""Texts of a destination that are passed on; it may count something in each."""
_MORE_REMARKS: Final = "more of this kind, which is not told any more"
_ROOM: Final = MAX_BYTES * 3 // 4
"""Bytes of one request by estimate; what is larger after all is split."""

Step = Literal["sent", "stuck", "idle"]
"""`sent`: something was settled. `stuck`: the destination takes nothing now. `idle`: there is nothing to send now."""


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

    def __init__(self, sink: Sink, patience: Patience | None = None) -> None:
        """Deliver to a sink; patience says when it is asked again."""
        self.sink = sink
        self.patience = patience or Patience()
        self.runs: list[RunExport] = []
        """Those that are not done, in the order in which they came."""
        self.totals = Totals()
        self.stopped: Answer | None = None
        """Why the destination took nothing the last time; None when it did."""
        self._turn = 0
        self._batch: list[Closed] = []

    def step(self, *, timeout_s: float | None = None) -> Step:
        """Deliver one request, unless there is nothing to deliver, or the destination wants to be left alone."""
        if time.monotonic() < self.patience.again_at:
            return "stuck"
        self._gather()
        if not self._batch:
            return "idle"
        delivered = self.sink.deliver([each.span for each in self._batch], timeout_s=timeout_s)
        settled, self._batch = self._batch[: delivered.settled], self._batch[delivered.settled :]
        for run, count in Counter(each.run for each in settled).items():
            run.settle(count, delivered, settled)
        self.totals.add(delivered)
        self.stopped = delivered.stopped
        if delivered.stopped is None:
            self.patience.succeeded()
            return "sent"
        self.patience.failed(delivered.stopped)
        return "sent" if delivered.settled else "stuck"

    def finished(self) -> list[RunExport]:
        """Return the runs that are done, and think of them no more."""
        done = [run for run in self.runs if run.done]
        for run in done:
            run.close()
        if done:
            self.runs = [run for run in self.runs if not run.done]
        return done

    def _gather(self) -> None:
        """Add the next spans, of each run in turn until a request is full."""
        size = sum(size_of(closed.span) for closed in self._batch)
        first = self._turn % len(self.runs) if self.runs else 0
        for run in [each for each in (*self.runs[first:], *self.runs[:first]) if each.failure is None]:
            while len(self._batch) < MAX_SPANS and size < _ROOM and (closed := _taken(run)) is not None:
                self._batch.append(closed)
                size += size_of(closed.span)
            run.rest()
        self._turn += 1


def _taken(run: RunExport) -> Closed | None:
    try:
        return run.take()
    except (TraceError, OSError) as error:
        run.failure = str(error)
    except Exception as error:  # noqa: BLE001 - one run that cannot be read must not hold up the others
        run.failure = f"this is a bug in Playhead ({type(error).__name__}: {error})"[:300]
    return None
