"""Killswitches that check the time from the timer thread."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.compose.durations import seconds
from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block
from playhead.kernel.guards import interrupt
from playhead.kernel.lifecycle.timer_thread import deadlines
from playhead.trace.events import LlmResponded, ToolCallCompleted

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.durations import Duration
    from playhead.compose.harness import Block
    from playhead.kernel.hooks import Stop, Terminate
    from playhead.kernel.lifecycle.timer_thread import Task
    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase


def timeout_after(duration: Duration, *, on_trigger: OnTrigger = "stop") -> Block:
    """End the run after this time; calls in flight are cancelled or abandoned.

    Args:
        duration: seconds, or text such as `90s`, `5m` or `1h30m`, or a timedelta.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    return _clocked(Clocked, duration, on_trigger)


def watchdog(no_progress_for: Duration, *, on_trigger: OnTrigger = "stop") -> Block:
    """End the run after this long without progress.

    Progress means that the model has answered or that a call has returned a result. Failed calls, refused calls and
    retried requests are not progress; neither is the work of a sub-agent that makes no progress itself.

    Args:
        no_progress_for: seconds, or text such as `90s` or `5m`, or a timedelta.
        on_trigger: `stop` keeps the best output and status `done`; `terminate` makes the run a failed one.

    Raises:
        UsageError: an argument is not valid.
    """
    return _clocked(_Watchdog, no_progress_for, on_trigger)


def _clocked(kind: type[Clocked], limit: Duration, on_trigger: str) -> Block:
    limit_s, trigger = seconds(limit, kind.name), checked_trigger(on_trigger)
    return guard_block(kind.name, lambda session: kind(session, trigger, limit_s), limit_s=limit_s, on_trigger=trigger)


@dataclass(eq=False)
class Clocked(Switch):
    """A switch that fires some time after the start of the run."""

    name = "timeout_after"
    why = "{:g} s have passed"
    limit_s: float
    now: Callable[[], float] = time.monotonic
    """The clock, in seconds; a backtest uses a recording's clock."""
    _since: float = 0.0
    _task: Task | None = None
    _stopped: bool = False

    def begin(self) -> None:
        """Start counting now."""
        self._since = self.now()

    @property
    def due(self) -> float:
        """The time, by its clock, at which it fires if nothing happens before."""
        return self._since + self.limit_s

    def late(self) -> Stop | Terminate | None:
        """Return how the agent ends if its time is up, or None."""
        return self.answer(self.why.format(self.limit_s)) if self.now() >= self.due else None

    def start(self) -> None:
        """Schedule the check in the timer thread."""
        self.begin()
        self._task = deadlines.after(self.limit_s, self._look)

    def stop(self) -> None:
        """Cancel the check."""
        self._stopped = True
        if self._task is not None:
            self._task.call_off()

    def look(self) -> bool:
        """End the agent if its time is up; return whether it is."""
        ending = self.late()
        if ending is not None:
            interrupt(self.session, self.name, ending)
        return ending is not None

    def _look(self) -> None:
        if not self.look() and not self._stopped:  # one read: the clock may pass the limit before a second
            self._task = deadlines.after(max(0.0, self.due - self.now()), self._look)


class _Watchdog(Clocked):
    """A switch that fires some time after the last progress."""

    name = "watchdog"
    why = "no progress for {:g} s"

    def heard(self, session: Session, event: EventBase) -> None:  # noqa: ARG002
        if is_progress(event):
            self.begin()


def is_progress(event: EventBase) -> bool:
    """Return whether this event is progress."""
    return isinstance(event, LlmResponded) or (isinstance(event, ToolCallCompleted) and event.ok)
