"""Delivers spans to one destination: sends requests, interprets answers, and pauses while the destination accepts nothing."""

from __future__ import annotations

import gzip
import logging
import random
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import requests
from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from requests import exceptions as known
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from playhead.spans.destination import plain
from playhead.spans.encoding import encode, size_of
from playhead.trace import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from playhead.spans.destination import Destination
    from playhead.spans.run_export import Closed, RunExport

log = logging.getLogger("playhead")

Meaning = Literal["accepted", "too-large", "refused", "failed", "unavailable", "unusable"]
"""`refused`: some of these spans are permanently refused. `failed`: the collector failed, temporarily or because of these spans.
`unavailable`: a temporary failure. `unusable`: every request fails until the address, key or certificate is corrected."""

MAX_BYTES: Final = 4 * 1024 * 1024
"""Largest request in bytes, before compression; some collectors have this limit."""
MAX_SPANS: Final = 512
"""Spans of one delivery."""
MAX_REQUESTS: Final = 32
"""Largest number of requests per delivery; remaining spans go into the next delivery."""
MAX_REMARKS: Final = 10
"""Largest number of different warnings of a destination to report."""
_ROOM: Final = MAX_BYTES * 3 // 4
"""Largest estimated size of one delivery in bytes; a request that turns out too large is split."""
_FIRST_PAUSE_S: Final = 1.0
"""Seconds after the first failure; doubled each time."""
_LONGEST_PAUSE_S: Final = 60.0
_JITTER: Final = 0.2
_FOR_NOW: Final = frozenset({408, 425, 429, 502, 503, 504})
_OF_THE_ENDPOINT: Final = frozenset({401, 402, 403, 404, 405, 406, 407, 410, 415, 421, 426, 451})
"""HTTP statuses that concern a key, an address or a protocol, not the spans."""
_LARGEST_ANSWER: Final = 64 * 1024
"""Largest number of bytes of an answer to read."""
_LONGEST_RETRY_AFTER_S: Final = 300.0
_GZIP_LEVEL: Final = 1
"""The text of spans shrinks to a fifth at the fastest level, and little more at the slowest."""
_PROTOBUF: Final = ("", "application/x-protobuf", "application/protobuf", "application/octet-stream")
"""Content types of OTLP's own answer; some servers send none."""
_WRONG_ADDRESS: Final = "the address is that of a page, a proxy or a login: name the collector's own, and its key"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request."""

    meaning: Meaning
    reason: str = ""
    """A description that is safe to show; for an accepted request, the collector's warning."""
    retry_after_s: float | None = None
    """Seconds that the collector asks to wait."""


@dataclass
class Delivered:
    """The outcome of a delivery."""

    settled: int = 0
    """Number of spans, from the start, that were accepted or refused."""
    refused: dict[int, str] = field(default_factory=dict)
    """Reasons of permanent refusals, by the span's position."""
    stopped: Answer | None = None
    """Why the rest was not delivered; None when there is no rest, or when it only has to be delivered again."""


