"""Running an agent so that it can be ended from outside: in a task of its own, which can be left behind.

Cancelling is asking: a coroutine may swallow it, a loop may be held up. What has not come back a moment after it was
asked is left to itself: its end is recorded here, its caller goes on, and what it does later counts for nothing.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import anyio

from playhead.kernel.execution import Execution, abandoned_execution, execute
from playhead.kernel.lifecycle.bodies import LeavableTask, forget
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.lifecycle.threads import running_loop
from playhead.kernel.lifecycle.watch import watch
from playhead.kernel.session import GRACE_S
from playhead.trace.events import HookFailed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from playhead.kernel.lifecycle.watch import Task
    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase
    from playhead.trace.types import Content

ISOLATED_GRACE_S: Final = 0.4
"""The same while a process of an isolated call has to be ended."""
TIDYING_S: Final = 1.0
"""The same when no limit is to be kept: the caller was cancelled."""
CANCELLED: Final = Termination("cancelled", failed=True, error="the run was cancelled from outside")
PARENT_ENDED: Final = Termination("parent_ended", failed=True)
CANCELLING_S: Final = 0.01
"""Seconds in which what waits is cancelled again and again, as anyio does."""


class Supervisor:
    """One agent's run, seen from outside."""

    def __init__(
        self,
        session: Session,
        ending: Callable[[Execution], EventBase],
        on_left: Callable[[Execution], object] = lambda _: None,
    ) -> None:
        """Supervise a session; `ending` makes its last event, `on_left` hears of it when its code was left behind."""
        self._session = session
        self._ending = ending
        self._on_left = on_left
        self._scope, self._inner = anyio.CancelScope(), anyio.CancelScope()
        self._over = anyio.Event()
        self._execution: Execution | None = None
        self._loop = running_loop()
        self._leaving: list[Task] = []
        session.ending.cancel_with(self.stop)

    async def run(self, task: Content, started: EventBase) -> Execution:
        """Run the agent and return what it reached, at the latest a moment after it was stopped.

        Raises:
            RunEndedError: the agent that called it has ended; `started` is not recorded then.
        """
        session = self._session
        session.emit_start(started, "agent", "", self._record_left)
        guards = [guard for guard in session.gate.guards if guard.session is session]
        try:
            for guard in guards:
                guard.start()
            return await self._run(task)
        finally:
            for guard in guards:
                guard.stop()
            for each in self._leaving:
                each.call_off()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Cancel what the agent waits for, and leave behind what does not come back in this time; from any thread."""
        if self._session.run.in_flight.has_processes(self._session.owner):
            grace_s = max(grace_s, ISOLATED_GRACE_S)
        self._leaving.append(watch.after(grace_s, self.leave))
        self._in_loop(self._cancel)

    def _cancel(self) -> None:
        """Cancel what the agent waits for, for a moment: what swallows that would else keep its loop from all else."""
        self._scope.cancel()
        self._loop.call_later(CANCELLING_S, self._cancel_no_more)

    def _cancel_no_more(self) -> None:
        """Let the agent's code be: anyio would cancel what swallows that at every turn of the loop, for ever."""
        self._inner.shield = True

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Let what is in here be cancelled."""
        with self._scope, self._inner:
            yield

    def leave(self) -> None:
        """Leave the agent's code behind, unless it closes by itself; from any thread."""
        session = self._session
        if not session.ending.leave_behind():
            return
        try:
            session.run.in_flight.leave(session.owner)
            if self._execution is not None:
                self._on_left(self._execution)
        finally:
            self._in_loop(self._over.set)

    async def _run(self, task: Content) -> Execution:
        running = LeavableTask(execute(self._session, task, self._ending, self._cancellable()), loop=self._loop)
        running.add_done_callback(self._returned)
        try:
            await self._over.wait()
        except BaseException as error:
            await self._cancelled(error)
            raise
        finally:
            if not running.done():
                with suppress(RuntimeError):  # the loop has ended
                    forget(running)
                self._cancel_no_more()
        return cast("Execution", self._execution or running.result())  # whoever closes an agent says what it reached

    def _returned(self, running: asyncio.Task[Execution | None]) -> None:
        """Note that the agent's code has come back; when it was left behind before, its end is being recorded."""
        if running.cancelled() or running.exception() is not None or running.result() is not None:
            self._over.set()

    async def _cancelled(self, error: BaseException) -> None:
        """Do what is left to do when the caller does not wait any more."""
        session = self._session
        session.interrupt(CANCELLED if _is_cancelled(session) else PARENT_ENDED, grace_s=TIDYING_S)
        if isinstance(error, GeneratorExit):  # of a coroutine that is thrown away: nothing can be awaited
            self.leave()
            return
        try:
            with anyio.CancelScope(shield=True):
                await self._over.wait()
        except BaseException:  # cancelled a second time: nobody waits for anything to be put in order
            self.leave()
            raise

    def _record_left(self) -> None:
        """Record how the agent ended, in its place."""
        self._execution = abandoned_execution(self._session)
        if self._session.gate.asking is not None:
            hook, where = self._session.gate.asking
            self._session.emit_left(HookFailed(hook=hook, where=where, error="it had not come back when the run ended"))
        self._session.emit_left(self._session.snapshot(self._execution.state))
        self._session.at.enter_iteration(None)
        self._session.emit_left(self._ending(self._execution))

    def _in_loop(self, action: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and everything in it
            self._loop.call_soon_threadsafe(action)


def _is_cancelled(session: Session) -> bool:
    """Return whether it was the caller who cancelled, and no agent above ended in another way."""
    above = session.parent
    while above is not None:
        if above.termination is not None:
            return above.termination.reason == CANCELLED.reason
        above = above.parent
    return True
