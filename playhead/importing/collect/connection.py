"""One connection: requests one after the other, each answered before the next is read. h11 reads and checks HTTP/1.1."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import h11

from playhead.importing.collect.answers import Answer, refused
from playhead.importing.collect.arrivals import REQUEST_S, Arrivals, Holding
from playhead.importing.collect.bodies import MAX_BODY, RefusedError
from playhead.importing.collect.requests import answered_at_once, too_large, type_of
from playhead.trace import VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Take = Callable[[h11.Request, bytes], Awaitable[Answer]]

MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's head, of the line before a chunk, and of what follows the last one."""
MAX_PIECES: Final = 65_536
"""Chunks of a body."""
KEEP_S: Final = 60.0
"""Seconds for which a connection is kept without a request."""
LINGER_S: Final = 1.0
"""Seconds for which what a refused client still sends is thrown away, so that it reads the answer rather than an error."""
_READ: Final = 64 * 1024


class Connection:
    """A connection that is served."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        arrivals: Arrivals,
        take: Take,
        tell: Callable[[str], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._arrivals = arrivals
        self._take = take
        self._tell = tell
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request | None = None
        self._begun = False
        """Whether anything came of the request that is waited for."""

    async def serve(self) -> None:
        """Answer requests until the client goes, or is sent away."""
        try:
            while await self._serve_one():
                self._http.start_next_cycle()
                self._request, self._begun = None, bool(self._http.trailing_data[0])
            if self._begun and self._arrivals.has_room:
                await self._linger()
        except (OSError, RefusedError, h11.ProtocolError):  # the client is gone, or has to go
            pass
        finally:
            self._writer.close()

    async def _serve_one(self) -> bool:
        """Answer a request, and return whether another may follow on this connection."""
        try:
            answer = await self._answer()
        except RefusedError as error:
            answer = self._refuse(error)
        except TimeoutError:
            answer = self._refuse(RefusedError(408, f"the request took more than {REQUEST_S:g} seconds to arrive"))
        except h11.RemoteProtocolError as error:
            answer = self._refuse(
                RefusedError(error.error_status_hint, f"the request cannot be read as HTTP/1.1: {error}")
            )
        if answer is None or not self._begun:
            return False
        await self._send(answer)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _answer(self) -> Answer | None:
        """Read a request and return its answer; None when there is none any more."""
        with self._arrivals.holding() as holding:
            async with self._arrivals.arriving(REQUEST_S if self._begun else KEEP_S) as deadline:
                event = await self._next_event(deadline)
                if not isinstance(event, h11.Request):
                    return None
                self._request = event
                answer = answered_at_once(event)
                content = await self._content(deadline, holding)
            if answer is not None:
                return answer
            with self._arrivals.queueing():
                return await self._take(self._request, content)

    async def _content(self, deadline: asyncio.Timeout, holding: Holding) -> bytes:
        if self._http.they_are_waiting_for_100_continue:
            await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
        pieces: list[bytes] = []
        while isinstance(event := await self._next_event(deadline), h11.Data):
            self._arrivals.hold(holding, len(event.data))
            pieces.append(bytes(event.data))
            if holding.size > MAX_BODY:
                raise too_large(holding.size)
            if len(pieces) > MAX_PIECES:
                raise RefusedError(413, f"the body comes in more than {MAX_PIECES:,} chunks: send larger ones")
        return b"".join(pieces)

    async def _next_event(self, deadline: asyncio.Timeout) -> Any:  # noqa: ANN401 - h11's events
        while (event := self._http.next_event()) is h11.NEED_DATA:
            content = await self._reader.read(_READ)
            if content and not self._begun:
                self._begun = True
                self._arrivals.limit(deadline, REQUEST_S)
            self._http.receive_data(content)
        return event

    def _refuse(self, error: RefusedError) -> Answer | None:
        if not self._begun:  # it has asked nothing
            return None
        self._tell(str(error))
        return refused(error, type_of(self._request) if self._request is not None else None)

    async def _send(self, answer: Answer) -> None:
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.content))),
            ("Server", f"playhead/{VERSION}"),
            *answer.headers,
        ]
        if self._http.their_state is not h11.DONE or self._arrivals.stopped:
            headers.append(("Connection", "close"))
        sent = self._http.send(h11.Response(status_code=answer.status, headers=headers, reason=_reason(answer))) or b""
        if self._request is None or self._request.method != b"HEAD":
            sent += self._http.send(h11.Data(data=answer.content)) or b""
        await self._write(sent + (self._http.send(h11.EndOfMessage()) or b""))

    async def _write(self, content: bytes | None) -> None:
        self._writer.write(content or b"")
        async with asyncio.timeout(LINGER_S):
            await self._writer.drain()

    async def _linger(self) -> None:
        """Throw away what still comes, for a moment."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with self._arrivals.arriving(LINGER_S):
                while await self._reader.read(_READ):
                    pass


def _reason(answer: Answer) -> bytes:
    """Return the phrase of its status, which Python's exporter logs, and nothing else."""
    return HTTPStatus(answer.status).phrase.encode()
