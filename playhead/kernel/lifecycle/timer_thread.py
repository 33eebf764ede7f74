"""Timer threads: daemon threads that run actions at their time, even while an event loop is blocked.

Only code that never releases the interpreter's lock delays them; `@tool(isolate=True)` and `playhead kill` are for such code.
"""

from __future__ import annotations

import logging
import os
import queue
import sched
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from playhead.trace.recorder import observer_timeout

log = logging.getLogger("playhead")

Action = Callable[[], object]


class Task:
    """A scheduled action."""

    def __init__(self, thread: TimerThread, seconds: float, action: Action, every_s: float | None) -> None:
        self._thread = thread
        self._every_s = every_s
        self._action: Action | None = action
        self._next = thread.tasks.enter(seconds, 0, self._do)

    def call_off(self) -> None:
        """Cancel it; from any thread."""
        self._action = None
        with suppress(ValueError):  # it is running, or was scheduled in the parent of this process
            self._thread.tasks.cancel(self._next)

    def _do(self) -> None:
        action = self._action
        try:
            with observer_timeout():
                if action is not None:
                    action()
        except BaseException:  # SystemExit too: this thread has all deadlines of the process
            log.exception("a scheduled action failed")
        if self._every_s is not None and self._action is not None:
            self._next = self._thread.tasks.enter(self._every_s, 0, self._do)


class TimerThread:
    """A thread with tasks in the order of their time. A task that raises is logged; the others continue."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start empty: a forked child has its parent's tasks, but no thread."""
        self.tasks = sched.scheduler(time.monotonic)
        self._more: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._running = False

    def after(self, seconds: float, action: Action, *, again: bool = False) -> Task:
        """Run an action after this many seconds, once or, with `again`, repeatedly; from any thread."""
        task = Task(self, seconds, action, seconds if again else None)
        self._more.put(None)
        with self._lock:
            if not self._running:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._running = True  # after the start, which may fail
        return task

    def _work(self) -> None:
        while True:
            pause_s = self.tasks.run(blocking=False)
            with suppress(queue.Empty):
                self._more.get(timeout=None if pause_s is None else min(pause_s, threading.TIMEOUT_MAX))


deadlines: Final = TimerThread("playhead-deadlines")
"""Ends runs and abandons code at their deadlines."""
file_checks: Final = TimerThread("playhead-files")
"""Looks for files; apart, because a network folder that hangs must not delay deadlines."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=deadlines.begin_anew)
    os.register_at_fork(after_in_child=file_checks.begin_anew)
