"""A run that begins while another one is sent gets its turn."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

from playhead.spans.live import LiveExport
from playhead.spans.pump import Totals
from playhead.spans.reading import Shortage


def test_a_new_run_does_not_wait_until_a_busy_one_has_ended() -> None:
    """As long as there is something to send, new runs are taken in between two requests."""
    export = LiveExport("nowhere", lambda: (_ for _ in ()).throw(AssertionError))
    run: Any = SimpleNamespace(run_id="new", reading=SimpleNamespace(shortage=Shortage()))
    steps: list[bool] = []

    def step(*, timeout_s: float | None) -> str:
        assert timeout_s is None
        steps.append(run in pump.runs)
        if len(steps) == 1:
            export._new.append(run)  # as `add` does
        return "idle" if len(steps) == 3 else "sent"

    patience = SimpleNamespace(again_at=0.0, failing_since=None)
    pump: Any = SimpleNamespace(
        runs=deque(), step=step, finished=list, patience=patience, stopped=None, totals=Totals()
    )
    export._round(pump)
    assert steps == [False, True, True]
