"""The life of a recorded function: from its first event to its last, for a run and for a recorded function inside another."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from playhead.agent.ambient import enclosing
from playhead.errors import RunEndedError
from playhead.instrument.calls import call_tool, run_agent
from playhead.instrument.exchanges import WirePort
from playhead.instrument.scopes import Scope, entered, tasks_of
from playhead.instrument.seam import Halted, is_halted
from playhead.instrument.worlds import UNFINISHED, ProgramWorld
from playhead.kernel.execution import Execution, abandoned_execution, end_with_error, finish
from playhead.kernel.guards import own_guards
from playhead.kernel.lifecycle.timer_thread import Task, deadlines
from playhead.kernel.loop import close_state
from playhead.kernel.session import GRACE_S
from playhead.kernel.state import KernelState
from playhead.kernel.tools import elsewhere
from playhead.trace.events import FactRecorded
from playhead.trace.owners import is_within
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.kernel.session import Session
    from playhead.trace.events import EventBase


class Lifetime:
    """A block in which a recorded function runs. It ends the session as the function ends: with a value or an exception."""

    def __init__(
        self,
        session: Session,
        world: ProgramWorld,
        started: EventBase,
        ending: Callable[[Execution], EventBase],
        on_left: Callable[[], object] = lambda: None,
    ) -> None:
        """Make a lifetime; `ending` makes the last event, `on_left` is called when the function is abandoned."""
        self.scope = Scope(session, world)
        self._started, self._ending, self._on_left = started, ending, on_left
        self._value: Any = None
        self._leaving: list[Task] = []
        """The timers of the grace periods."""
        self._open = ExitStack()
        self._cancel: Callable[[], object] | None = None
        self._before: set[Any] | None = None
        """The tasks of the event loop when a coroutine function began, and its own task; None for a plain function."""

    def __enter__(self) -> Self:
        """Record the start.

        Raises:
            Halted: the program above has ended.
        """
        session = self.scope.session
        session.ending.cancel_with(self._stop)
        if session.parent is None:
            self.scope.world.begin(session)
        try:
            session.emit_start((self._started, None), "agent", "", self._record_left)
        except RunEndedError as ended:
            raise Halted(str(ended)) from ended
        with ExitStack() as opened:  # what is open is closed if a guard cannot start
            if session.parent is None:
                elsewhere.append(self.scope.world.notice)
                opened.callback(elsewhere.remove, self.scope.world.notice)
            session.at.begin(session.run.recorder.clock.now_us())
            session.messages.define_tools(())
            session.reach(KernelState(task_id=session.run.run_id, strategy=session.header.strategy))
            for guard in own_guards(session):
                guard.start()
            opened.callback(enclosing.reset, enclosing.set(run_agent))
            opened.enter_context(session.run.current("agent", session.owner))
            opened.enter_context(entered(self.scope, WirePort(self.scope), call_tool))
            self._open = opened.pop_all()
        self.scope.strand()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Record the end."""
        with suppress(ValueError):  # a generator that is closed in another context
            self._open.close()
        session = self.scope.session
        if isinstance(error, asyncio.CancelledError):
            error = self.scope.exit() or error  # `sys.exit` in a task cancels all others, and this one
        # After a live run that was not ended, calls pass through unrecorded; otherwise they are halted.
        self.scope.over = type(self.scope.world) is ProgramWorld and not session.ended
        for guard in own_guards(session):
            guard.stop()
        is_cancelled = session.ending.interrupted and isinstance(error, asyncio.CancelledError)
        if is_halted(error) or is_cancelled or (error is None and session.ended):
            self._end(None)
            task = asyncio.current_task() if is_cancelled else None
            if task is not None:
                task.uncancel()
            if session.parent is None or not session.parent.ended:
                raise self._stopped() from error
            self.scope.require_running()  # raises Halted, which unwinds the program above: it has ended as well
        else:
            self._end(error)

    def returned(self, value: Any) -> None:  # noqa: ANN401 - any value
        """Keep the value that the function returned."""
        self._value = value

    def cancel_with(self, task: Any) -> None:  # noqa: ANN401 - asyncio's, or None where there is none
        """Cancel this task when the run is ended from outside."""
        self._before = tasks_of(self.scope) | {task}
        self._cancel = partial(task.get_loop().call_soon_threadsafe, task.cancel)

    def at_work(self) -> int:
        """Return how many tasks of a coroutine function have not ended."""
        return 0 if self._before is None else len(tasks_of(self.scope) - self._before)

    def _end(self, error: BaseException | None) -> None:
        session = self.scope.session
        if at_work := self.at_work():
            session.emit(FactRecorded(name=UNFINISHED, value=at_work))
        self._leave_behind()
        if error is not None:
            end_with_error(session, error)
        elif not session.ended:
            session.terminate("end_turn", to_json(self._value), source=f"program:{session.header.name}")
        if session.termination is None:
            session.terminate("parent_ended", failed=True)
        state = session.state
        assert state is not None  # noqa: S101 - set at the start
        finish(session, close_state(state, session), error, self._ending)
        for each in self._leaving:
            each.call_off()

    def _leave_behind(self) -> None:
        """Record the end of what the function started and has not awaited: streams, threads, tasks."""
        owner, in_flight = self.scope.session.owner, self.scope.session.run.in_flight
        with in_flight.lock:
            keys = [key for key in in_flight.open if is_within(key[0], owner) and key != (owner, "agent", "")]
            left = [in_flight.open.pop(key) for key in reversed(keys)]
        for record in left:
            record()

    def _stopped(self) -> RunEndedError:
        ended: Any = self.scope.session.termination  # set by `_end`
        why = ended.because or ended.error or ended.reason
        return RunEndedError(f"{ended.source} ended {self.scope.session.header.name}: {why}")

    def _stop(self, grace_s: float = GRACE_S) -> None:
        """Cancel the function where it can be, and abandon it after the grace period; from any thread."""
        self._leaving.append(deadlines.after(grace_s, self._leave))
        if self._cancel is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._cancel()

    def _leave(self) -> None:
        session = self.scope.session
        if session.ending.leave_behind():
            session.run.in_flight.leave(session.owner)
            self._on_left()

    def _record_left(self) -> None:
        """Record the end of the abandoned function."""
        session = self.scope.session
        reached = abandoned_execution(session)
        session.emit_left(session.snapshot(reached.state))
        session.at.enter_iteration(None)
        session.emit_left(self._ending(reached))
