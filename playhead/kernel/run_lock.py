"""The lock of a run: what starts, what ends and who ends it are decided one after the other."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S: Final = 0.02
"""Seconds to wait for it: an observer of what is recorded under it may hang, and nothing may hang with it."""


class RunLock:
    """May be taken again by the thread that has it, because an observer may look at the run."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def take(self) -> bool:
        """Take it; False when somebody holds it for too long, and what is to be done is done without it."""
        return self._lock.acquire(timeout=PATIENCE_S)

    def give_back(self, taken: bool) -> None:  # noqa: FBT001 - what `take` returned
        """Give it back, if it was taken."""
        if taken:
            self._lock.release()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it for a while; `take` and `give_back` are quicker."""
        taken = self.take()
        try:
            yield
        finally:
            self.give_back(taken)
