"""Blocking code beside the loop, in daemon threads that never delay the end of the process.

anyio's own worker threads are joined when the loop ends, so one hung tool would hang the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import queue
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
IDLE_S: Final = 10.0
"""Seconds a worker waits for more work before it ends."""


class ThreadCall:
    """A function running in a worker thread: wait for it, or walk away from it."""

    def __init__(self, function: Callable[[], object], on_late: Callable[[bool], None]) -> None:
        self.value: object = None
        self.error: BaseException | None = None
        self._function = function
        self._on_late = on_late
        self._done = anyio.Event()
        self._in_loop = loop_scheduler()
        self._lock = threading.Lock()
        self._finished = False
        self._abandoned = False

    def execute(self) -> None:
        """Run the function; called in the worker."""
        try:
            self.value = self._function()
        except BaseException as error:  # noqa: BLE001 - whatever it raises belongs to the caller
            self.error = error

    def deliver(self) -> None:
        """Wake the caller, or tell that it has gone; called in the worker."""
        with self._lock:
            self._finished = True
            late = self._abandoned
        try:
            if not late:
                self._in_loop(self._done.set)
        except RuntimeError:  # the loop has ended
            late = True
        if late:
            self._on_late(self.error is None)

    async def wait(self) -> None:
        """Wait until the function has ended; when cancelled, leave it to itself."""
        try:
            await self._done.wait()
        except BaseException:
            with self._lock:
                self._abandoned = not self._finished
            raise

    @property
    def abandoned(self) -> bool:
        """Whether the function was still running when its caller gave up."""
        return self._abandoned


class _Workers:
    """Idle daemon threads, newest first; a new one is made when none is idle."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[ThreadCall]] = []
        self._lock = threading.Lock()

    def submit(self, call: ThreadCall) -> None:
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="playhead-tool", daemon=True).start()
        inbox.put(call)

    def _work(self, inbox: queue.SimpleQueue[ThreadCall]) -> None:
        while True:
            try:
                call = inbox.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    if inbox not in self._idle:  # a call is on its way
                        continue
                    self._idle.remove(inbox)
                return
            call.execute()
            with self._lock:  # idle before the loop hears of the result: its next call then finds this thread
                self._idle.append(inbox)
            call.deliver()
            del call  # an idle thread must not keep the last result alive

    def forget(self) -> None:
        """Drop the threads, which do not exist in a forked child."""
        self._idle = []
        self._lock = threading.Lock()


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)


def start_in_thread(function: Callable[[], object], on_late: Callable[[bool], None]) -> ThreadCall:
    """Start a blocking function in a daemon thread, with the caller's context variables.

    `on_late` is called in that thread, with whether the function returned, when nobody waits for it any more.
    """
    context = contextvars.copy_context()
    call = ThreadCall(lambda: context.run(function), on_late)
    _workers.submit(call)
    return call


async def run_in_thread(function: Callable[[], object]) -> Any:  # noqa: ANN401 - what the function returns
    """Run a function beside the event loop and return what it returns, or raise what it raises; cancelled, it is left behind."""
    call = start_in_thread(function, lambda _: None)
    await call.wait()
    if call.error is not None:
        raise call.error
    return call.value


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running loop, or None when it is another library's."""
    if (task := _asyncio_task()) is not None:
        return task.get_loop()
    native: Any = current_token().native_token
    return native if hasattr(native, "call_soon_threadsafe") else None


def _asyncio_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop of asyncio's runs here
        return None


def loop_scheduler() -> Callable[[Callable[[], object]], object]:
    """Return the loop's own way to call something soon, from any thread and without waiting for it."""
    loop = asyncio_loop()
    if loop is not None:
        return loop.call_soon_threadsafe
    native: Any = current_token().native_token
    return native.run_sync_soon  # type: ignore[no-any-return]  # trio


class Waiting:
    """A thread that waits for a run which goes on in another one."""

    def __init__(self) -> None:
        self.outcome: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        """What the run reached, or raised; the first counts."""
        self.left_behind = False
        """Whether its loop is held up: nobody waits for that to close anything."""
        self.stop: Callable[[], object] | None = None
        """Ends the run, from any thread, so that an outcome comes soon."""


def run_blocking(main: Callable[[], Awaitable[T]], waiting: Waiting | None = None) -> T:
    """Run an async function in a loop of its own, in a daemon thread, and wait for its result.

    Works inside a running loop and in notebooks. Ctrl-C ends the function, and the interrupt is raised when it has
    closed what it had open. Through `waiting` a result may come while the loop itself is held up.
    """
    waiting = waiting or Waiting()
    ended = threading.Event()

    async def scoped() -> None:
        with anyio.CancelScope() as scope:
            in_loop = loop_scheduler()
            waiting.stop = waiting.stop or (lambda: in_loop(scope.cancel))
            # From in here: a coroutine that was left behind may keep the loop from ever ending.
            waiting.outcome.put((await main(), None))
            return
        raise KeyboardInterrupt

    def work() -> None:
        _forget_loop()
        try:
            anyio.run(scoped)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            waiting.outcome.put((None, error))
        finally:
            ended.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="playhead-run", daemon=True).start()
    value, error = _wait_for(waiting)
    if not waiting.left_behind:
        ended.wait(CLOSING_S)
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _forget_loop() -> None:
    """Tell anyio that no loop runs in this thread: by the context that was copied, the caller's does."""
    sniffio: Any = sys.modules.get("sniffio")
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)


def _wait_for(waiting: Waiting) -> tuple[Any, BaseException | None]:
    try:
        return waiting.outcome.get()
    except KeyboardInterrupt:
        if waiting.stop is not None:
            waiting.stop()
            with contextlib.suppress(queue.Empty):
                waiting.outcome.get(timeout=INTERRUPT_S)
        raise


INTERRUPT_S: Final = 2.0
"""Seconds that Ctrl-C waits for the run to close its trace."""
CLOSING_S: Final = 0.1
"""Seconds that a result waits for its loop to close what it holds; then that goes on in its daemon thread."""
