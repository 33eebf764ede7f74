"""Sealed replays of programs: while one runs, this process connects no socket but those of the model's requests.

Python reports each `connect` to an audit hook, which stays for the life of the process and does nothing between sealed replays.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import UnrecordedCallError
from playhead.instrument.exchanges import sending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.errors import ReplayError

_stops: Final[list[Any]] = []
"""Each ends a sealed replay that runs now."""
_own: Final[ContextVar[Any]] = ContextVar("playhead-sealed", default=None)
"""Ends the sealed replay that this thread or task belongs to; the newest one is ended where that is not known."""


@contextmanager
def no_sockets(stop: Callable[[ReplayError], object], *, sealed: bool) -> Iterator[None]:
    """Stop the replay inside this block at a socket that is not the model's, if it is `sealed`."""
    if not sealed:
        yield
        return
    _listen()
    _stops.append(stop)
    before = _own.set(stop)
    try:
        yield
    finally:
        _own.reset(before)
        _stops.remove(stop)


@cache
def _listen() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not _stops or sending.get():
        return
    address = arguments[1]
    if isinstance(address, tuple):  # a network address; that of a Unix socket is a path
        where = ":".join(map(str, address[:2]))
        stop = _own.get() or _stops[-1]
        stop(UnrecordedCallError(f"the replay is sealed, and something connects to {where}"))
