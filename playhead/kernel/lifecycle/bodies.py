"""Run user code (tools, approvers), sync or async, and abandon it if it does not return in time.

Sync code runs in a thread. A coroutine runs in a task of its own, because it may swallow its cancellation, and in its caller's
task it would then block the caller.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel.lifecycle.threads import running_loop, workers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

GRACE_S: Final = 0.08
"""Seconds between the cancellation of a coroutine and its abandonment."""

_left: set[LeavableTask] = set()
"""Abandoned tasks; a loop does not keep its tasks alive."""


class LeavableTask(asyncio.Task[Any]):
    """A task that may be abandoned: asyncio does not warn when it is destroyed while pending."""

    def __del__(self) -> None:
        """Suppress asyncio's warning."""


def forget(task: LeavableTask) -> None:
    """Keep the end of the loop from waiting for an abandoned task."""
    task.cancel()
    asyncio._unregister_task(task)  # noqa: SLF001 - documented, for tasks that loops shall not know


@dataclass(slots=True)
class Finished:
    """How a body ended."""

    value: Any = None
    """The return value."""
    error: BaseException | None = None
    """The exception."""
    in_thread: bool = False
    """Whether it ran in a thread."""
    at: float = field(default_factory=time.monotonic)


def run_body(  # noqa: PLR0913 - the options of one body
    begin: Callable[[], Any],
    *,
    is_async: bool = False,
    timeout_s: float | None = None,
    on_late: Callable[[bool], object] = lambda _: None,
    on_left: Callable[[], object] = lambda: None,
    stop: Callable[[], object] = lambda: None,
    grace_s: float = 0.0,
) -> Coroutine[Any, Any, Finished | None]:
    """Run a body; return, awaited, how it ended, or None if it timed out.

    Args:
        begin: calls the body.
        is_async: whether `begin` only creates a coroutine; else it is called in a thread, and may return an awaitable.
        timeout_s: the time limit in seconds; None for no limit.
        on_late: called with the success of a body that ends after its abandonment; from any thread.
        on_left: called when the body is abandoned.
        stop: asks a body in a thread to end.
        grace_s: seconds between `stop` and the abandonment.
    """
    late_at = inf if timeout_s is None else time.monotonic() + timeout_s
    body = _Body(on_late, on_left)
    return body.run_task(begin, late_at) if is_async else body.run_thread(begin, late_at, stop, grace_s)


async def run_in_thread(function: Callable[[], object], on_late: Callable[[bool], object] = lambda _: None) -> Any:  # noqa: ANN401 - what the function returns
    """Run a function in a thread and return or raise its outcome; a cancelled caller abandons it."""
    finished = await run_body(function, on_late=on_late)
    assert finished is not None  # noqa: S101 - without a limit
    if finished.error is not None:
        raise finished.error
    return finished.value


def _finished(begin: Callable[[], Any]) -> Finished:
    try:
        return Finished(begin(), in_thread=True)
    except BaseException as error:  # noqa: BLE001 - passed to the caller
        return Finished(error=error, in_thread=True)


class _Body:
    """A body in progress."""

    def __init__(self, on_late: Callable[[bool], object], on_left: Callable[[], object]) -> None:
        self._on_late = on_late
        self._on_left = on_left
        self._loop = running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._finished: Finished | None = None
        self._left = False
        """Whether it was abandoned."""

    async def run_task(self, begin: Callable[[], Any], late_at: float) -> Finished | None:
        """Run a coroutine in a task of its own, with a copy of the caller's context, and wait for it."""
        task = LeavableTask(self._run(begin), loop=self._loop)
        try:
            return await self.wait(late_at, task.cancel, GRACE_S)
        finally:
            if self._left:
                _left.add(task)
                task.add_done_callback(_left.discard)
                forget(task)

    async def run_thread(
        self, begin: Callable[[], Any], late_at: float, stop: Callable[[], object], grace_s: float
    ) -> Finished | None:
        """Run a function in a thread, and the coroutine that it may return in a task, and wait for them."""
        workers.submit(partial(contextvars.copy_context().run, _finished, begin), self._return)
        finished = await self.wait(late_at, stop, grace_s)
        if finished is None or not inspect.isawaitable(finished.value):
            return finished
        return await _Body(self._on_late, self._on_left).run_task(lambda: finished.value, late_at)

    async def wait(self, late_at: float, stop: Callable[[], object], grace_s: float) -> Finished | None:
        """Return how the body ended before this time; if it did not, or on cancellation, ask it to end, then abandon it."""
        try:
            await asyncio.sleep(0)  # the task runs now
            if self._finished is None:
                await self._until(late_at)
        except GeneratorExit:  # the caller's coroutine is destroyed, and cannot await
            grace_s = 0.0
            raise
        finally:
            finished = self._finished
            if finished is None or finished.at >= late_at:  # the loop may have been blocked meanwhile
                _close(finished)
                finished = None
                await self._end(stop, grace_s)
        return finished

    def _return(self, finished: Finished) -> None:
        """Wake the caller, or report that the body is late; in the thread."""
        with suppress(RuntimeError):  # the loop is closed
            if not self._left:
                self._loop.call_soon_threadsafe(self._hear, finished)
                return
        self._report_late(finished)

    async def _run(self, begin: Callable[[], Any]) -> None:
        try:
            finished = Finished(await begin())
        except BaseException as error:  # noqa: BLE001 - passed to the caller
            finished = Finished(error=error)
        self._hear(finished)

    def _hear(self, finished: Finished) -> None:
        """Wake the caller, in its loop, or report that the body is late."""
        self._finished = finished
        if self._left:
            self._report_late(finished)
        elif self._waiter is not None:
            _wake(self._waiter)

    def _report_late(self, finished: Finished) -> None:
        _close(finished)
        self._on_late(finished.error is None)

    async def _until(self, until: float) -> None:
        waiter = self._waiter = self._loop.create_future()
        timer = None if until == inf else self._loop.call_later(until - time.monotonic(), _wake, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()

    async def _end(self, stop: Callable[[], object], grace_s: float) -> None:
        stop()
        try:
            if grace_s:
                with anyio.CancelScope(shield=True):
                    await self._until(time.monotonic() + grace_s)
        finally:
            if self._finished is None:
                self._left = True
                self._on_left()


def _close(finished: Finished | None) -> None:
    """Close a coroutine that a function returned too late: nobody awaits it."""
    if finished is not None and inspect.iscoroutine(finished.value):
        finished.value.close()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
