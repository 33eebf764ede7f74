"""Who may pause, stop and end a run while it goes on; from any thread."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from playhead.kernel.guards import interrupt
from playhead.kernel.hooks import Terminate
from playhead.kernel.threads import Waiting, loop_scheduler
from playhead.trace.events import RunPaused, RunResumed, RunStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.agent.streaming.projection import Stream
    from playhead.kernel.session import Session
    from playhead.kernel.state import KernelState
    from playhead.trace.line import Record
    from playhead.trace.recorder import Recorder, Subscriptions

TERMINATED: Final = "terminated"
"""How a run ends that its caller ends at once; the name of the switch is `terminate`."""


class RunControl:
    """Pauses, stops and ends a run; from any thread."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        """Where what the run tells goes."""
        self.waiting = Waiting()
        """Gets what a run reached whose loop is held up."""
        self._lock = threading.RLock()
        self._root: Session | None = None
        self._begun = False
        self._over = False
        self._pausing: str | None = None
        self._resuming = ""
        self._stopping: str | None = None
        self._terminating: str | None = None
        self._waiting: list[Callable[[], object]] = []
        """Wakes each agent that waits."""

    # --- what the run asks -----------------------------------------------------------------------------------------

    def listen(self, recorder: Recorder, subscriptions: Subscriptions) -> None:
        """Hear of everything that this recorder records."""
        self.stream.bind(recorder)
        subscriptions.add(None, self.stream.on_record)
        subscriptions.add("run-started", self.on_record)

    def attach(self, session: Session) -> None:
        """Learn of the run's root agent."""
        self._root = session

    def on_record(self, record: Record) -> None:
        """Hear that the run has begun: from now on there is something to end."""
        if isinstance(record.event, RunStarted):
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            pending = None if self._begun else self._terminating
            self._begun = True
        if pending is not None:
            self._end(pending)

    async def reached(self, session: Session) -> None:
        """Wait while the run is paused."""
        self._begin()  # nothing was heard of an event that could not be written
        self.stream.leave_phase(session.owner)
        paused = False
        while (waiting := self._wait_for_more(session)) is not None:
            reason, more = waiting
            if not paused:
                paused = True
                session.emit(RunPaused(reason=reason))
            await more.wait()
        if paused:
            session.emit(RunResumed(reason=self._resuming))

    def stops(self, session: Session, before: str) -> str | None:  # noqa: ARG002 - any agent, anywhere
        """Return why the run is to stop, or None."""
        return self._stopping

    def begins(self, state: KernelState, session: Session) -> None:
        """Tell of the next phase."""
        self.stream.enter_phase(state, session)

    def over(self) -> None:
        """Know that the run is over."""
        with self._lock:
            self._over = True

    # --- what the caller wants -------------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether an agent of the run waits."""
        return bool(self._waiting)

    def pause(self, reason: str) -> bool:
        """Let every agent wait before its next phase."""
        with self._lock:
            if self._over or self._pausing is not None or self._stopping is not None or self._terminating is not None:
                return False
            self._pausing = reason
            return True

    def resume(self, reason: str) -> bool:
        """Let all agents go on."""
        with self._lock:
            if self._over or self._pausing is None:
                return False
            self._pausing, self._resuming = None, reason
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            with suppress(RuntimeError):  # the run's loop has ended
                wake()
        return True

    def stop(self, reason: str) -> bool:
        """Let every agent answer instead of beginning its next turn."""
        with self._lock:
            if self._over or self._stopping is not None or self._terminating is not None:
                return False
            self._stopping = reason
        self.resume(f"to stop: {reason}")
        return True

    def end(self, reason: str) -> bool:
        """End the run at once; one that has not begun ends as soon as it has."""
        with self._lock:
            if self._over or self._terminating is not None:
                return False
            self._terminating = reason
            begun = self._begun
        return self._end(reason) if begun else True

    def _end(self, reason: str) -> bool:
        assert self._root is not None  # noqa: S101 - it has begun
        return interrupt(self._root, "terminate", Terminate(reason, "terminate", TERMINATED))

    def _wait_for_more(self, session: Session) -> tuple[str, anyio.Event] | None:
        """Return why to wait, and for what; None when there is nothing to wait for."""
        with self._lock:
            if self._pausing is None or session.ended:
                return None
            more = anyio.Event()
            schedule = loop_scheduler()
            self._waiting.append(lambda: schedule(more.set))
            return self._pausing, more
