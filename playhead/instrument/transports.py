"""A transport beneath HTTP clients: each request and its answer pass through, and the recorded run that makes them takes them.

An answer is passed on piece by piece as it arrives.
"""

from __future__ import annotations

import builtins
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.importing.bodies import count, parsed
from playhead.importing.wire import Asked
from playhead.instrument.seam import current

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from playhead.instrument.exchanges import WireExchange

LIBRARIES: Final = frozenset({"httpx", "httpx2"})
HEADERS: Final = frozenset(
    """
    content-type accept user-agent anthropic-version anthropic-beta openai-beta openai-processing-ms openai-version
    request-id x-request-id retry-after retry-after-ms x-should-retry x-stainless-retry-count
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
"""The headers that are recorded by value; all others are left out."""
_CREDENTIALS: Final = frozenset(
    "authorization proxy-authorization x-api-key api-key x-goog-api-key cookie key api_key access_token token".split()  # noqa: SIM905
)
"""Headers and query parameters that hold credentials, perhaps after a scheme, such as `Bearer`."""
_READ: Final = {name.encode(): name for name in (*HEADERS, *_CREDENTIALS, "content-encoding")}
_OF_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})


class ClosedEarly(Exception):  # noqa: N818 - no error: the caller has read enough
    """The caller closed a stream before its end."""


class RecordedTransport:
    """A transport of httpx or httpx2, synchronous or not, above another one."""

    def __init__(self, inner: Any, owner: object) -> None:  # noqa: ANN401 - of a library that is not imported here
        """Record what passes.

        Args:
            inner: the transport that sends.
            owner: the client that `inner` belongs to, kept alive because it may close its transports when it is deleted.
        """
        self._inner = inner
        self._owner = owner

    def handle_request(self, request: Any) -> Any:  # noqa: ANN401 - the library's
        """Send a request; return its response as soon as the head has arrived."""
        if (wires := current()) is None:
            return self._inner.handle_request(request)
        asked = _asked(request, request.read())
        tape = _Tape(wires.open(asked), request)
        with tape:
            return tape.recorded(tape.served() or self._inner.handle_request(tape.request(asked)))

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401
        """Do the same without blocking the event loop."""
        if (wires := current()) is None:
            return await self._inner.handle_async_request(request)
        asked = _asked(request, await request.aread())
        tape = _Tape(await wires.aopen(asked), request)
        with tape:
            return tape.recorded(tape.served() or await self._inner.handle_async_request(tape.request(asked)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - closing, entering, leaving
        return getattr(self._inner, name)


class _Tape:
    """One exchange: hands the run what passes, and ends it once."""

    def __init__(self, exchange: WireExchange, request: Any) -> None:  # noqa: ANN401
        self._exchange = exchange
        self._request = request
        self._library: Any = sys.modules[type(request.url).__module__.partition(".")[0]]
        self._encoding = ""
        self._parts: list[bytes] = []
        self._is_open = True

    def request(self, asked: Asked) -> Any:  # noqa: ANN401
        """Return the request to send: the caller's own, unless the run changes it."""
        request, sent = self._request, self._exchange
        if (sent.body, sent.url) == (asked.body, asked.url):
            return request
        headers = [each for each in request.headers.raw if each[0].lower() not in _OF_BODY]
        url = request.url.copy_with(path=self._library.URL(sent.url).path) if sent.url != asked.url else request.url
        return self._library.Request(
            request.method, url, headers=headers, content=sent.body, extensions=request.extensions
        )

    def served(self) -> Any:  # noqa: ANN401
        """Return the recorded response to give without sending anything; None to send."""
        served = self._exchange.served
        return None if served is None else served.response(self._library)

    def recorded(self, response: Any) -> Any:  # noqa: ANN401
        """Return the response, with a stream that records."""
        headers = _read(response.headers)
        self._exchange.head(response.status_code, _kept(headers))
        if response.is_closed:  # a transport of tests gives responses that have been read
            self.take(response.content)
            self.end(None)
            return response
        self._encoding = headers.get("content-encoding", "")
        response.stream = _stream_class(_Stream, self._library)(response.stream, self)
        return response

    def take(self, part: bytes) -> None:
        """Take a piece of the body, before the caller gets it."""
        self._parts.append(part)
        self._exchange.chunk(part)

    def __enter__(self) -> None:
        """End the exchange with what is raised inside this block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.end(error)

    def end(self, error: BaseException | None) -> None:
        """End the exchange, unless it has ended."""
        if self._is_open:
            self._is_open = False
            self._exchange.end(error, self._body())

    def _body(self) -> bytes:
        body = b"".join(self._parts)
        if self._encoding and body:
            with suppress(Exception):  # a body that cannot be decoded is kept as it came
                decoded: bytes = self._library.Response(
                    200, headers={"content-encoding": self._encoding}, content=body
                ).content
                return decoded
        return body


class _Stream:
    """The body of a response."""

    def __init__(self, parts: Any, tape: _Tape) -> None:  # noqa: ANN401
        self._parts = parts
        self._tape = tape

    def __iter__(self) -> Iterator[bytes]:
        with self._tape:
            for part in self._parts:
                self._tape.take(part)
                yield part
        self._tape.end(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._tape:
            async for part in self._parts:
                self._tape.take(part)
                yield part
        self._tape.end(None)

    def close(self) -> None:
        """Close the stream."""
        self._tape.end(ClosedEarly("the caller closed the stream"))
        self._parts.close()

    async def aclose(self) -> None:
        """Close the stream."""
        self._tape.end(ClosedEarly("the caller closed the stream"))
        await self._parts.aclose()


@dataclass(frozen=True, slots=True)
class Served:
    """A recorded answer."""

    status: int
    """The HTTP status; 0 if there was no head."""
    headers: Mapping[str, str]
    """The recorded headers."""
    body: bytes
    """The body, decoded."""
    error: str | None = None
    """Why the connection broke after these bytes; None for a whole answer."""
    error_type: str = ""
    """The class of that error, such as `ReadTimeout`."""
    rest: Callable[[], Awaitable[object]] | None = None
    """Waits, after these bytes, until the program cancels the request as it did before; None where it did not."""

    def response(self, library: Any) -> Any:  # noqa: ANN401 - httpx or httpx2
        """Return the answer as a response of the client's library; raise the recorded error if the server gave no answer."""
        if not self.status:
            raise self.failure(library, library.ConnectError)
        stream = _stream_class(_Body, library)(self, library)
        return library.Response(self.status, headers=dict(self.headers), stream=stream)

    def failure(self, library: Any, usual: Any) -> Any:  # noqa: ANN401
        """Return the error that ended the connection, of its own class where the library or Python has that."""
        kind: Any = getattr(library, self.error_type, getattr(builtins, self.error_type, None))
        if not (isinstance(kind, type) and issubclass(kind, (library.TransportError, OSError, RuntimeError))):
            kind = usual
        return kind("the recorded connection failed" if self.error is None else self.error)


class _Body:
    """The body of a recorded answer, which may break where the recorded connection broke."""

    def __init__(self, served: Served, library: Any) -> None:  # noqa: ANN401
        self._served = served
        self._library = library

    def __iter__(self) -> Iterator[bytes]:
        if self._served.body:
            yield self._served.body
        if self._served.error is not None:
            raise self._served.failure(self._library, self._library.ReadError)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part
        if self._served.rest is not None:
            await self._served.rest()


@cache
def _stream_class(kind: type, library: Any) -> type:  # noqa: ANN401
    """Return the class with the library's base classes, which its clients check."""
    return type(kind.__name__, (kind, library.SyncByteStream, library.AsyncByteStream), {})


def _asked(request: Any, body: bytes) -> Asked:  # noqa: ANN401
    path, _, query = request.url.raw_path.partition(b"?")
    url = f"{request.url.scheme}://{(request.url.netloc + path).decode('ascii', 'replace')}"
    headers = _read(request.headers)
    given = (*headers.items(), *(request.url.params.multi_items() if query else ()))
    return Asked(
        request.method,
        url,
        _kept(headers),
        body,
        attempt=count(parsed(retry)) if (retry := headers.get("x-stainless-retry-count", "0")) != "0" else 0,
        secrets={name: value.rpartition(" ")[2] for name, value in given if name.lower() in _CREDENTIALS},
    )


def _read(headers: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the headers that matter, by lower-case name."""
    return {known: value.decode("latin-1") for name, value in headers.raw if (known := _READ.get(name.lower()))}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in HEADERS}
