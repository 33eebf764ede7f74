"""What of a run has begun and not ended, so that everything that began is recorded as ended exactly once.

Code that hangs cannot say how it ended. Whoever leaves it behind says it, and what the code says later is not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.run_lock import RunLock

if TYPE_CHECKING:
    from collections.abc import Callable


class InFlight:
    """Agents, requests and calls that run, with the function that records how each ended if it is left behind."""

    def __init__(self) -> None:
        self.lock = RunLock()
        """The run's."""
        self._open: dict[tuple[str, str], Callable[[], object]] = {}

    def begin(self, owner: str, what: str, leave: Callable[[], object]) -> None:
        """Remember that something has begun; `leave` records its end when nobody else can."""
        self._open[owner, what] = leave

    def end(self, owner: str, what: str, record: Callable[[], object]) -> bool:
        """Record an end with `record`; False when it was left behind before."""
        taken = self.lock.take()  # else the trace could be closed between the two
        try:
            if self._open.pop((owner, what), None) is None:
                return False
            record()
            return True
        finally:
            self.lock.give_back(taken)

    def leave(self, owner: str) -> None:
        """Record the end of everything of an owner and of those below it, newest first."""
        with self.lock.held():
            for key in reversed(list(self._open)):
                if f"{key[0]}/".startswith(f"{owner}/") and (record := self._open.pop(key, None)) is not None:
                    record()
