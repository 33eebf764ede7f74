"""The watch: one daemon thread of the process that does things at their time, whatever the loops of the runs do.

A deadline that lives in an event loop is as hung as the loop. This thread needs only the interpreter: code that never
lets go of the interpreter's lock stops it, too (`@tool(isolate=True)` and `playhead kill` are for that).
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
    """Something to be done; may be called off."""

    def __init__(self, watch: Watch, seconds: float, action: Action, every_s: float | None) -> None:
        self._watch = watch
        self._every_s = every_s
        self._action: Action | None = action
        self._next = watch.tasks.enter(seconds, 0, self._do)

    def call_off(self) -> None:
        """Do it no more; from any thread."""
        self._action = None
        with suppress(ValueError):  # it is being done, or was to be done in the parent of this process
            self._watch.tasks.cancel(self._next)

    def _do(self) -> None:
        action = self._action
        try:
            with observer_timeout():
                if action is not None:
                    action()
        except BaseException:  # SystemExit too: all deadlines of the process are in this thread
            log.exception("a task of the watch failed")
        if self._every_s is not None and self._action is not None:
            self._next = self._watch.tasks.enter(self._every_s, 0, self._do)


class Watch:
    """Tasks in the order of their time. What a task raises is logged and hurts no other one."""

    def __init__(self, name: str = "playhead-watch") -> None:
        self._name = name
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything: a forked child has the tasks of its parent, but no thread."""
        self.tasks = sched.scheduler(time.monotonic)
        self._more: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._running = False

    def after(self, seconds: float, action: Action, *, again: bool = False) -> Task:
        """Do something that many seconds from now, once or `again` and again; from any thread."""
        task = Task(self, seconds, action, seconds if again else None)
        self._more.put(None)
        with self._lock:
            if not self._running:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._running = True  # not before: the system may have no thread to give
        return task

    def _work(self) -> None:
        while True:
            pause_s = self.tasks.run(blocking=False)
            with suppress(queue.Empty):
                self._more.get(timeout=None if pause_s is None else min(pause_s, threading.TIMEOUT_MAX))


watch: Final = Watch()
"""The process's own."""
file_watch: Final = Watch("playhead-files")
"""Another one, for looks at files: a folder of the network that hangs keeps no deadline from its time."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watch.begin_anew)
    os.register_at_fork(after_in_child=file_watch.begin_anew)
