"""A transport beneath HTTP clients: each request and its answer pass through, and the recorded run that makes them takes them.

An answer is passed on piece by piece as it arrives.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.instrument.formats import read_request
from playhead.instrument.reading import count, parsed
from playhead.instrument.seam import current
from playhead.instrument.wire import Asked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from playhead.instrument.seam import Exchange, Served

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
"""Headers and query parameters that hold credentials."""
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
        try:
            return tape.recorded(tape.served() or self._inner.handle_request(tape.request(asked)))
        except BaseException as error:
            tape.end(error)
            raise

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401
        """Do the same without blocking the event loop."""
        if (wires := current()) is None:
            return await self._inner.handle_async_request(request)
        asked = _asked(request, await request.aread())
        tape = _Tape(await wires.aopen(asked), request)
        try:
            return tape.recorded(tape.served() or await self._inner.handle_async_request(tape.request(asked)))
        except BaseException as error:
            tape.end(error)
            raise

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - closing, entering, leaving
        return getattr(self._inner, name)


class _Tape:
    """One exchange: hands the run what passes, and ends it once."""

    def __init__(self, exchange: Exchange, request: Any) -> None:  # noqa: ANN401
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
        if served is None:
            return None
        if not served.status:
            raise _failure(served, self._library, self._library.ConnectError)
        stream = _stream_class(_Served, self._library)(served, self._library)
        return self._library.Response(served.status, headers=dict(served.headers), stream=stream)

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
        try:
            for part in self._parts:
                self._tape.take(part)
                yield part
        except BaseException as error:
            self._tape.end(error)
            raise
        self._tape.end(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._parts:
                self._tape.take(part)
                yield part
        except BaseException as error:
            self._tape.end(error)
            raise
        self._tape.end(None)

    def close(self) -> None:
        """Close the stream."""
        self._tape.end(ClosedEarly("the caller closed the stream"))
        self._parts.close()

    async def aclose(self) -> None:
        """Close the stream."""
        self._tape.end(ClosedEarly("the caller closed the stream"))
        await self._parts.aclose()


class _Served:
    """The body of a recorded response, which may break where the recorded connection broke."""

    def __init__(self, served: Served, library: Any) -> None:  # noqa: ANN401
        self._served = served
        self._library = library

    def __iter__(self) -> Iterator[bytes]:
        if self._served.body:
            yield self._served.body
        if self._served.error is not None:
            raise _failure(self._served, self._library, self._library.ReadError)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part


def _failure(served: Served, library: Any, usual: Any) -> Any:  # noqa: ANN401
    """Return the error that ended a recorded connection, of its own class where the library has that."""
    kind: Any = getattr(library, served.error_type, None)
    if not (isinstance(kind, type) and issubclass(kind, library.TransportError)):
        kind = usual
    return kind(served.error or "the recorded connection failed")


@cache
def _stream_class(kind: type, library: Any) -> type:  # noqa: ANN401
    """Return the class with the library's base classes, which its clients check."""
    return type(kind.__name__, (kind, library.SyncByteStream, library.AsyncByteStream), {})


def _asked(request: Any, body: bytes) -> Asked:  # noqa: ANN401
    target = request.url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    url = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}{target}"
    headers = _read(request.headers)
    return Asked(
        request.method,
        url,
        _kept(headers),
        body,
        attempt=count(parsed(headers.get("x-stainless-retry-count", ""))),
        wire=read_request(request.method, url, body),
        secrets=_secrets(headers, request.url.params.multi_items() if request.url.query else ()),
    )


def _read(headers: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the headers that matter, by lower-case name."""
    return {known: value.decode("latin-1") for name, value in headers.raw if (known := _READ.get(name.lower()))}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in HEADERS}


def _secrets(headers: Mapping[str, str], query: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the credentials of a request, without their scheme, such as `Bearer`."""
    given = (*headers.items(), *query)
    return {name: value.rpartition(" ")[2] for name, value in given if name.lower() in _CREDENTIALS}
