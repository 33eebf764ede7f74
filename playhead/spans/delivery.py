"""Spans on their way to one destination: requests that it takes, what became of each span, and pauses when it takes nothing."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from playhead.errors import TraceError
from playhead.spans.encoding import encode, size_of
from playhead.spans.wire import Answer, Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

    from playhead.spans.destination import Destination
    from playhead.spans.run_export import Closed, RunExport

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one request, before it is compressed: the limit of some collectors."""
MAX_SPANS: Final = 512
"""Spans of one delivery."""
MAX_REQUESTS: Final = 32
"""Requests of one delivery; the spans that are left go into the next."""
MAX_REMARKS: Final = 10
"""Texts of a destination that are passed on; it may count something in each."""
_ROOM: Final = MAX_BYTES * 3 // 4
"""Bytes of one delivery by estimate; a request that is larger after all is split."""
_FIRST_PAUSE_S: Final = 1.0
"""Seconds after the first failure; doubled each time."""
_LONGEST_PAUSE_S: Final = 60.0
_JITTER: Final = 0.2


@dataclass
class Delivered:
    """What became of spans, in their order."""

    settled: int = 0
    """Spans from the start that were accepted or refused."""
    refused: dict[int, str] = field(default_factory=dict)
    """Why spans were refused for good, by their places."""
    remarks: list[str] = field(default_factory=list)
    """What the destination said of spans that it took."""
    stopped: Answer | None = None
    """Why the rest was not delivered; None when there is no rest, or it is only to be handed over again."""


class Sink(Protocol):
    """Takes spans."""

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now."""
        ...

    def close(self) -> None:
        """Close what it holds."""
        ...


class ToProcessor:
    """Hands spans to an application's own span processor; whether they arrive, only the processor knows."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:  # noqa: ARG002
        """Hand spans over in order; one at which the processor raises counts as refused."""
        delivered = Delivered(settled=len(spans))
        for place, span in enumerate(spans):
            try:
                self._processor.on_end(span)
            except Exception as error:  # noqa: BLE001 - a processor is the application's code
                delivered.refused[place] = type(error).__name__
        return delivered

    def close(self) -> None:
        """Do nothing: the processor is its application's."""


class Otlp:
    """Delivers spans by OTLP over HTTP. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self._wire = Wire(destination)
        self._broke = False

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now.

        A request that is too large or holds a span that the collector refuses is halved until that span is found; so is one
        at which the collector breaks twice. A collector that takes none of the spans is wrong itself: nothing is settled.

        Args:
            spans: what to deliver.
            timeout_s: the seconds for all requests; None: each request takes as long as the destination allows.
        """
        late_at = None if timeout_s is None else time.monotonic() + timeout_s
        delivered, parts, blamed, accepted = Delivered(), [range(len(spans))], None, False
        for _ in range(MAX_REQUESTS):
            if not parts or delivered.stopped is not None:
                break
            part = parts.pop()
            answer = self._send(spans[part.start : part.stop], late_at)
            about_spans = answer.meaning in {"too-large", "refused"} or (answer.meaning == "failed" and self._broke)
            if about_spans and len(part) > 1:
                middle = part.start + len(part) // 2
                parts += [range(middle, part.stop), range(part.start, middle)]
            elif about_spans:
                delivered.settled += 1
                delivered.refused[part.start] = answer.reason
                blamed = blamed if answer.meaning == "too-large" else answer
            elif answer.meaning == "accepted":
                delivered.settled, accepted = delivered.settled + len(part), True
                delivered.remarks += [answer.reason] if answer.reason else []
            else:
                delivered.stopped = answer
        if blamed is not None and not accepted:
            meaning: Literal["failed", "unusable"] = "failed" if blamed.meaning == "failed" else "unusable"
            delivered = Delivered(stopped=Answer(meaning, blamed.reason, blamed.retry_after_s))
        self._broke = delivered.stopped is not None and delivered.stopped.meaning == "failed"
        return delivered

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _send(self, spans: Sequence[ReadableSpan], late_at: float | None) -> Answer:
        body = encode(spans)
        if len(body) > MAX_BYTES and len(spans) > 1:
            return Answer("too-large")
        left_s = None if late_at is None else late_at - time.monotonic()
        if left_s is not None and left_s <= 0:
            return Answer("unavailable", "there was no time left")
        return self._wire.post(body, timeout_s=left_s)


Step = Literal["sent", "stuck", "idle"]
"""`sent`: something was settled. `stuck`: the destination takes nothing now. `idle`: there is nothing to send now."""


class Pump:
    """Delivers the spans of runs, each run's in order. For one thread."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.runs: list[RunExport] = []
        """Those that are not done, in the order in which they came."""
        self.remarks: list[str] = []
        """What the destination said of spans that it took, each text once; the first `MAX_REMARKS`."""
        self.stopped: Answer | None = None
        """Why the destination took nothing the last time; None when it did."""
        self.again_at = 0.0
        """When the destination is tried again, in monotonic seconds."""
        self.failing_since: float | None = None
        """When the first of the failures in a row was, in monotonic seconds."""
        self._pause_s = _FIRST_PAUSE_S
        self._turn = 0
        self._batch: list[Closed] = []

    def step(self, *, timeout_s: float | None = None) -> Step:
        """Deliver once, unless there is nothing to deliver or the destination is not to be tried yet."""
        if time.monotonic() < self.again_at:
            return "stuck"
        self._gather()
        if not self._batch:
            return "idle"
        delivered = self.sink.deliver([each.span for each in self._batch], timeout_s=timeout_s)
        settled, self._batch = self._batch[: delivered.settled], self._batch[delivered.settled :]
        refused = [(settled[place], reason) for place, reason in delivered.refused.items()]
        for run, count in Counter(each.run for each in settled).items():
            run.settle(count, [(each.span, reason) for each, reason in refused if each.run is run])
        new = [each for each in dict.fromkeys(delivered.remarks) if each not in self.remarks]
        self.remarks += new[: MAX_REMARKS - len(self.remarks)]
        self._pause(delivered.stopped)
        return "sent" if delivered.settled or delivered.stopped is None else "stuck"

    def finished(self) -> list[RunExport]:
        """Return the runs that are done, and drop them."""
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
            while len(self._batch) < MAX_SPANS and size < _ROOM and (closed := _next_of(run)) is not None:
                self._batch.append(closed)
                size += size_of(closed.span)
        self._turn += 1

    def _pause(self, stopped: Answer | None) -> None:
        """Wait longer after each failure, or as long as the destination says; not at all after a success."""
        self.stopped, now = stopped, time.monotonic()
        if stopped is None:
            self._pause_s, self.again_at, self.failing_since = _FIRST_PAUSE_S, 0.0, None
            return
        self.failing_since = self.failing_since or now
        pause = _LONGEST_PAUSE_S if stopped.meaning == "unusable" else self._pause_s
        pause *= 1 + random.uniform(-_JITTER, _JITTER)  # noqa: S311 - many processes must not come back at once
        self.again_at = now + (pause if stopped.retry_after_s is None else stopped.retry_after_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)


def _next_of(run: RunExport) -> Closed | None:
    try:
        return run.take()
    except (TraceError, OSError) as error:
        run.failure = str(error)
    except Exception as error:  # noqa: BLE001 - one run that cannot be read must not hold up the others
        run.failure = f"this is a bug in Playhead ({type(error).__name__}: {error})"[:300]
    return None
