"""One request to a collector, and what its answer means."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import requests
from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from requests import exceptions as known

from playhead.spans.destination import plain
from playhead.trace import VERSION

if TYPE_CHECKING:
    from playhead.spans.destination import Destination

Meaning = Literal["accepted", "too-large", "refused", "failed", "unavailable", "unusable"]
"""`refused`: some of these spans, for good. `failed`: the collector broke, for now or because of these spans. `unavailable`:
for now. `unusable`: the endpoint takes no request until somebody changes its address, key or certificate."""

_FOR_NOW: Final = frozenset({408, 425, 429, 502, 503, 504})
_OF_THE_ENDPOINT: Final = frozenset({401, 402, 403, 404, 405, 406, 407, 410, 415, 421, 426, 451})
"""Statuses that are about a key, an address or a protocol, and not about the spans."""
_LARGEST_ANSWER: Final = 64 * 1024
"""Bytes of an answer that are read."""
_LONGEST_PAUSE_S: Final = 300.0
"""The longest pause in seconds that a collector may request."""
_LEVEL: Final = 1
"""Of gzip: the text of spans shrinks to a fifth at the fastest level, and little more at the slowest."""
_PROTOBUF: Final = ("", "application/x-protobuf", "application/protobuf", "application/octet-stream")
"""Content types of OTLP's own answer; some servers send none."""
_LATE: Final = "it did not answer in time"
_WRONG_ADDRESS: Final = "the address is that of a page, a proxy or a login: name the collector's own, and its key"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request."""

    meaning: Meaning
    reason: str = ""
    """In words, safe to show; of a request that is accepted, the collector's warning."""
    retry_after_s: float | None = None
    """Seconds that the collector asks to wait."""


class Wire:
    """Sends requests to one destination, over one connection. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._session = session = requests.Session()
        session.auth = lambda request: request  # else a .netrc would replace the headers
        session.cert = destination.client
        session.headers.update({"accept-encoding": "identity", "content-type": "application/x-protobuf"})
        session.headers["user-agent"] = f"playhead/{VERSION}"
        if destination.compression == "gzip":
            session.headers["content-encoding"] = "gzip"
        session.headers.update(destination.headers)

    def post(self, body: bytes, *, timeout_s: float | None = None) -> Answer:
        """Send a request; never raises for what the network or the collector does."""
        seconds = min(self._destination.timeout_s, timeout_s or self._destination.timeout_s)
        packed = gzip.compress(body, _LEVEL, mtime=0) if self._destination.compression == "gzip" else body
        try:
            with self._session.post(
                self._destination.address,
                data=packed,
                timeout=seconds,
                verify=self._destination.certificate or True,  # here: REQUESTS_CA_BUNDLE overrides a session's
                allow_redirects=False,  # the headers are for this address
                stream=True,
            ) as response:
                return self._meaning(response, _start_of(response, time.monotonic() + seconds))
        except known.SSLError:
            return Answer("unusable", "the TLS certificate is not trusted, or TLS is not spoken there")
        except known.Timeout:
            return Answer("unavailable", _LATE)
        except (known.InvalidURL, known.InvalidSchema, known.InvalidHeader, known.MissingSchema) as error:
            return Answer("unusable", f"the request cannot be made ({type(error).__name__})")
        except known.RequestException as error:
            return Answer("unavailable", _cause(error) + self._destination.hint)
        except OSError as error:  # requests' own words, which name the file of a certificate that does not exist
            return Answer("unusable", self._safe(str(error)))

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._session.close()

    def _meaning(self, response: requests.Response, body: bytes) -> Answer:
        status = response.status_code
        if response.ok and not response.is_redirect and status < 300:  # noqa: PLR2004 - as HTTP has it
            return self._taken(response, body)
        text = body.decode("utf-8", "replace").strip()
        line = f"{status} {response.reason or ''}".strip()
        reason = self._safe(f"{line}: {text}" if text else line)
        if status == requests.codes.request_entity_too_large:
            return Answer("too-large", reason)
        if status in _FOR_NOW or status >= 500:  # noqa: PLR2004 - as HTTP has it
            pause = _pause(response.headers.get("retry-after"))
            return Answer("unavailable" if status in _FOR_NOW else "failed", reason, pause)
        if status < 400:  # noqa: PLR2004 - as HTTP has it
            return Answer("unusable", f"{line}: redirects are not followed; {_WRONG_ADDRESS}")
        return Answer("unusable" if status in _OF_THE_ENDPOINT else "refused", reason)

    def _taken(self, response: requests.Response, body: bytes) -> Answer:
        """Return what an answer of success means: a login page answers 200, too, and takes nothing."""
        kind = response.headers.get("content-type", "")
        answer = read_answer(body, kind)
        if answer is not None:
            return Answer(answer.meaning, self._safe(answer.reason))
        what = self._safe(kind.partition(";")[0].strip()) or "something else"
        return Answer("unusable", f"{response.status_code}, but with {what} instead of OTLP's answer; {_WRONG_ADDRESS}")

    def _safe(self, text: str) -> str:
        """Return somebody else's text as one plain line without secrets."""
        return plain(self._destination.without_secrets(text))


def _start_of(response: requests.Response, late_at: float) -> bytes:
    """Return the start of an answer; raises `Timeout` when it comes too slowly."""
    body = b""
    for chunk in response.iter_content(64):
        body += chunk
        if time.monotonic() > late_at:
            raise known.Timeout
        if len(body) >= _LARGEST_ANSWER:
            break
    return body


def _pause(retry_after: str | None) -> float | None:
    """Return the seconds of a `Retry-After`: a number, or a date."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after or "").timestamp() - time.time()
        except (ValueError, OverflowError, TypeError):
            return None
    return min(max(seconds, 0.0), _LONGEST_PAUSE_S) if seconds == seconds else None  # noqa: PLR0124 - not a number


def _cause(error: BaseException) -> str:
    """Return the system's word for why there is no connection: the innermost error's, as the others repeat headers."""
    found: Any = error
    for _ in range(10):
        if isinstance(found, OSError) and isinstance(found.strerror, str):
            return plain(found.strerror).lower()
        inner = (getattr(found, "reason", None), *found.args, found.__cause__, found.__context__)
        found = next((each for each in inner if isinstance(each, BaseException)), None)
        if found is None:
            break
    return "there is no connection"


def read_answer(content: bytes, content_type: str) -> Answer | None:
    """Return what the answer to a request that was taken says; None when no collector answers like this.

    OTLP's answer is an `ExportTraceServiceResponse`, as protobuf or as JSON; nearly always it is empty. One that rejects spans
    does not say which.
    """
    kind = content_type.partition(";")[0].strip().lower()
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
