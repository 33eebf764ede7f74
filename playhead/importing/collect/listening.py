"""An HTTP server on uvicorn, in a thread of its own: `collect` receives with one, `view` shows with one."""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import TYPE_CHECKING, Final

import uvicorn

from playhead.errors import UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette

MAX_CONNECTIONS: Final = 100
"""Connections at a time."""
STOP_S: Final = 2
"""Seconds that a stopping server waits for open requests."""
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
"""Addresses that mean all interfaces of a machine, with the address that a local program connects to."""


class ThreadedServer:
    """Listens in a thread of its own until it is stopped."""

    def __init__(self, application: Starlette, host: str, port: int, remedy: str = "") -> None:
        """Listen.

        Args:
            application: answers the requests.
            host: the address to listen at.
            port: the port; 0 for any free one.
            remedy: what an error says of addresses.

        Raises:
            UsageError: it cannot listen there.
        """
        self._socket = _listen(host, port, remedy)
        bound, number = self._socket.getsockname()[:2]
        self.is_open = not ipaddress.ip_address(bound.partition("%")[0]).is_loopback
        """Whether other machines may reach it."""
        reached = _EVERYWHERE.get(bound, bound)
        self.address = f"http://[{reached}]:{number}" if ":" in reached else f"http://{reached}:{number}"
        """The address for programs of this machine."""
        config = uvicorn.Config(
            application,
            http="h11",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="playhead-server", daemon=True
        )

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no new requests; open requests are answered if that takes less than `STOP_S`."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()


def _listen(host: str, port: int, remedy: str) -> socket.socket:
    try:
        if not host:
            raise OSError("it is not an address")  # noqa: TRY301 - as the system reports other bad addresses
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, ValueError, OverflowError) as error:  # ValueError: a label that is too long
        why = str(getattr(error, "strerror", None) or error).partition(" (while")[
            0
        ]  # what follows names the address again
        raise UsageError(f"cannot listen at {host!r}, port {port}: {why}. {remedy}--port 0 takes a free port") from None
