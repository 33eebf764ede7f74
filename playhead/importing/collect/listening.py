"""The socket that a collector listens at; when there is none to be had, why, and what to do."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import Final

from playhead.errors import UsageError

BACKLOG: Final = 128
_RESERVED: Final = 1024
"""The ports below may need privileges."""
_HOSTS: Final = "--host is an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for all who reach it"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared
"""Addresses that stand for all of a machine, and what a program on it connects to."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        UsageError: nobody can listen there; it says why, and the fix.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, ValueError, OverflowError):  # ValueError: a label that is too long, a NUL
        raise UsageError(f"cannot listen at {host!r}: there is no address of this name. {_HOSTS}") from None
    try:
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"cannot listen at {host}:{port}: {_why(error, host, port)}") from None
    try:
        if os.name == "posix":  # elsewhere it lets two listen at one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen at {host}:{port}: {_why(error, host, port)}") from None
    return listening


def endpoint(listening: socket.socket) -> str:
    """Return what a program on this machine sets OTEL_EXPORTER_OTLP_ENDPOINT to."""
    host, port = listening.getsockname()[:2]
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_open(listening: socket.socket) -> bool:
    """Tell whether others than programs on this machine may reach it."""
    return not ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def _why(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                "the port is in use. Is another collector there? --port names another port, --port 0 takes a free one"
            )
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return f"{host} is no address of this machine. {_HOSTS}"
        case errno.EACCES if port < _RESERVED:
            return f"ports below {_RESERVED:,} need privileges that this process does not have. --port 4318 needs none"
    return f"{error.strerror or error}. {_HOSTS}; --port names another port"
