"""Bodies of the user's (tools, approvers), sync or async: wait for one, or walk away from it.

A sync one runs in a thread. A coroutine runs in a task of its own: it may swallow its cancellation, and in the task of whoever
waits for it, it would then hold that up, too.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio

from playhead.kernel.lifecycle.threads import asyncio_loop, start_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

GRACE_S: Final = 0.08
"""Seconds from being cancelled to being left behind."""

_left: set[LeavableTask] = set()
"""Tasks that were left behind; a loop itself does not keep its tasks alive."""


class LeavableTask(asyncio.Task[Any]):
    """A task that may be left behind: when the loop has ended, it goes without asyncio's complaint."""

    def __del__(self) -> None:
        """Say nothing."""


class TaskCall:
    """A coroutine running in a task of its own, with a copy of the caller's context variables."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        function: Callable[[], Awaitable[object]],
        on_late: Callable[[bool], None],
    ) -> None:
        """Start it; `on_late` is called with whether it returned, when nobody waits for it any more."""
        self.value: object = None
        self.error: BaseException | None = None
        self.abandoned = False
        """Whether it was still running when its caller gave up."""
        self._loop = loop
        self._function = function
        self._on_late = on_late
        self._late_at = math.inf
        self._in_time: asyncio.Future[bool] = loop.create_future()
        self._task = LeavableTask(self._run(), loop=loop)

    async def wait(self, timeout_s: float | None) -> bool:
        """Return whether it ended within these seconds. If not, or when cancelled, it is cancelled and then left."""
        if timeout_s is not None:
            self._late_at = self._loop.time() + timeout_s
        timer = None if timeout_s is None else self._loop.call_at(self._late_at, self._end, False)  # noqa: FBT003
        try:
            in_time = await self._in_time
        except GeneratorExit:  # of a caller that is thrown away: it cannot await any more
            self._leave()
            raise
        except BaseException:
            await self._stop()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not in_time:
            await self._stop()
        return in_time

    async def _run(self) -> None:
        try:
            self.value = await self._function()
        except BaseException as error:  # noqa: BLE001 - whatever it raises belongs to the caller
            self.error = error
        if self.abandoned:
            self._on_late(self.error is None)
        else:
            self._end(self._loop.time() < self._late_at)  # the loop itself may have been held up

    def _end(self, in_time: bool) -> None:  # noqa: FBT001
        if not self._in_time.done():
            self._in_time.set_result(in_time)

    async def _stop(self) -> None:
        self._task.cancel()
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait({self._task}, timeout=GRACE_S)
        finally:
            self._leave()

    def _leave(self) -> None:
        if not self._task.done():
            self.abandoned = True
            _left.add(self._task)
            self._task.add_done_callback(_left.discard)
            forget(self._task)


def forget(task: LeavableTask) -> None:
    """See to it that the end of the loop does not wait for a task that was left behind."""
    task.cancel()
    asyncio._unregister_task(task)  # noqa: SLF001 - documented, for tasks that loops shall not know


@dataclass(slots=True)
class Finished:
    """How a body ended."""

    value: Any = None
    """What it returned."""
    error: BaseException | None = None
    """What it raised."""
    in_thread: bool = False
    """Whether it raised that in a thread."""


def run_body(
    begin: Callable[[], Any],
    *,
    is_async: bool,
    timeout_s: float | None,
    on_late: Callable[[bool], None] = lambda _: None,
    on_left: Callable[[], object] = lambda: None,
) -> Coroutine[Any, Any, Finished | None]:
    """Run a body and return how it ended; None when its time was up first.

    Args:
        begin: calls it.
        is_async: whether that only makes a coroutine; else what it returns may still have to be awaited.
        timeout_s: seconds that it may take; None for no limit.
        on_late: called with whether it returned, when that comes after its caller has gone; from any thread.
        on_left: called when its caller goes while it still runs.
    """
    loop = asyncio_loop()
    if is_async and loop is not None:
        return _in_task(loop, begin, timeout_s, on_late, on_left)
    return _beside(loop, begin, is_async, timeout_s, on_late, on_left)


async def _beside(  # noqa: PLR0913, PLR0917 - as `run_body`
    loop: asyncio.AbstractEventLoop | None,
    begin: Callable[[], Any],
    is_async: bool,  # noqa: FBT001 - as above
    timeout_s: float | None,
    on_late: Callable[[bool], None],
    on_left: Callable[[], object],
) -> Finished | None:
    with anyio.move_on_after(timeout_s):
        if is_async:
            return await _here(begin())
        call = start_in_thread(begin, on_late)
        try:
            await call.wait()
        finally:
            if call.abandoned:
                on_left()
        value: Any = call.value
        if call.error is not None or not inspect.isawaitable(value):
            return Finished(value, call.error, in_thread=True)
        return await (_here(value) if loop is None else _in_task(loop, lambda: value, None, on_late, on_left))
    return None


async def _in_task(
    loop: asyncio.AbstractEventLoop,
    begin: Callable[[], Awaitable[object]],
    timeout_s: float | None,
    on_late: Callable[[bool], None],
    on_left: Callable[[], object],
) -> Finished | None:
    call = TaskCall(loop, begin, on_late)
    try:
        in_time = await call.wait(timeout_s)
    finally:
        if call.abandoned:
            on_left()
    return Finished(call.value, call.error) if in_time else None


async def _here(value: Awaitable[object]) -> Finished:
    """Wait for it in this task: of trio, where none can be left behind."""
    try:
        return Finished(await value)
    except Exception as error:  # noqa: BLE001 - whatever it raises belongs to the caller
        return Finished(error=error)
