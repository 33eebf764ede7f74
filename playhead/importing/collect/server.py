"""OTLP over HTTP: `POST /v1/traces`, protobuf or JSON, plain or gzip (opentelemetry.io/docs/specs/otlp/#otlphttp).

One thread waits for all connections, and one takes in what has arrived, a body at a time: what parsing costs is bounded.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from playhead.importing.collect.answers import Answer, accepted, refused
from playhead.importing.collect.arrivals import Arrivals
from playhead.importing.collect.bodies import RefusedError, read_body, unpacked
from playhead.importing.collect.connection import Connection
from playhead.importing.collect.listening import BACKLOG, endpoint, is_open, listen
from playhead.importing.collect.requests import header, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11

    from playhead.importing.collect.bodies import Body

STOP_S: Final = 2.0
"""Seconds for which a server that stops waits for what is being taken in, and for clients to read their answers."""
_MOST_REASONS: Final = 100
"""Reasons of refusals that are kept one by one."""
OTHERS: Final = "for other reasons than those that were said"
"""What stands for the rest."""


class CollectServer:
    """Listens, in threads of its own, until it is stopped."""

    def __init__(self, take: Callable[[Body], None], host: str = "127.0.0.1", port: int = 4318) -> None:
        """Listen.

        Args:
            take: takes a body in; when it returns, the request is answered with success. Called by one thread.
            host: the address to listen at.
            port: the port; 0: any that is free.

        Raises:
            UsageError: nobody can listen there.
        """
        self._take = take
        self._socket = listen(host, port)
        self.address = endpoint(self._socket)
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        self.is_open = is_open(self._socket)
        """Whether others than programs on this machine may reach it."""
        self.refused: Counter[str] = Counter()
        """Requests that were not taken, by why."""
        self._arrivals = Arrivals()
        self._taking = ThreadPoolExecutor(1, "playhead-collect-take")
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-collect", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no new request.

        One that has arrived whole and is being taken in is answered, if that takes less than `STOP_S`; the senders of
        all others are told to come again.
        """
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._taking.shutdown()
        self._socket.close()
        self._loop.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, backlog=BACKLOG)
        await self._stop.wait()
        server.close()
        self._arrivals.stop()
        if self._connections:
            await asyncio.wait(self._connections, timeout=STOP_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._connections.add(task)
        try:
            with suppress(asyncio.CancelledError):  # the server has stopped, and waited
                await Connection(reader, writer, self._arrivals, self._answer, self._tell).serve()
        finally:
            self._connections.discard(task)

    async def _answer(self, request: h11.Request, content: bytes) -> Answer:
        return await self._loop.run_in_executor(self._taking, self._taken, request, content)

    def _taken(self, request: h11.Request, content: bytes) -> Answer:
        content_type = type_of(request)
        assert content_type is not None  # noqa: S101 - checked before its body was read
        try:
            if self._arrivals.stopped:
                raise RefusedError(503, "the collector stops: send again later")  # noqa: TRY301 - one way to answer
            body = read_body(content_type, unpacked(content, header(request, b"content-encoding")))
            self._take(body)
        except RefusedError as error:
            failed = error
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender keeps its spans
            failed = RefusedError(500, f"this is a bug in Playhead ({type(error).__name__}); please report it")
        else:
            return accepted(content_type, body.problems)
        self._tell(str(failed))
        return refused(failed, content_type)

    def _tell(self, why: str) -> None:
        known = why in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[why if known else OTHERS] += 1
