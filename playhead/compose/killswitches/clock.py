"""Killswitches that look at the time, from a thread of their own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.compose.durations import seconds
from playhead.compose.killswitches.trigger import OnTrigger, Switch, checked_trigger, guard_block
from playhead.kernel.guards import interrupt
from playhead.kernel.lifecycle.watch import watch
from playhead.trace.events import LlmResponded, ToolCallCompleted

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.compose.durations import Duration
    from playhead.compose.harness import Block
    from playhead.kernel.hooks import Stop, Terminate
    from playhead.kernel.lifecycle.watch import Task
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
    """End the run when it has got nowhere for this long.

    Getting somewhere is: the model has answered, or a call has returned a result. Failed calls, refused ones and
    retried requests are no progress; nor is what an agent below does that gets nowhere itself.

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
    """A switch that fires when some time has passed since the run began."""

    name = "timeout_after"
    why = "{:g} s have passed"
    limit_s: float
    now: Callable[[], float] = time.monotonic
    """The clock, in seconds; a backtest has that of a recording."""
    _since: float = 0.0
    _task: Task | None = None
    _stopped: bool = False

    def begin(self) -> None:
        """Count from now on."""
        self._since = self.now()

    @property
    def due(self) -> float:
        """When it fires, by its clock, if nothing happens before that."""
        return self._since + self.limit_s

    def late(self) -> Stop | Terminate | None:
        """Return the ending, when the time has come."""
        return self.answer(self.why.format(self.limit_s)) if self.now() >= self.due else None

    def start(self) -> None:
        """Look when the time has come, from the watch's thread."""
        self.begin()
        self._task = watch.after(self.limit_s, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._stopped = True
        if self._task is not None:
            self._task.call_off()

    def look(self) -> bool:
        """End the agent when the time has come; return whether it has."""
        ending = self.late()
        if ending is not None:
            interrupt(self.session, self.name, ending)
        return ending is not None

    def _look(self) -> None:
        if not self.look() and not self._stopped:  # the clock is read once: it may pass the limit in between
            self._task = watch.after(max(0.0, self.due - self.now()), self._look)


class _Watchdog(Clocked):
    """A switch that fires when some time has passed since the last progress."""

    name = "watchdog"
    why = "no progress for {:g} s"

    def heard(self, session: Session, event: EventBase) -> None:  # noqa: ARG002
        if is_progress(event):
            self.begin()


def is_progress(event: EventBase) -> bool:
    """Return whether a run has got somewhere with this event."""
    return isinstance(event, LlmResponded) or (isinstance(event, ToolCallCompleted) and event.ok)
