"""Spans on their way to one destination: in requests that it takes, and what became of each span."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from playhead.spans.encoding import MAX_BYTES, encoded, request_of, without_content
from playhead.spans.wire import Answer, Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.destination import Destination

FIRST_PAUSE_S: Final = 1.0
"""Seconds until a destination that did not answer is asked again; doubled each time."""
LONGEST_PAUSE_S: Final = 60.0
MAX_REQUESTS: Final = 128
"""Requests of one delivery; what is left then is for the next."""
MAX_REFUSALS: Final = 32
"""Requests that a destination may refuse before it has taken any: then it is not the spans, and no more are looked at one by
one."""
_NOT_TRIED: Final = "; it has taken nothing at all, so these were not tried one by one"
_JITTER: Final = 0.2


@dataclass(frozen=True)
class Refusal:
    """Spans that a destination does not take, and will not take."""

    first: int
    """Place of the first span that may be meant, in what was to be delivered."""
    last: int
    """Place of the last."""
    count: int
    """How many of them are refused; of which ones, a collector does not always say."""
    reason: str
    """In its words."""


@dataclass
class Delivered:
    """What became of spans, in their order."""

    settled: int = 0
    """Spans from the start that were accepted or refused."""
    refusals: list[Refusal] = field(default_factory=list)
    without_content: list[int] = field(default_factory=list)
    """Places of spans that were taken only without their content."""
    remarks: list[str] = field(default_factory=list)
    """What the destination said of requests all of whose spans it took."""
    stopped: Answer | None = None
    """Why the rest was not delivered; None when there is no rest, or it is only to be handed over again."""

    @property
    def refused(self) -> int:
        """Spans that were refused."""
        return sum(refusal.count for refusal in self.refusals)


class Sink(Protocol):
    """Takes spans."""

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class Otlp:
    """Delivers spans by OTLP over HTTP. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self._wire = Wire(destination)
        self._experience = _Experience()

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now.

        Args:
            spans: what to deliver.
            timeout_s: seconds that it may take; None: each request as long as the destination says.
        """
        return _Delivery(self._wire, spans, self._experience, timeout_s).run()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()


@dataclass
class _Experience:
    """What a destination has done with the requests so far."""

    has_taken: bool = False
    """Whether it has taken any."""
    refusals: int = 0
    """Requests that it has refused before."""

    @property
    def blames_spans(self) -> bool:
        """Whether a refusal is for some of the spans, so that it is worthwhile to find out which."""
        return self.has_taken or self.refusals < MAX_REFUSALS


class _Delivery:
    """The requests by which some spans are delivered."""

    def __init__(
        self, wire: Wire, spans: Sequence[ReadableSpan], experience: _Experience, timeout_s: float | None
    ) -> None:
        self._wire, self._spans, self._experience = wire, spans, experience
        self._messages = [encoded(span) for span in spans]
        self._left = _parts(self._messages)
        self._late_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._delivered = Delivered()

    def run(self) -> Delivered:
        """Send one request after the other."""
        for _ in range(MAX_REQUESTS):
            if not self._left or self._delivered.stopped is not None:
                break
            self._send(self._left.pop())
        return self._delivered

    def _send(self, part: range) -> None:
        """Send a request; one that is too large, or holds what is refused, is halved until it is known which spans it is."""
        answer = self._post(request_of(self._of(part), self._messages[part.start : part.stop]))
        self._learn(answer)
        several = len(part) > 1
        if answer.meaning == "accepted":
            self._accept(part, answer)
        elif several and (
            answer.meaning == "too-large" or (answer.meaning == "refused" and self._experience.blames_spans)
        ):
            self._halve(part)
        elif answer.meaning == "too-large":
            self._send_without_content(part, answer)
        elif answer.meaning == "refused":
            self._refuse(part, len(part), answer.reason + (_NOT_TRIED if several else ""))
        else:
            self._delivered.stopped = answer

    def _post(self, body: bytes) -> Answer:
        if self._late_at is None:
            return self._wire.post(body)
        left_s = self._late_at - time.monotonic()
        return (
            self._wire.post(body, timeout_s=left_s) if left_s > 0 else Answer("unavailable", "there was no time left")
        )

    def _learn(self, answer: Answer) -> None:
        self._experience.has_taken = self._experience.has_taken or answer.meaning == "accepted"
        self._experience.refusals += answer.meaning == "refused"

    def _halve(self, part: range) -> None:
        middle = part.start + len(part) // 2
        self._left += [range(middle, part.stop), range(part.start, middle)]

    def _send_without_content(self, part: range, refused: Answer) -> None:
        """Deliver a span that is too large by itself without its content: better than not at all."""
        (span,) = self._of(part)
        answer = self._post(request_of([span], [without_content(span)]))
        if answer.meaning in {"too-large", "refused"}:
            self._refuse(part, 1, refused.reason)
        elif answer.meaning == "accepted":
            self._delivered.without_content.append(part.start)
            self._accept(part, answer)
        else:
            self._delivered.stopped = answer

    def _accept(self, part: range, answer: Answer) -> None:
        """Note that a request was taken, but for so many of its spans as the collector says."""
        if answer.rejected:
            self._refuse(part, min(answer.rejected, len(part)), answer.reason or "no reason given")
            return
        self._delivered.settled += len(part)
        self._delivered.remarks += [answer.reason] if answer.reason else []

    def _refuse(self, part: range, count: int, reason: str) -> None:
        self._delivered.refusals.append(Refusal(part.start, part.stop - 1, count, reason))
        self._delivered.settled += len(part)

    def _of(self, part: range) -> Sequence[ReadableSpan]:
        return self._spans[part.start : part.stop]


def deliver_one_by_one(sink: Sink, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
    """Deliver spans each in a request of its own, to find the one at which the collector breaks.

    Where it takes some and breaks at others, these are refused. Where it takes none, it is the collector that is broken,
    and nothing is settled.
    """
    found = Delivered()
    late_at = None if timeout_s is None else time.monotonic() + timeout_s
    for place, span in enumerate(spans):
        one = sink.deliver([span], timeout_s=None if late_at is None else max(late_at - time.monotonic(), 0.0))
        if one.stopped is not None and one.stopped.meaning != "failed":
            found.stopped = one.stopped
            break
        reason = one.refusals[0].reason if one.refusals else "" if one.stopped is None else one.stopped.reason
        if one.refusals or one.stopped is not None:
            found.refusals.append(Refusal(place, place, 1, reason))
        found.without_content += [place] if one.without_content else []
        found.remarks += one.remarks
        found.settled += 1
    if found.refused < found.settled:
        return found
    return Delivered(stopped=found.stopped or Answer("failed", found.refusals[0].reason if found.refusals else ""))


def _parts(messages: Sequence[bytes]) -> list[range]:
    """Return which spans go into one request each, the first last; a span that is too large has one of its own."""
    parts, start, size = [], 0, 0
    for place, message in enumerate(messages):
        if place > start and size + len(message) > MAX_BYTES:
            parts.append(range(start, place))
            start, size = place, 0
        size += len(message)
    return [*parts, range(start, len(messages))][::-1]


class Patience:
    """When a destination that did not answer is asked again: each time later, unless it says itself when."""

    def __init__(self, first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._pause_s = first_s
        self.again_at = 0.0
        """Monotonic seconds; 0 when it may be asked at once."""
        self.failing_since: float | None = None
        """Monotonic seconds of the first of the failures that nothing has come between."""

    def failed(self, answer: Answer) -> None:
        """Note that it did not take anything."""
        now = time.monotonic()
        self.failing_since = self.failing_since or now
        pause = self._longest_s if answer.meaning == "unusable" else self._pause_s
        pause *= 1 + random.uniform(-_JITTER, _JITTER)  # noqa: S311 - so that many processes do not come back at once
        self.again_at = now + (pause if answer.retry_after_s is None else answer.retry_after_s)
        self._pause_s = min(self._pause_s * 2, self._longest_s)

    def succeeded(self) -> None:
        """Note that it took something."""
        self._pause_s, self.again_at, self.failing_since = self._first_s, 0.0, None
