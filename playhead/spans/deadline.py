"""One time limit for a whole request: `requests` limits each read from the network, so a server that drips may take for ever."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from urllib3._base_connection import BaseHTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

_AGAIN_S: Final = 0.1
"""Seconds between two attempts to cut a connection that had no socket yet."""


class Limit:
    """The time limit of one request."""

    def __init__(self) -> None:
        self.passed = False
        """Whether the request was cut off."""
        self.over = threading.Event()
        """Set when the request has ended, either way."""


class LimitedAdapter(HTTPAdapter):
    """Makes the connections of a session, and cuts one whose request takes too long. For one request at a time."""

    _connection: Any = None
    """The one that was made last: for one request at a time, that is the one in use."""

    @contextmanager
    def within(self, seconds: float) -> Iterator[Limit]:
        """Let what is requested inside fail when it takes longer; `passed` says that it was for this."""
        limit = Limit()
        timer = threading.Timer(seconds, self._cut, (limit,))
        timer.daemon = True
        with suppress(RuntimeError):  # no thread to be had: then there are the limits of each read
            timer.start()
        try:
            yield limit
        finally:
            limit.over.set()
            timer.cancel()

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> HTTPConnectionPool:  # noqa: ANN401 - as it is
        """Return the pool for a request, which remembers the connection that it makes."""
        pool = super().get_connection_with_tls_context(*args, **options)
        if not isinstance(pool.ConnectionCls, partial):
            made: Any = partial(self._made, pool.ConnectionCls)  # no class, but it is only called
            pool.ConnectionCls = made
        return pool

    def _made(self, kind: type[BaseHTTPConnection], *args: Any, **options: Any) -> BaseHTTPConnection:  # noqa: ANN401 - as it is
        connection = self._connection = kind(*args, **options)
        return connection

    def _cut(self, limit: Limit) -> None:
        """End what waits for the connection, in a thread of its own."""
        limit.passed = not limit.over.is_set()
        while not limit.over.is_set():
            sock = None if self._connection is None else self._connection.sock
            if sock is not None:
                with suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the socket below TLS, too
            limit.over.wait(_AGAIN_S)
