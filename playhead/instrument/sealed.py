"""Sealed replays of programs: while one runs, this process connects no socket but those of the model's requests.

Python reports each `connect` to an audit hook, which stays for the life of the process and does nothing between sealed replays.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UnrecordedCallError
from playhead.instrument.exchanges import sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.errors import ReplayError

_stops: Final[list[Any]] = []
"""Each ends a sealed replay that runs now."""


@contextmanager
def no_sockets(stop: Callable[[ReplayError], object], *, sealed: bool) -> Iterator[None]:
    """Stop the replay inside this block at a socket that is not the model's, if it is `sealed`."""
    if not sealed:
        yield
        return
    _listen()
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


@cache
def _listen() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not _stops or sending.get():
        return
    address = arguments[1]
    if isinstance(address, tuple):  # of a network, not of this machine's files
        where = ":".join(map(str, address[:2]))
        _stops[-1](UnrecordedCallError(f"the replay is sealed, and something connects to {where}"))
