"""Spans on their way to one destination: in requests that it takes, and what became of each span."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from playhead.spans.encoding import encode, without_content
from playhead.spans.wire import Answer, Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

    from playhead.spans.destination import Destination

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one request, before it is compressed; what some collectors take at most."""
FIRST_PAUSE_S: Final = 1.0
"""Seconds until a destination that did not answer is asked again; doubled each time."""
LONGEST_PAUSE_S: Final = 60.0
MAX_REQUESTS: Final = 128
"""Requests of one delivery; what is left then is for the next."""
MAX_REFUSALS: Final = 32
"""Requests that a destination may refuse before it has taken any: then it is not the spans, and no more are looked at one by
one."""
BREAKS: Final = 3
"""Times that a collector may break before it is found out at which spans."""
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


class ToProcessor:
    """Hands spans to an application's own span processor; what it does with them, it alone knows."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:  # noqa: ARG002
        """Hand spans over in order; one at which the processor raises counts as refused."""
        delivered = Delivered(settled=len(spans))
        for place, span in enumerate(spans):
            try:
                self._processor.on_end(span)
            except Exception as error:  # noqa: BLE001 - a processor is code of the user's
                delivered.refusals.append(Refusal(place, place, 1, type(error).__name__))
        return delivered

    def close(self) -> None:
        """Do nothing: the processor is its application's."""


class Otlp:
    """Delivers spans by OTLP over HTTP. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self._wire = Wire(destination)
        self._has_taken = False
        self._refusals = self._breaks = 0

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now.

        A request that is too large, or holds what is refused, is halved until it is known which spans it is. So is one at which the
        collector has broken again and again; where it then takes none of the spans, it is broken itself, and nothing is settled.

        Args:
            spans: what to deliver.
            timeout_s: seconds that it may take; None: each request as long as the destination says.
        """
        late_at = None if timeout_s is None else time.monotonic() + timeout_s
        searching = self._breaks >= BREAKS
        delivered, left, broke = Delivered(), [range(len(spans))], None
        for _ in range(MAX_REQUESTS):
            if not left or delivered.stopped is not None:
                break
            part = left.pop()
            answer = self._sent(spans[part.start : part.stop], late_at)
            if searching and answer.meaning == "failed":
                broke, answer = answer, Answer("refused", answer.reason)
            if len(part) > 1 and self._is_halved(answer, searching=searching):
                middle = part.start + len(part) // 2
                left += [range(middle, part.stop), range(part.start, middle)]
            elif answer.meaning == "too-large":
                self._send_without_content(spans[part.start], part, answer, delivered, late_at)
            else:
                _settle(delivered, part, answer)
        if broke is not None and delivered.refused == delivered.settled:
            delivered = Delivered(stopped=broke)
        self._breaks = (
            self._breaks + 1 if delivered.stopped is not None and delivered.stopped.meaning == "failed" else 0
        )
        return delivered

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _is_halved(self, answer: Answer, *, searching: bool) -> bool:
        blames_spans = searching or self._has_taken or self._refusals < MAX_REFUSALS
        return answer.meaning == "too-large" or (answer.meaning == "refused" and blames_spans)

    def _sent(self, spans: Sequence[ReadableSpan], late_at: float | None) -> Answer:
        body = encode(spans)
        if len(body) > MAX_BYTES and len(spans) > 1:
            return Answer("too-large")
        left_s = None if late_at is None else late_at - time.monotonic()
        if left_s is not None and left_s <= 0:
            return Answer("unavailable", "there was no time left")
        answer = self._wire.post(body, timeout_s=left_s)
        self._has_taken = self._has_taken or answer.meaning == "accepted"
        self._refusals += answer.meaning == "refused"
        return answer

    def _send_without_content(
        self, span: ReadableSpan, part: range, too_large: Answer, delivered: Delivered, late_at: float | None
    ) -> None:
        """Deliver a span that is too large by itself without its content: better than not at all."""
        answer = self._sent([without_content(span)], late_at)
        if answer.meaning == "accepted":
            delivered.without_content.append(part.start)
        elif answer.meaning in {"too-large", "refused"}:
            answer = Answer("refused", too_large.reason)
        _settle(delivered, part, answer)


def _settle(delivered: Delivered, part: range, answer: Answer) -> None:
    """Note what an answer means for these spans."""
    if answer.meaning == "refused":
        why = answer.reason + (_NOT_TRIED if len(part) > 1 else "")
        delivered.refusals.append(Refusal(part.start, part.stop - 1, len(part), why))
    elif answer.meaning != "accepted":
        delivered.stopped = answer
        return
    elif answer.rejected:
        why = answer.reason or "no reason given"
        delivered.refusals.append(Refusal(part.start, part.stop - 1, min(answer.rejected, len(part)), why))
    elif answer.reason:
        delivered.remarks.append(answer.reason)
    delivered.settled += len(part)


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
