"""Daemon threads: for blocking code beside an event loop, and for the event loop of a blocking caller.

They never delay the end of the program. The threads of anyio and asyncio are joined when the loop ends, so one hung tool would
hang the program.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playhead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
IDLE_S: Final = 10.0
"""Seconds a worker waits for more work before it ends."""
INTERRUPT_S: Final = 2.0
"""Seconds that Ctrl-C waits for the run to close its trace."""
CLOSING_S: Final = 0.1
"""Seconds that a result waits for its loop to close; after that the loop closes in its daemon thread."""


class Workers:
    """A pool of daemon threads; a new one starts when none is idle."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start empty: a forked child has no threads."""
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Any], object]]] = queue.SimpleQueue()
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()
        """One entry for each idle thread without work on its way."""

    def submit(self, function: Callable[[], T], deliver: Callable[[T], object]) -> None:
        """Call a function, which must not raise, in a thread, then `deliver` its value there."""
        try:
            self._idle.get_nowait()
        except queue.Empty:
            threading.Thread(target=self._run, name="playhead-tool", daemon=True).start()
        self._work.put((function, deliver))

    def _run(self) -> None:
        while True:
            try:
                function, deliver = self._work.get(timeout=IDLE_S)
            except queue.Empty:
                with suppress(queue.Empty):  # if it is empty, work is on its way
                    self._idle.get_nowait()
                    return
                continue
            value = function()
            self._idle.put(None)  # before the loop hears of the result: its next call then finds this thread
            deliver(value)
            del function, deliver, value  # an idle thread must not keep the last result alive


workers: Final = Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.forget)


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop.

    Raises:
        UsageError: none of asyncio's runs here.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "agents run in an asyncio event loop; elsewhere call `run_sync`, under trio in a thread"
        ) from None


def soon() -> Callable[[Callable[[], object]], object]:
    """Return a function that calls its argument in the running event loop, from any thread; at once if there is no loop."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        return lambda function: function()


class Waiting:
    """A thread that waits for a run in another thread."""

    def __init__(self) -> None:
        self.outcomes: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        """The run's result or exception; the first counts."""
        self.deliver: Callable[[Any, BaseException | None], object] = lambda *outcome: self.outcomes.put(outcome)
        """Takes the run's result or exception; a handle replaces it."""
        self.left_behind = False
        """Whether its loop was abandoned, so that the caller does not wait for it to close."""
        self.stop: Callable[[], object] | None = None
        """Ends the run, from any thread."""


def run_blocking(main: Callable[[], Awaitable[T]], waiting: Waiting | None = None) -> T:
    """Run an async function in a loop of its own, in a daemon thread, and wait for its result.

    Works inside a running loop and in notebooks. What a signal handler raises, such as `KeyboardInterrupt`, ends
    the function, and is raised after its cleanup.
    A result may arrive through `waiting` while the loop itself is blocked.
    """
    waiting = waiting or Waiting()

    async def reach() -> None:
        task: Any = asyncio.current_task()
        waiting.stop = waiting.stop or partial(running_loop().call_soon_threadsafe, task.cancel)
        # Delivered inside the loop, because an abandoned coroutine may keep the loop from ending.
        try:
            waiting.deliver(await main(), None)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            waiting.deliver(None, error)

    def work() -> None:
        try:
            asyncio.run(reach())
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            waiting.deliver(None, error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="playhead-run", daemon=True)
    thread.start()
    value, error = _wait_for(waiting)
    if not waiting.left_behind:
        thread.join(CLOSING_S)
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _wait_for(waiting: Waiting) -> tuple[Any, BaseException | None]:
    try:
        return waiting.outcomes.get()
    except BaseException:  # Ctrl-C, or what a signal handler of the application's raises
        if waiting.stop is not None:
            waiting.stop()
            with suppress(queue.Empty):
                waiting.outcomes.get(timeout=INTERRUPT_S)
        raise
