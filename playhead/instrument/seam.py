"""The seam between the transports beneath SDK clients and the recorded run that a request belongs to.

A transport asks `current()` for the run. Without one, it passes the request through untouched. Otherwise it opens an exchange,
sends `Exchange.body` (or nothing, where the answer is served), and reports what came back, piece by piece.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from playhead.kernel.tools import elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.instrument.wire import Asked

wires: Final[ContextVar[Wires | Literal[False] | None]] = ContextVar("playhead-wires", default=None)
"""The recorded run of this thread or task, as the transports see it; False where an agent's tools run inside one."""


class Halted(BaseException):
    """Unwinds a program whose run has ended. SDKs retry, and programs swallow, whatever is an `Exception`."""


class Wires(Protocol):
    """A recorded run, as a transport sees it. All methods may be called from any thread."""

    def is_over(self, what: str) -> bool:
        """Return whether the recorded function has returned, so that its requests pass through; say so."""

    def open(self, asked: Asked) -> Exchange:
        """Record a request, before it is sent.

        Raises:
            Halted: nothing is sent: the run has ended, a killswitch refuses the request, or a replay has no answer to it.
        """

    async def aopen(self, asked: Asked) -> Exchange:
        """Do the same for a caller in an event loop, which is not blocked while the request has to wait."""


class Exchange(Protocol):
    """One request and its answer. The transport calls `head` once, `chunk` for each piece, and `end` once."""

    @property
    def body(self) -> bytes:
        """What is sent: the caller's bytes, unless an override or a budget changed them."""

    @property
    def url(self) -> str:
        """Where it is sent: the caller's address, unless an override names another model in it."""

    served: Served | None
    """The answer to give without sending anything; None to send."""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status and the headers that may be recorded."""

    def chunk(self, data: bytes) -> None:
        """Take a piece of the answer's body, before the caller gets it.

        Raises:
            Halted: the run has ended, so that the stream stops here.
        """

    def end(self, error: BaseException | None, body: bytes) -> None:
        """Record the answer, decoded; with `error`, why there is no more of it. Calls after the first do nothing."""


@dataclass(frozen=True, slots=True)
class Served:
    """A recorded answer."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str]
    """The recorded headers."""
    body: bytes
    """The body, decoded."""
    error: str | None = None
    """Why the connection broke after these bytes; None for a whole answer."""
    error_type: str = ""
    """The class of that error, such as `ReadTimeout`."""


def current() -> Wires | None:
    """Return the recorded run that this thread or task belongs to; None outside of one.

    Raises:
        Halted: a program is being replayed in this process, and this request does not belong to it.
    """
    found = wires.get()
    if found and found.is_over("a request of a wrapped client"):
        return None
    for notice in tuple(elsewhere) if found is None else ():
        notice("a request of a wrapped client")
    return found or None
