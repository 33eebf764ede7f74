"""What of a run has begun and not ended, so that everything that began is recorded as ended exactly once.

Code that hangs cannot say how it ended. Whoever leaves it behind says it, and what the code says later is not recorded.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S: Final = 0.02
"""Seconds to wait for an observer that holds up an event, before what is in flight is closed beside it."""


class InFlight:
    """Agents, requests and calls that run, with the function that records how each ended if it is left behind."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Callable[[], object]] = {}
        self._lock = threading.RLock()

    def begin(self, owner: str, what: str, leave: Callable[[], object]) -> None:
        """Remember that something has begun; `leave` records its end when nobody else can."""
        self._open[owner, what] = leave

    def end(self, owner: str, what: str, record: Callable[[], object]) -> bool:
        """Record an end with `record`; False when it was left behind before."""
        with self._lock:  # else the trace could be closed between the two
            if self._open.pop((owner, what), None) is None:
                return False
            record()
            return True

    def leave(self, owner: str) -> None:
        """Record the end of everything of an owner and of those below it, newest first."""
        held = self._lock.acquire(timeout=PATIENCE_S)
        try:
            for key in reversed(list(self._open)):
                if f"{key[0]}/".startswith(f"{owner}/") and (record := self._open.pop(key, None)) is not None:
                    record()
        finally:
            if held:
                self._lock.release()
