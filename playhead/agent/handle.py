"""The handle of a running run: await it, read its events, pause, stop or terminate it, from any thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import anyio

from playhead.agent.result import RunResult
from playhead.agent.streaming import StreamEnd
from playhead.agent.streaming.projection import CANCELLED, Stream
from playhead.errors import UsageError
from playhead.kernel.guards import interrupt
from playhead.kernel.hooks import Terminate
from playhead.kernel.lifecycle.steering import STOPPED
from playhead.kernel.lifecycle.threads import Waiting, running_loop
from playhead.kernel.session import Steering
from playhead.trace.events import RunPaused, RunResumed
from playhead.trace.values import scrub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator
    from types import TracebackType
    from typing import Self

    from playhead.agent.streaming import Density, StreamEvent
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.recorder import Recorder, Subscriptions


Status = Literal["running", "paused", "stopped", "terminated", "completed", "failed"]
LONGEST: Final = 1000
"""The maximum length of a recorded reason, in characters."""
_running_tasks: Final[set[asyncio.Task[RunResult]]] = set()
"""Strong references to running tasks, because an event loop holds only weak ones."""


class RunControl(Steering):
    """Pauses, stops and terminates a run, from any thread."""

    def __init__(self, run_id: str, density: Density) -> None:
        """Control a run that begins soon.

        Raises:
            UsageError: the density is unknown.
        """
        self.stream = Stream(run_id, _checked_density(density))
        """The queue that the run's events go to."""
        self.waiting = Waiting()
        """Receives the result when the run's event loop is blocked."""
        self._lock = threading.RLock()
        self._root: Session | None = None
        self._begun = False
        self._over = False
        self._pause_reason: str | None = None
        self._resume_reason = ""
        self._stop_reason: str | None = None
        self._end_reason: str | None = None
        self._wakers: list[Callable[[], object]] = []
        """Wakes each paused agent."""

    # --- called by the run -----------------------------------------------------------------------------------------

    def listen(self, recorder: Recorder, subscriptions: Subscriptions) -> None:
        """Subscribe the stream to this recorder's records."""
        self.stream.bind(recorder)
        subscriptions.add(None, self.stream.on_record)
        subscriptions.add("run-started", lambda _: self._begin())

    def attach(self, session: Session) -> None:
        """Set the session of the root agent."""
        self._root = session

    def _begin(self) -> None:
        """Mark the run as begun, so that it can be terminated."""
        with self._lock:
            pending = None if self._begun else self._end_reason
            self._begun = True
        if pending is not None:
            self._end(pending)

    async def wait_while_paused(self, session: Session) -> None:
        """Wait while the run is paused."""
        self._begin()  # an event that could not be written reaches no listener
        self.stream.leave_phase(session.owner)
        pause = self._pause_in_progress(session)
        if pause is None:
            return
        session.emit(RunPaused(reason=pause[0]))
        while pause is not None:
            await pause[1].wait()
            pause = self._pause_in_progress(session)
        session.emit(RunResumed(reason=self._resume_reason))

    def stop_reason(self, session: Session, before: str) -> str | None:  # noqa: ARG002 - any agent, anywhere
        """Return the reason to stop the run, or None."""
        return self._stop_reason

    def phase_begins(self, state: KernelState, session: Session) -> None:
        """Stream the start of the next phase."""
        self.stream.enter_phase(state, session)

    def mark_over(self) -> None:
        """Mark the run as over."""
        with self._lock:
            self._over = True

    # --- called by the user ----------------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether an agent of the run is paused."""
        return bool(self._wakers)

    def pause(self, reason: str) -> bool:
        """Pause every agent before its next phase."""
        with self._lock:
            if self._over or (self._pause_reason, self._stop_reason, self._end_reason) != (None, None, None):
                return False
            self._pause_reason = reason
            return True

    def resume(self, reason: str) -> bool:
        """Resume all agents."""
        with self._lock:
            if self._over or self._pause_reason is None:
                return False
            self._pause_reason, self._resume_reason = None, reason
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            with suppress(RuntimeError):  # the run's loop has ended
                wake()
        return True

    def stop(self, reason: str) -> bool:
        """Make every agent answer instead of starting its next turn."""
        with self._lock:
            if self._over or self._stop_reason is not None or self._end_reason is not None:
                return False
            self._stop_reason = reason
        self.resume(f"to stop: {reason}")
        return True

    def end(self, reason: str) -> bool:
        """Terminate the run at once, or as soon as it begins."""
        with self._lock:
            if self._over or self._end_reason is not None:
                return False
            self._end_reason = reason
            begun = self._begun
        return self._end(reason) if begun else True

    def _end(self, reason: str) -> bool:
        assert self._root is not None  # noqa: S101 - it has begun
        return interrupt(self._root, "terminate", Terminate(reason, "terminate", "terminated"))

    def _pause_in_progress(self, session: Session) -> tuple[str, anyio.Event] | None:
        """Return the reason and the event of a pause; None when the run is not paused."""
        with self._lock:
            if self._pause_reason is None or session.ended:
                return None
            more = anyio.Event()
            schedule = running_loop().call_soon_threadsafe
            self._wakers.append(lambda: schedule(more.set))
            return self._pause_reason, more