class Sink(ABC):
    """Takes spans."""

    @abstractmethod
    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now."""


class Otlp(Sink):
    """Delivers spans by OTLP over HTTP, over one connection. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._broke = False
        self._remarks: set[str] = set()
        self._session = session = requests.Session()
        session.auth = lambda request: request  # else a .netrc would replace the headers
        session.cert = destination.client
        session.headers.update({"accept-encoding": "identity", "content-type": "application/x-protobuf"})
        session.headers["user-agent"] = f"playhead/{VERSION}"
        if destination.compression == "gzip":
            session.headers["content-encoding"] = "gzip"
        session.headers.update(destination.headers)

    def deliver(self, spans: Sequence[ReadableSpan], *, timeout_s: float | None = None) -> Delivered:
        """Deliver spans in order, up to the first that cannot be delivered now.

        A request that is too large, that contains a refused span, or at which the collector fails twice is halved until the
        span is found. A collector that accepts none of the spans is itself at fault, so nothing is settled.

        Args:
            spans: the spans to deliver.
            timeout_s: the seconds for all requests; None: each request has the destination's own timeout.
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
                self._pass_on(answer.reason)
            else:
                delivered.stopped = answer
        if blamed is not None and not accepted:
            meaning: Meaning = "failed" if blamed.meaning == "failed" else "unusable"
            delivered = Delivered(stopped=Answer(meaning, blamed.reason, blamed.retry_after_s))
        self._broke = delivered.stopped is not None and delivered.stopped.meaning == "failed"
        return delivered

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._session.close()

    def _pass_on(self, remark: str) -> None:
        """Log a warning of the collector about accepted spans; each text once."""
        if remark and remark not in self._remarks and len(self._remarks) < MAX_REMARKS:
            self._remarks.add(remark)
            log.warning("%s takes the spans, and says: %s", self._destination.name, remark)

    def _send(self, spans: Sequence[ReadableSpan], late_at: float | None) -> Answer:
        body = encode(spans)
        if len(body) > MAX_BYTES and len(spans) > 1:
            return Answer("too-large")
        left_s = None if late_at is None else late_at - time.monotonic()
        if left_s is not None and left_s <= 0:
            return Answer("unavailable", "there was no time left")
        return self.post(body, timeout_s=left_s)

    def post(self, body: bytes, *, timeout_s: float | None = None) -> Answer:
        """Send a request; errors of the network or the collector never raise."""
        there = self._destination
        seconds = min(there.timeout_s, timeout_s or there.timeout_s)
        try:
            with self._session.post(
                there.address,
                data=gzip.compress(body, _GZIP_LEVEL, mtime=0) if there.compression == "gzip" else body,
                timeout=seconds,
                verify=there.certificate or True,  # here: REQUESTS_CA_BUNDLE overrides a session's
                allow_redirects=False,  # the headers are for this address
                stream=True,
            ) as response:
                return self._answer_of(response, next(response.iter_content(_LARGEST_ANSWER), b""))
        except known.SSLError:
            return Answer("unusable", "the TLS certificate is not trusted, or TLS is not spoken there")
        except known.Timeout:
            return Answer("unavailable", "it did not answer in time")
        except known.RequestException as error:
            return Answer("unavailable", _cause(error) + there.hint)
        except OSError as error:  # requests' own words, which name the file of a certificate that does not exist
            return Answer("unusable", self._safe(str(error)))

    def _answer_of(self, response: requests.Response, body: bytes) -> Answer:
        status = response.status_code
        line = f"{status} {response.reason or ''}".strip()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.ok and not response.is_redirect and status < 300:  # noqa: PLR2004 - as HTTP has it
            answer = read_answer(body, kind)
            if answer is not None:
                return Answer(answer.meaning, self._safe(answer.reason))
            what = self._safe(kind) or "something else"  # a login page, which answers 200, too
            return Answer("unusable", f"{status}, but with {what} instead of OTLP's answer; {_WRONG_ADDRESS}")
        text = body.decode("utf-8", "replace").strip()
        reason = self._safe(f"{line}: {text}" if text else line)
        if status == requests.codes.request_entity_too_large:
            return Answer("too-large", reason)
        if status in _FOR_NOW or status >= 500:  # noqa: PLR2004 - as HTTP has it
            pause_s = _retry_after_s(response.headers.get("retry-after", ""))
            return Answer("unavailable" if status in _FOR_NOW else "failed", reason, pause_s)
        if status < 400:  # noqa: PLR2004 - as HTTP has it
            return Answer("unusable", f"{line}: redirects are not followed; {_WRONG_ADDRESS}")
        return Answer("unusable" if status in _OF_THE_ENDPOINT else "refused", reason)

    def _safe(self, text: str) -> str:
        """Return foreign text as one printable line without secrets."""
        return plain(self._destination.without_secrets(text))


def _retry_after_s(header: str) -> float | None:
    """Return the seconds of a `Retry-After`: a number, or a date."""
    try:
        return min(Retry().parse_retry_after(header), _LONGEST_RETRY_AFTER_S)
    except (InvalidHeader, ValueError, OverflowError):
        return None


def _cause(error: BaseException) -> str:
    """Return the system's reason for a failed connection from the innermost error, because the others repeat headers."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return plain(error.strerror).lower() if isinstance(error, OSError) and error.strerror else "there is no connection"


