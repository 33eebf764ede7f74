"""The watch: one daemon thread of the process that does things at their time, whatever the loops of the runs do.

A deadline that lives in an event loop is as hung as the loop. This thread needs only the interpreter: code that never
lets go of the interpreter's lock stops it, too (`@tool(isolate=True)` and `playhead kill` are for that).
"""

from __future__ import annotations

import heapq
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from playhead.trace.haste import in_haste

log = logging.getLogger("playhead")

IDLE_S: Final = 5.0
"""Seconds without anything to wait for after which the thread ends; the next task starts a new one."""

LONGEST_S: Final = 3600.0
"""Seconds to sleep at most: a deadline may be further away than the system can wait at once."""
MANY: Final = 1000
"""Tasks from which those that were called off are looked for."""

Action = Callable[[], object]


class Task:
    """Something to be done; may be called off."""

    __slots__ = ("action", "called_off", "every_s", "number", "when")
    _numbers = count()

    def __init__(self, when: float, action: Action, every_s: float | None) -> None:
        self.when = when
        self.action = action
        self.every_s = every_s
        self.called_off = False
        self.number = next(self._numbers)

    def __lt__(self, other: Task) -> bool:
        return (self.when, self.number) < (other.when, other.number)

    def call_off(self) -> None:
        """Do it no more; from any thread."""
        self.called_off = True
        self.action = _nothing


class Watch:
    """Tasks in the order of their time. What a task raises is logged and hurts no other one."""

    def __init__(self, name: str = "playhead-watch") -> None:
        self._name = name
        self._inbox: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._running = False

    def after(self, seconds: float, action: Action) -> Task:
        """Do something once, that many seconds from now; from any thread, and from a signal handler."""
        return self._add(Task(time.monotonic() + seconds, action, None))

    def every(self, seconds: float, action: Action) -> Task:
        """Do something again and again, first that many seconds from now."""
        return self._add(Task(time.monotonic() + seconds, action, seconds))

    def _add(self, task: Task) -> Task:
        self._inbox.put(task)  # re-entrant, as a signal handler needs it
        if not self._running:
            self._start()
        return task

    def _start(self) -> None:
        with self._lock:
            if not self._running:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._running = True  # not before: the system may have no thread to give

    def _work(self) -> None:
        tasks: list[Task] = []
        most = MANY
        while True:
            if len(tasks) > most:  # those called off would else stay until their time
                tasks = [each for each in tasks if not each.called_off]
                heapq.heapify(tasks)
                most = max(MANY, 2 * len(tasks))
            try:
                heapq.heappush(tasks, self._inbox.get(timeout=self._pause(tasks)))
            except queue.Empty:
                if not tasks and self._end():
                    return
            while tasks and (tasks[0].called_off or tasks[0].when <= time.monotonic()):
                self._do(heapq.heappop(tasks), tasks)

    @staticmethod
    def _pause(tasks: list[Task]) -> float:
        return min(max(0.0, tasks[0].when - time.monotonic()), LONGEST_S) if tasks else IDLE_S

    def _do(self, task: Task, tasks: list[Task]) -> None:
        if task.called_off:
            return
        try:
            with in_haste():
                task.action()
        except Exception:
            log.exception("a task of the watch failed")
        if task.every_s is not None and not task.called_off:
            task.when = time.monotonic() + task.every_s
            heapq.heappush(tasks, task)

    def _end(self) -> bool:
        """Return whether the thread may end: whoever adds a task from here on starts another one."""
        with self._lock:
            self._running = False  # before looking: who puts a task in after the look sees it, and starts a thread
            self._running = not self._inbox.empty()
            return not self._running

    def _forget(self) -> None:
        """Begin anew: a forked child has the tasks of its parent, but no thread."""
        self._inbox = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._running = False


def _nothing() -> None:
    pass


watch: Final = Watch()
"""The process's own."""
file_watch: Final = Watch("playhead-files")
"""Another one, for looks at files: a folder of the network that hangs keeps no deadline from its time."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watch._forget)  # noqa: SLF001 - its own
    os.register_at_fork(after_in_child=file_watch._forget)  # noqa: SLF001 - the same
