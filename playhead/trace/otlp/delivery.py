"""Spans on their way to one destination: in requests that it takes, and what became of each span."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from playhead.trace.otlp.encoding import MAX_BYTES, encoded, rejected_in, request_of, without_content
from playhead.trace.otlp.wire import Answer, Wire, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.trace.otlp.destination import Destination

FIRST_PAUSE_S: Final = 1.0
"""Seconds until a destination that did not answer is asked again; doubled each time."""
LONGEST_PAUSE_S: Final = 60.0
NAMED: Final = 5
"""Spans of a refusal that are named."""
_LONGEST_NAME: Final = 80
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
    spans: tuple[str, ...] = ()
    """Names and ids of the first of those that may be meant."""


@dataclass
class Delivered:
    """What became of spans, in their order."""

    settled: int = 0
    """Spans from the start that were accepted or refused."""
    refusals: list[Refusal] = field(default_factory=list)
    without_content: list[str] = field(default_factory=list)
    """Names and ids of spans that were taken only without their content."""
    stopped: Answer | None = None
    """Why the rest was not delivered."""

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

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now.

        Args:
            spans: what to deliver.
            timeout_s: seconds that a request may take; None: as the destination says.
        """
        delivered = Delivered()
        messages = [encoded(span) for span in spans]
        parts = _parts(messages)
        while parts and delivered.stopped is None:
            part = parts.pop()
            answer = self._wire.post(_request(spans, messages, part), timeout_s=timeout_s)
            if answer.meaning == "too-large" and len(part) > 1:
                middle = part.start + len(part) // 2
                parts += [range(middle, part.stop), range(part.start, middle)]
            elif answer.meaning == "too-large":
                self._deliver_smaller(spans[part.start], part, answer, delivered, timeout_s)
            else:
                self._settle(spans, part, answer, delivered)
        return delivered

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _deliver_smaller(
        self, span: ReadableSpan, part: range, refused: Answer, delivered: Delivered, timeout_s: float | None
    ) -> None:
        """Deliver a span that is too large by itself without its content: better than not at all."""
        body = request_of([span], [without_content(span)])
        answer = self._wire.post(body, timeout_s=timeout_s)
        if answer.meaning in {"too-large", "refused"}:
            answer = Answer("refused", refused.reason)
        elif answer.meaning == "accepted":
            delivered.without_content.append(name_of(span))
        self._settle([span], range(1), answer, delivered, part.start)

    def _settle(
        self, spans: Sequence[ReadableSpan], part: range, answer: Answer, delivered: Delivered, offset: int = 0
    ) -> None:
        """Note what an answer means for the spans that it is about."""
        if answer.meaning in {"failed", "unavailable", "unusable"}:
            delivered.stopped = answer
            return
        count, reason = len(part), answer.reason
        if answer.meaning == "accepted":
            count, reason = rejected_in(answer.body)
            reason = plain(self.destination.without_secrets(reason)) or "no reason given"
        if count:
            named = tuple(name_of(each) for each in spans[part.start : part.stop][:NAMED])
            first = part.start + offset
            delivered.refusals.append(Refusal(first, first + len(part) - 1, min(count, len(part)), reason, named))
        delivered.settled += len(part)


def deliver_one_by_one(sink: Sink, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
    """Deliver spans each in a request of its own, to find the one at which the collector breaks.

    Where it takes some and breaks at others, these are refused. Where it takes none, it is the collector that is broken,
    and nothing is settled.
    """
    found = Delivered()
    for place, span in enumerate(spans):
        one = sink.deliver([span], timeout_s=timeout_s)
        if one.stopped is not None and one.stopped.meaning != "failed":
            found.stopped = one.stopped
            break
        reason = one.refusals[0].reason if one.refusals else "" if one.stopped is None else one.stopped.reason
        if one.refusals or one.stopped is not None:
            found.refusals.append(Refusal(place, place, 1, reason, (name_of(span),)))
        found.without_content += one.without_content
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


def _request(spans: Sequence[ReadableSpan], messages: Sequence[bytes], part: range) -> bytes:
    return request_of(spans[part.start : part.stop], messages[part.start : part.stop])


def name_of(span: ReadableSpan) -> str:
    """Return a span's name and id, as one plain line."""
    context = span.context
    name = plain(span.name)[:_LONGEST_NAME]
    return f"{name} {context.span_id:016x}" if context is not None else name


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