class RunHandle:
    """The handle of a started run.

    `await handle` returns the result and raises like `Agent.run`; cancelling the await cancels the run. `async for`
    yields the run's events. As a context manager (`async with`), it terminates a run that is still going when the block
    is left. All other methods may be called from any thread.
    """

    def __init__(self, run_id: str, control: RunControl, main: Callable[[], Awaitable[RunResult]]) -> None:
        """Start the run in the running event loop; `Agent.start` does this."""
        self.run_id = run_id
        """The run's id."""
        self._control = control
        self._stream = control.stream
        self._outcome: concurrent.futures.Future[RunResult] = concurrent.futures.Future()
        self._error: BaseException | None = None
        self._finished = False
        self._retrieved = False
        """Whether the outcome was retrieved."""
        self._lock = threading.Lock()
        control.waiting.deliver = self._finish
        self._loop = running_loop()
        self._task = self._loop.create_task(self._run(main), name=f"playhead-{run_id}")
        _running_tasks.add(self._task)
        self._task.add_done_callback(self._ended)

    # --- status ----------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """Return `running`, or `paused` while an agent is paused; after the end, how the run ended.

        `stopped` and `terminated` mean that the caller ended the run. `failed` means that the result has that status or
        the run raised. `completed` is every other ending, including a limit.
        """
        if not self._outcome.done():
            return "paused" if self._control.is_paused else "running"
        result = self.result
        if result is None:
            return "failed" if isinstance(self._error, Exception) else "terminated"
        if result.terminated_by == STOPPED:
            return "stopped"
        if result.terminated_by in CANCELLED:
            return "terminated"
        return "completed" if result.status == "done" and self._error is None else "failed"

    @property
    def result(self) -> RunResult | None:
        """Return the result; None while the run is running, or if it raised before it began."""
        if not self._outcome.done():
            return None
        if self._error is None:
            return self._outcome.result()
        partial = getattr(self._error, "result", None)
        return partial if isinstance(partial, RunResult) else None

    def pause(self, reason: str = "paused by the caller") -> bool:
        """Pause the run before the next phase of its loop. Calls in flight continue.

        Time limits keep running: `timeout_after` counts the pause, and a `watchdog` sees no progress.

        Returns:
            True if this paused the run; False if it was already paused, stopping or over.
        """
        return self._control.pause(_checked_reason(reason))

    def resume(self, reason: str = "resumed by the caller") -> bool:
        """Resume a paused run; return False if it is not paused."""
        return self._control.resume(_checked_reason(reason))

    def stop(self, reason: str = "stopped by the caller") -> bool:
        """Stop the run gracefully: finish the current turn and its calls, then ask the model once for its best answer.

        If the model answers in the current turn, that answer is used. Sub-agents stop in the same way. A paused run is
        resumed first.

        Returns:
            True if this stopped the run; False if it was already stopping or over.
        """
        return self._control.stop(_checked_reason(reason))

    def terminate(self, reason: str = "terminated by the caller") -> bool:
        """Terminate the run at once, without an answer. The output is the best one so far; the status is `failed`.

        Returns:
            True if this ended the run; False if it had already ended.
        """
        return self._control.end(_checked_reason(reason))

    # --- the end ---------------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[object, None, RunResult]:
        return self._wait().__await__()

    def wait(self, timeout: float | None = None) -> RunResult:
        """Block until the run ends, in a thread other than the run's. Raises like `await`.

        Raises:
            TimeoutError: the run has not ended within `timeout` seconds.
            UsageError: it was called in the run's own thread, which would deadlock.
        """
        with suppress(RuntimeError):  # no loop runs in this thread
            if asyncio.get_running_loop() is self._loop:
                raise UsageError("wait() would block the loop that the run needs; write `await handle`")
        try:
            return self._outcome.result(timeout)
        finally:
            if self._outcome.done():
                self._mark_retrieved()

    def when_over(self, function: Callable[[RunResult | None], object]) -> None:
        """Call a function with the result when the run ends, in that thread. The result is None if awaiting raises."""
        self._outcome.add_done_callback(lambda _: function(None if self._error is not None else self.result))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        left_early = not self._outcome.done()
        if left_early:
            why = f" by {kind.__name__}" if kind is not None else ""
            self._control.end(f"its `async with` block was left{why} before it had ended")
        await self._over()
        is_unseen = error is None and not left_early and not self._retrieved
        self._mark_retrieved()
        if is_unseen and isinstance(self._error, Exception):  # otherwise the error would go unnoticed
            raise self._error

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        if self._stream.read:
            raise UsageError("the events of a run can be read once; start another run, or keep what you read")
        self._stream.read = True
        events = self._events()
        weakref.finalize(events, self._stream.queue.give_up).atexit = False  # even if iteration never starts
        return events

    async def _events(self) -> AsyncIterator[StreamEvent]:
        try:
            while (event := await self._stream.queue.get()) is not None:
                if isinstance(event, StreamEnd):
                    self._mark_retrieved()
                yield event
        finally:
            self._stream.queue.give_up()

    async def _wait(self) -> RunResult:
        self._retrieved = True
        if running_loop() is not self._loop:
            return await asyncio.shield(asyncio.wrap_future(self._outcome))
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.done():
                self._task.cancel()
                await self._over()
            raise

    async def _over(self) -> None:
        """Wait until the run is over and its trace closed, even when the waiting task is cancelled."""
        own = running_loop() is self._loop
        over: asyncio.Future[RunResult] = self._task if own else asyncio.wrap_future(self._outcome)
        with anyio.CancelScope(shield=True):
            await asyncio.wait([over])

    async def _run(self, main: Callable[[], Awaitable[RunResult]]) -> RunResult:
        try:
            result = await main()
        except BaseException as error:
            self._finish(None, error)
            raise
        self._finish(result, None)
        return result

    def _finish(self, result: RunResult | None, error: BaseException | None) -> None:
        """Set the outcome. The first one counts: the loop of an abandoned run may report later."""
        with self._lock:
            if self._finished:
                return
            self._finished = True
        self._control.mark_over()
        self._error = error
        if error is None:
            assert result is not None  # noqa: S101 - one of the two
            self._outcome.set_result(result)
        else:
            self._outcome.set_exception(error)
        self._stream.finish(self.result, error)

    def _ended(self, task: asyncio.Task[RunResult]) -> None:
        _running_tasks.discard(task)
        self._finish(None, asyncio.CancelledError())  # if the task was cancelled before it began
        if self._retrieved:
            self._mark_retrieved()

    def _mark_retrieved(self) -> None:
        """Mark the error as retrieved, so that asyncio does not log it."""
        self._retrieved = True
        if self._task.done() and not self._task.cancelled():
            self._task.exception()


def _checked_density(density: Density) -> Density:
    """Return the density of a stream of events."""
    if density not in ("tokens", "full"):
        raise UsageError(f"the density of a stream is 'tokens' or 'full'; it is {density!r}")
    return density


def _checked_reason(reason: object) -> str:
    """Return a reason as text that can be recorded."""
    if not isinstance(reason, str):
        raise UsageError(f"a reason is text; it is {reason!r}")
    return scrub(reason[:LONGEST])
