"""Runs an agent in a task of its own, so that it can be ended from outside and, if need be, abandoned.

Cancellation is a request: a coroutine may swallow it, a loop may be blocked. Code that has not returned a moment later is
abandoned: its end is recorded here, its caller continues, and its later events are discarded.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import anyio

from playhead.kernel.execution import Execution, abandoned_execution, execute
from playhead.kernel.guards import own_guards
from playhead.kernel.lifecycle.bodies import LeavableTask, forget
from playhead.kernel.lifecycle.termination import Termination
from playhead.kernel.lifecycle.threads import running_loop
from playhead.kernel.lifecycle.timer_thread import deadlines
from playhead.kernel.session import GRACE_S
from playhead.trace.events import HookFailed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from playhead.kernel.lifecycle.timer_thread import Task
    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase
    from playhead.trace.types import Content

ISOLATED_GRACE_S: Final = 0.4
"""The grace period while the process of an isolated call has to be killed."""
TIDYING_S: Final = 1.0
"""The grace period after the cancellation of the caller, where no time limit applies."""
CANCELLED: Final = Termination("cancelled", failed=True, error="the run was cancelled from outside")
PARENT_ENDED: Final = Termination("parent_ended", failed=True)
CANCELLING_S: Final = 0.01
"""Seconds in which a cancelled scope repeats the cancellation, as anyio does."""


class Supervisor:
    """The outer side of one agent's run."""

    def __init__(
        self,
        session: Session,
        ending: Callable[[Execution], EventBase],
        on_left: Callable[[Execution], object] = lambda _: None,
    ) -> None:
        """Supervise a session; `ending` makes its last event, `on_left` is called after the abandonment of its code."""
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
        """Run the agent and return its result, at the latest a moment after it was stopped.

        Raises:
            RunEndedError: the calling agent has ended; `started` is not recorded then.
        """
        session = self._session
        session.emit_start((started, session.at.iteration), "agent", "", self._record_left)
        try:
            for guard in own_guards(session):
                guard.start()
            return await self._run(task)
        finally:
            for guard in own_guards(session):
                guard.stop()
            for each in self._leaving:
                each.call_off()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Cancel what the agent awaits, and abandon its code after the grace period; from any thread."""
        if self._session.run.in_flight.has_processes(self._session.owner):
            grace_s = max(grace_s, ISOLATED_GRACE_S)
        self._leaving.append(deadlines.after(grace_s, self.leave))
        self._in_loop(self._cancel)

    def _cancel(self) -> None:
        """Cancel what the agent awaits, for a moment: code that swallows it would otherwise block its loop."""
        self._scope.cancel()
        self._loop.call_later(CANCELLING_S, self._cancel_no_more)

    def _cancel_no_more(self) -> None:
        """Stop the cancellation, which anyio would otherwise repeat at every turn of the event loop."""
        self._inner.shield = True

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Make the code inside this block cancellable."""
        with self._scope, self._inner:
            yield

    def leave(self) -> None:
        """Abandon the agent's code, unless it has closed; from any thread."""
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
        session = self._session
        with session.run.current("agent", session.owner):  # the task keeps it
            running = LeavableTask(execute(session, task, self._ending, self._cancellable()), loop=self._loop)
        running.add_done_callback(self._returned)
        try:
            await self._over.wait()
        except BaseException as error:
            await self._cancelled(error)
            raise
        finally:
            if not running.done():
                with suppress(RuntimeError):  # the loop is closed
                    forget(running)
                self._cancel_no_more()
        return cast("Execution", self._execution or running.result())  # whoever closed the agent has its result

    def _returned(self, running: asyncio.Task[Execution | None]) -> None:
        """End the wait for the agent's code, unless it was abandoned: then `leave` ends it."""
        if running.cancelled() or running.exception() is not None or running.result() is not None:
            self._over.set()

    async def _cancelled(self, error: BaseException) -> None:
        """End the agent after the cancellation of its caller."""
        session = self._session
        session.interrupt(CANCELLED if _is_cancelled(session) else PARENT_ENDED, grace_s=TIDYING_S)
        if isinstance(error, GeneratorExit):  # the coroutine is destroyed, and cannot await
            self.leave()
            return
        try:
            with anyio.CancelScope(shield=True):
                await self._over.wait()
        except BaseException:  # cancelled a second time: no further wait for the cleanup
            self.leave()
            raise

    def _record_left(self) -> None:
        """Record the end of the abandoned agent."""
        self._execution = abandoned_execution(self._session)
        if self._session.gate.asking is not None:
            hook, where = self._session.gate.asking
            self._session.emit_left(HookFailed(hook=hook, where=where, error="it had not returned when the run ended"))
        self._session.emit_left(self._session.snapshot(self._execution.state))
        self._session.at.enter_iteration(None)
        self._session.emit_left(self._ending(self._execution))

    def _in_loop(self, action: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(action)


def _is_cancelled(session: Session) -> bool:
    """Return whether the caller cancelled, and no agent above ended in another way."""
    above = session.parent
    while above is not None:
        if above.termination is not None:
            return above.termination.reason == CANCELLED.reason
        above = above.parent
    return True
