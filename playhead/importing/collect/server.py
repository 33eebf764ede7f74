"""The socket that a collector listens at, and uvicorn, which serves it in a thread."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.importing.collect.bodies import Body

MOST: Final = 200
"""Connections at once: fewer than the files that any system lets a process open."""
STOP_S: Final = 2
"""Seconds for which a server that stops waits for requests that are being taken in."""
MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's head."""
OTHERS: Final = "for other reasons than those that were said"
"""What stands for the reasons of refusals beyond the first hundred."""
_MOST_REASONS: Final = 100
_HOSTS: Final = "--host is an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for all who reach it"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
"""Addresses that stand for all of a machine, and what a program on it connects to."""


class CollectServer:
    """Listens, in a thread of its own, until it is stopped."""

    def __init__(self, take: Callable[[Body], None], host: str = "127.0.0.1", port: int = 4318) -> None:
        """Listen.

        Args:
            take: takes a body in; when it returns, the request is answered with success. Called by one thread at a time.
            host: the address to listen at.
            port: the port; 0: any that is free.

        Raises:
            UsageError: nobody can listen there.
            MissingDependencyError: the `collect` extra is not installed.
        """
        try:
            import uvicorn  # noqa: PLC0415 - for this alone

            from playhead.importing.collect.app import app_of  # noqa: PLC0415 - the same: starlette and protobuf
        except ImportError as error:
            raise MissingDependencyError(
                f"collecting spans needs {error.name}: pip install 'playhead[collect]'"
            ) from None
        self._socket = _listen(host, port)
        bound, number = self._socket.getsockname()[:2]
        self.is_open = not ipaddress.ip_address(bound.partition("%")[0]).is_loopback
        """Whether others than programs on this machine may reach it."""
        reached = _EVERYWHERE.get(bound, bound)
        self.address = f"http://[{reached}]:{number}" if ":" in reached else f"http://{reached}:{number}"
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        self.refused: Counter[str] = Counter()
        """Requests that were not taken, by why."""
        config = uvicorn.Config(
            app_of(take, self._tell),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST,
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="playhead-collect", daemon=True
        )

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no new request; one that is being taken in is answered, if that takes less than `STOP_S`."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    def _tell(self, why: str) -> None:
        known = why in self.refused or len(self.refused) < _MOST_REASONS
        self.refused[why if known else OTHERS] += 1


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, ValueError, OverflowError):  # ValueError: a label that is too long, a NUL
        raise UsageError(f"cannot listen at {host!r}: there is no address of this name. {_HOSTS}") from None
    listening = None
    try:
        listening = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it lets two listen at one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        if listening is not None:
            listening.close()
        raise UsageError(
            f"cannot listen at {host}:{port}: {error.strerror or error}. {_HOSTS}; --port 0 takes a free port"
        ) from None
    return listening
