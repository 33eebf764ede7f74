"""The seam between the transports beneath SDK clients and the recorded run that a request belongs to.

A transport asks `current()` for the run. Without one, it passes the request through untouched. Otherwise it opens an exchange
(`exchanges.WirePort`), sends its `body` (or nothing, where the answer is served), and reports what came back: `head` once,
`chunk` for each piece, `end` once. All of it may happen in any thread.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from playhead.kernel.tools import elsewhere

wires: Final[ContextVar[Any]] = ContextVar("playhead-wires", default=None)
"""The `WirePort` of this thread or task; None outside recorded programs, False where an agent's tools run inside one."""

EXITS: Final = (SystemExit, KeyboardInterrupt)
"""What asyncio raises out of its event loop when a task has raised it."""


class Halted(BaseException):
    """Unwinds a program whose run has ended. SDKs retry, and programs swallow, whatever is an `Exception`."""


def is_halted(error: BaseException | None) -> bool:
    """Return whether this unwinds a program, perhaps in the group of a task group's errors."""
    return isinstance(error, Halted) or (isinstance(error, BaseExceptionGroup) and error.subgroup(Halted) is not None)


def current() -> Any:  # noqa: ANN401 - a `WirePort`
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
