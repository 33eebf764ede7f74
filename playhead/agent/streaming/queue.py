"""A queue without a bound, from the threads of a run to the one who reads."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio

from playhead.errors import UsageError
from playhead.kernel.threads import loop_scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.agent.streaming import StreamEvent


class EventQueue:
    """Nothing is dropped for being many: what nobody reads stays in memory until the queue is given up."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal may come while it is held
        self._events: deque[StreamEvent] = deque()
        self._wake: Callable[[], object] | None = None
        self.closed = False
        """Whether the last event is in it, or nobody wants any more."""

    def put(self, event: StreamEvent, *, last: bool = False) -> None:
        """Add an event, from any thread; after the last one nothing is added."""
        with self._lock:
            if self.closed:
                return
            self.closed = last
            self._events.append(event)
            wake, self._wake = self._wake, None
        if wake is not None:
            with suppress(RuntimeError):  # the reader's loop has ended
                wake()

    def give_up(self) -> None:
        """Forget what is in it, and take nothing more: nobody reads."""
        with self._lock:
            self.closed = True
            self._events.clear()

    async def get(self) -> StreamEvent | None:
        """Return the next event, when there is one; None when there is none any more.

        Raises:
            UsageError: somebody else waits for it: each of the two would miss what the other gets.
        """
        while True:
            with self._lock:
                if self._events:
                    return self._events.popleft()
                if self.closed:
                    return None
                if self._wake is not None:
                    raise UsageError(
                        "the events of a run have one reader at a time, and another one waits for the next"
                    )
                more = anyio.Event()
                wake = self._wake = partial(loop_scheduler(), more.set)
            try:
                await more.wait()
            finally:
                self._forget(wake)

    def _forget(self, wake: Callable[[], object]) -> None:
        with self._lock:
            if self._wake is wake:
                self._wake = None
