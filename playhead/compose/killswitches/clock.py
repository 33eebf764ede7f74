"""Killswitches that look at the time, from a thread of their own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from playhead.compose.durations import seconds
from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block
from playhead.errors import UsageError
from playhead.kernel.guards import interrupt
from playhead.kernel.watch import watch
from playhead.trace.events import LlmResponded, ToolCallCompleted

if TYPE_CHECKING:
    from playhead.compose.durations import Duration
    from playhead.compose.harness import Block
    from playhead.kernel.session import Session
    from playhead.kernel.watch import Task
    from playhead.trace.events import EventBase


def timeout_after(
    duration: Duration | None = None, *, wall_clock: Duration | None = None, on_trigger: OnTrigger = "stop"
) -> Block:
    """End the run when it has lasted this long, whatever it does then: what is in flight is cancelled or left behind.

    Args:
        duration: seconds, or text such as `90s`, `5m` or `1h30m`, or a timedelta.
        wall_clock: the same, by another name.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    given = _one_of("timeout_after", duration=duration, wall_clock=wall_clock)
    limit_s, trigger = seconds(given, "timeout_after"), checked_trigger(on_trigger)
    return guard_block(
        "timeout_after", lambda session: _Timeout(session, limit_s, trigger), limit_s=limit_s, on_trigger=trigger
    )


def watchdog(
    no_progress_for: Duration | None = None, *, timeout: Duration | None = None, on_trigger: OnTrigger = "stop"
) -> Block:
    """End the run when it has got nowhere for this long.

    Getting somewhere is: the model has answered, or a call has returned a result. Failed calls, refused ones and
    retried requests are no progress; nor is what an agent below does that gets nowhere itself.

    Args:
        no_progress_for: seconds, or text such as `90s` or `5m`, or a timedelta.
        timeout: the same, by another name.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    given = _one_of("watchdog", no_progress_for=no_progress_for, timeout=timeout)
    limit_s, trigger = seconds(given, "watchdog"), checked_trigger(on_trigger)
    return guard_block(
        "watchdog", lambda session: _Watchdog(session, limit_s, trigger), limit_s=limit_s, on_trigger=trigger
    )


class _Timeout(Switch):
    def __init__(self, session: Session, limit_s: float, on_trigger: str) -> None:
        super().__init__(session, "timeout_after", on_trigger)
        self._limit_s = limit_s
        self._task: Task | None = None

    def start(self) -> None:
        self._task = watch.after(self._limit_s, self._fire)

    def stop(self) -> None:
        if self._task is not None:
            self._task.call_off()

    def _fire(self) -> None:
        interrupt(self.session, self.name, self.answer(f"{self._limit_s:g} s have passed"))


class _Watchdog(Switch):
    def __init__(self, session: Session, limit_s: float, on_trigger: str) -> None:
        super().__init__(session, "watchdog", on_trigger)
        self._limit_s = limit_s
        self._seen = 0.0
        self._task: Task | None = None
        self._stopped = False

    def start(self) -> None:
        self._seen = time.monotonic()
        self._task = watch.after(self._limit_s, self._look)

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.call_off()

    def heard(self, session: Session, event: EventBase) -> None:  # noqa: ARG002
        if is_progress(event):
            self._seen = time.monotonic()

    def _look(self) -> None:
        left_s = self._seen + self._limit_s - time.monotonic()
        if left_s <= 0:
            interrupt(self.session, self.name, self.answer(f"no progress for {self._limit_s:g} s"))
        elif not self._stopped:
            self._task = watch.after(left_s, self._look)


def is_progress(event: EventBase) -> bool:
    """Return whether a run has got somewhere with this event."""
    return isinstance(event, LlmResponded) or (isinstance(event, ToolCallCompleted) and event.ok)


def _one_of(what: str, **given: Duration | None) -> Duration:
    values = [value for value in given.values() if value is not None]
    if len(values) != 1:
        raise UsageError(f"{what} takes one length of time, such as {what}('5m'); {len(values)} are given")
    return values[0]
