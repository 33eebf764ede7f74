"""One request to a collector, and what its answer means."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urljoin, urlsplit

from playhead.spans.answers import read_answer
from playhead.spans.naming import plain
from playhead.trace import VERSION

if TYPE_CHECKING:
    import requests

    from playhead.spans.deadline import LimitedAdapter
    from playhead.spans.destination import Destination

Meaning = Literal["accepted", "too-large", "refused", "failed", "unavailable", "unusable"]
"""`refused`: these spans, and for good. `failed`: the collector broke, for now or because of these spans. `unavailable`:
for now. `unusable`: whatever is sent, until somebody mends it."""

_TOO_LARGE: Final = 413
_FOR_NOW: Final = frozenset({408, 425, 429, 502, 503, 504})
_OF_THE_ENDPOINT: Final = frozenset({401, 402, 403, 404, 405, 406, 407, 410, 415, 421, 426, 451})
"""Statuses that say nothing of the spans: a key, an address or a protocol is wrong, and can be mended."""
_LARGEST_ANSWER: Final = 64 * 1024
"""Bytes of an answer that are read."""
LONGEST_PAUSE_S: Final = 300.0
"""Seconds that a collector may ask to be left alone; more is cut."""
_LEVEL: Final = 1
"""Of gzip: the text of spans shrinks to a fifth at the fastest level, and little more at the slowest."""
_HEADERS: Final = {
    "accept-encoding": "identity",
    "content-type": "application/x-protobuf",
    "user-agent": f"playhead/{VERSION}",
}
_LATE: Final = "it did not answer in time"
_WRONG_ADDRESS: Final = "the address is that of a page, a proxy or a login: name the collector's own, and its key"
_TEXT: Final = re.compile(r"[\x20-\x7e]{4,}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    meaning: Meaning
    reason: str = ""
    """In words, safe to be shown; of one that accepts, why it rejects some spans all the same, or a warning."""
    rejected: int = 0
    """Spans of a request that is accepted which are rejected all the same."""
    retry_after_s: float | None = None
    """Seconds after which the collector wants to be asked again."""


class Wire:
    """Sends bytes to one destination, over one connection. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self._opened: tuple[requests.Session, LimitedAdapter] | None = None

    def post(self, body: bytes, *, timeout_s: float | None = None) -> Answer:
        """Send a request; never raises for what the network or the collector does."""
        seconds = min(self.destination.timeout_s, timeout_s or self.destination.timeout_s)
        session, adapter = self._open()
        with adapter.within(seconds) as limit:
            answer = self._asked(session, body, seconds)
        if limit.passed:
            answer = Answer("unavailable", _LATE)
        if answer.meaning == "unavailable":
            self.close()
        return answer

    def _asked(self, session: requests.Session, body: bytes, seconds: float) -> Answer:
        import requests  # noqa: PLC0415 - for those who export

        try:
            with session.post(
                self.destination.address,
                data=self._packed(body),
                timeout=seconds,
                verify=self.destination.certificate,  # here, for REQUESTS_CA_BUNDLE stands before that of a session
                allow_redirects=False,  # the headers are for this address
                stream=True,
            ) as response:
                return self._meaning(response, _read(response))
        except requests.exceptions.RequestException as error:
            return Answer(*self._failure(error))
        except (OSError, ValueError) as error:  # a certificate's file, for one
            missing = self.destination.missing_file
            return Answer("unusable", missing) if missing else Answer("unavailable", type(error).__name__)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].close()

    def _open(self) -> tuple[requests.Session, LimitedAdapter]:
        """Return the session, and what makes its connections."""
        if self._opened is None:
            from playhead.spans.deadline import LimitedAdapter  # noqa: PLC0415 - for those who export

            session, adapter = self._new_session(), LimitedAdapter()
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            self._opened = session, adapter
        return self._opened

    def _new_session(self) -> requests.Session:
        import requests  # noqa: PLC0415 - as above

        there = self.destination
        session = requests.Session()
        session.auth = lambda request: request  # else a .netrc would replace the headers
        session.cert = there.client
        session.headers.update(_HEADERS)
        if there.compression != "none":
            session.headers["content-encoding"] = there.compression
        session.headers.update(there.headers)
        return session

    def _packed(self, body: bytes) -> bytes:
        if self.destination.compression == "gzip":
            return gzip.compress(body, _LEVEL, mtime=0)
        return zlib.compress(body, _LEVEL) if self.destination.compression == "deflate" else body

    def _meaning(self, response: requests.Response, body: bytes) -> Answer:
        status = response.status_code
        if 200 <= status < 300:  # noqa: PLR2004 - as HTTP has it
            return self._taken(response, body)
        reason = self._words(f"{status} {response.reason or ''}", body)
        if status == _TOO_LARGE:
            return Answer("too-large", reason)
        if status in _FOR_NOW or status >= 500:  # noqa: PLR2004 - as HTTP has it
            pause = _pause(response.headers.get("retry-after"))
            return Answer("unavailable" if status in _FOR_NOW else "failed", reason, retry_after_s=pause)
        if status < 400:  # noqa: PLR2004 - redirects are not followed
            return Answer("unusable", reason + self._leading(response))
        if status in _OF_THE_ENDPOINT:
            return Answer("unusable", reason)
        return Answer("refused", reason)

    def _taken(self, response: requests.Response, body: bytes) -> Answer:
        """Return what an answer of success means: that of a login page, nothing was taken."""
        kind = response.headers.get("content-type", "")
        said = read_answer(body, kind)
        if said is not None:
            return Answer("accepted", plain(self.destination.without_secrets(said.reason)), said.spans)
        what = plain(self.destination.without_secrets(kind.partition(";")[0].strip())) or "something else"
        return Answer("unusable", f"{response.status_code}, but with {what} instead of OTLP's answer; {_WRONG_ADDRESS}")

    def _leading(self, response: requests.Response) -> str:
        """Return where a redirect leads, without what may be a key: nothing is sent there unless somebody names it."""
        location = response.headers.get("location", "")
        try:
            there = urlsplit(urljoin(self.destination.address, location))
            port = f":{there.port}" if there.port else ""
        except ValueError:
            return ""
        place = plain(self.destination.without_secrets(f"{there.scheme}://{there.hostname}{port}{there.path}"))
        return f"; it leads to {place}: if that is the collector, name this address" if location else ""

    def _failure(self, error: requests.exceptions.RequestException) -> tuple[Meaning, str]:
        """Return what a failed request means; of its own words nothing is said, for they may repeat headers."""
        import requests.exceptions as known  # noqa: PLC0415 - as above

        if isinstance(error, known.SSLError):
            return "unusable", "the TLS certificate is not trusted, or TLS is not spoken there"
        if isinstance(error, known.Timeout):
            return "unavailable", _LATE
        if isinstance(error, (known.InvalidURL, known.InvalidSchema, known.InvalidHeader, known.MissingSchema)):
            return "unusable", f"the request cannot be made ({type(error).__name__})"
        return "unavailable", _cause(error) + self.destination.hint

    def _words(self, line: str, body: bytes = b"") -> str:
        """Return a status with the text that an answer holds, as one plain line without secrets."""
        text = " ".join(_TEXT.findall(body.decode("utf-8", "replace")))
        said = self.destination.without_secrets(f"{line.strip()}: {text}" if text else line.strip())
        return plain(said)


def _read(response: requests.Response) -> bytes:
    """Return the start of an answer."""
    body = b""
    for chunk in response.iter_content(4096):
        body += chunk
        if len(body) >= _LARGEST_ANSWER:
            break
    return body


def _pause(retry_after: str | None) -> float | None:
    """Return the seconds that a `Retry-After` asks for: a number, or a date."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError, TypeError):
            return None
    return min(max(seconds, 0.0), LONGEST_PAUSE_S) if seconds == seconds else None  # noqa: PLR0124 - not a number


def _cause(error: BaseException) -> str:
    """Return the system's word for why there is no connection."""
    found: BaseException | None = error
    for _ in range(10):
        if isinstance(found, OSError) and found.strerror and not isinstance(found.strerror, BaseException):
            return plain(str(found.strerror)).lower()
        found = _inner(found)
        if found is None:
            break
    return "there is no connection"


def _inner(error: BaseException | None) -> BaseException | None:
    if error is None:
        return None
    reason = getattr(error, "reason", None) or next((each for each in error.args if isinstance(each, Exception)), None)
    return reason if isinstance(reason, BaseException) else error.__cause__ or error.__context__