def read_answer(content: bytes, kind: str) -> Answer | None:
    """Interpret the body of a successful answer by its content type; return None if it is not a collector's answer.

    OTLP's answer is an `ExportTraceServiceResponse`, as protobuf or as JSON, and is nearly always empty. An answer that
    rejects spans does not say which ones.
    """
    message = ExportTraceServiceResponse()
    try:
        if not content.strip():
            pass
        elif kind.endswith("json") or content.lstrip().startswith(b"{"):
            Parse(content, message, ignore_unknown_fields=True)
        elif kind in _PROTOBUF:
            message.ParseFromString(content)
        else:
            return None
    except (DecodeError, ParseError, ValueError, RecursionError):
        return None
    partial = message.partial_success
    if partial.rejected_spans > 0:
        return Answer("refused", partial.error_message or "no reason given")
    return Answer("accepted", partial.error_message)


Step = Literal["sent", "stuck", "idle"]
"""`sent`: spans were settled. `stuck`: the destination accepts nothing now. `idle`: there is nothing to send now."""


class Pump:
    """Delivers the spans of runs, each run's in order. For one thread."""

    def __init__(self, sink: Sink, runs: list[RunExport] | None = None) -> None:
        self.sink = sink
        self.runs = [] if runs is None else runs
        """The runs that are not done, in order of arrival; another thread may append to them."""
        self.stopped: Answer | None = None
        """Why the destination accepted nothing the last time; None if it did accept spans."""
        self.again_at = 0.0
        """Time of the next attempt, in monotonic seconds."""
        self.failing_since = 0.0
        """Time of the first of the consecutive failures, in monotonic seconds."""
        self._pause_s = _FIRST_PAUSE_S
        self._turn = 0
        self._batch: list[Closed] = []

    def step(self, *, timeout_s: float | None = None) -> Step:
        """Deliver once, unless there is nothing to deliver or the pause after a failure is not over."""
        if time.monotonic() < self.again_at:
            return "stuck"
        self._gather()
        if not self._batch:
            return "idle"
        delivered = self.sink.deliver([each.span for each in self._batch], timeout_s=timeout_s)
        settled, self._batch = self._batch[: delivered.settled], self._batch[delivered.settled :]
        for place, closed in enumerate(settled):
            closed.run.settle(closed.span, delivered.refused.get(place))
        for run in {closed.run for closed in settled}:
            run.note_settled()
        self._pause(delivered.stopped)
        return "sent" if delivered.settled or delivered.stopped is None else "stuck"

    def finished(self) -> list[RunExport]:
        """Return the runs that are done, and drop them."""
        done = [run for run in self.runs if run.done]
        for run in done:
            run.close()
            self.runs.remove(run)
        return done

    def _gather(self) -> None:
        """Add the next spans of each run in turn, until a request is full."""
        size = sum(size_of(closed.span) for closed in self._batch)
        first = self._turn % len(self.runs) if self.runs else 0
        for run in [each for each in (*self.runs[first:], *self.runs[:first]) if each.failure is None]:
            while len(self._batch) < MAX_SPANS and size < _ROOM and (closed := run.take()) is not None:
                self._batch.append(closed)
                size += size_of(closed.span)
        self._turn += 1

    def _pause(self, stopped: Answer | None) -> None:
        """Pause longer after each failure, or as long as the destination asks; do not pause after a success."""
        self.stopped, now = stopped, time.monotonic()
        if stopped is None:
            self._pause_s, self.again_at, self.failing_since = _FIRST_PAUSE_S, 0.0, 0.0
            return
        self.failing_since = self.failing_since or now
        pause = _LONGEST_PAUSE_S if stopped.meaning == "unusable" else self._pause_s
        pause *= 1 + random.uniform(-_JITTER, _JITTER)  # noqa: S311 - many processes must not retry at once
        self.again_at = now + (pause if stopped.retry_after_s is None else stopped.retry_after_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
