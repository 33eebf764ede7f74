"""Time for a run: microseconds since the Unix epoch that never go backwards."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where a run's time comes from; `playhead.testing.TickingClock` is the one for tests."""

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch; never less than before."""
        ...


class SystemClock:
    """The wall clock when it is made, and from then on the monotonic clock, which nobody can set back."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch."""
        return (self._offset_ns + time.monotonic_ns()) // 1000
