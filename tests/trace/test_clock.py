"""Time for a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playhead.trace.clock import SystemClock

if TYPE_CHECKING:
    import pytest


def test_time_is_now():
    """The clock says microseconds since the Unix epoch."""
    before = time.time_ns() // 1000
    now = SystemClock().now_us()
    assert before - 1_000_000 < now < time.time_ns() // 1000 + 1_000_000


def test_time_never_goes_backwards(monkeypatch: pytest.MonkeyPatch):
    """Setting the wall clock back while a run goes on does not touch the run's time."""
    clock = SystemClock()
    before = clock.now_us()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert clock.now_us() >= before
