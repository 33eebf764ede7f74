"""Time for a run: microseconds since the Unix epoch that never go backwards."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The source of a run's time; tests use `playhead.testing.TickingClock`."""

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch; never less than before."""
        ...


class SystemClock:
    """Starts at the wall clock's time and then follows the monotonic clock, which cannot be set back."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch."""
        return (self._offset_ns + time.monotonic_ns()) // 1000
