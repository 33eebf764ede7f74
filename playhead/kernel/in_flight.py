"""What of a run has begun and not ended, so that everything that began is recorded as ended exactly once.

Code that hangs cannot say how it ended. Whoever leaves it behind says it, and what the code says later is not recorded.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["agent", "request", "call"]


class InFlight:
    """Agents, requests and calls that run, with the function that records how each ended if it is left behind."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The run's: what starts, what ends and who ends it are decided under it, one after the other.

        Nothing of the user's runs under it (no redaction, no subscriber), so nobody holds it for long.
        """
        self._open: dict[tuple[str, Kind, str], Callable[[], object]] = {}

    def begin(self, owner: str, kind: Kind, name: str, leave: Callable[[], object]) -> None:
        """Remember that something has begun; `leave` records its end when nobody else can. Under the lock."""
        self._open[owner, kind, name] = leave

    def end(self, owner: str, kind: Kind, name: str) -> bool:
        """Forget what has ended; False when it was left behind before. Under the lock."""
        return self._open.pop((owner, kind, name), None) is not None

    def leave(self, owner: str) -> None:
        """Record the end of everything of an owner and of those below it, newest first."""
        with self.lock:
            keys = [key for key in self._open if f"{key[0]}/".startswith(f"{owner}/")]
            left = [self._open.pop(key) for key in reversed(keys)]
        for record in left:
            record()
