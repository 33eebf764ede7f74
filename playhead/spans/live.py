"""Live export: the spans of this process's runs, sent while they go on by one thread, and without the agent's help.

The thread reads the traces as they are written, so an agent's side does nothing for an event, and what waits for a
collector that is down waits in the file. Of a run without a file the agent's side puts its records into a short queue.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError
from playhead.spans.cursor import Cursor
from playhead.spans.notices import Again, command, count_undelivered, message, notices
from playhead.spans.run_export import RunExport
from playhead.spans.sources import QueueSource, TraceSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.delivery import Sink
    from playhead.spans.destination import Destination
    from playhead.spans.pump import Pump
    from playhead.trace.recorder import Recorder, Subscriptions

log = logging.getLogger("playhead")

POLL_S: Final = 0.5
"""Seconds between two looks at the traces of runs that go on."""
EXIT_S: Final = 2.0
"""Seconds that the end of a process waits at most."""
_TO_COUNT_S: Final = 0.4
"""Seconds of these in which what was not delivered is counted."""
_SAID_AFTER_S: Final = 30.0
"""Seconds after which it is said that a destination takes nothing; by then it is no restart of it."""
MAX_RUNS: Final = 10_000
"""Runs that wait for a destination; those that come then wait for `playhead export --resume`."""
_KNOWN: Final = 1_000
"""Of these, so many whose traces are known, to say how they are sent."""


class LiveExport:
    """Sends the runs that begin in this process from now on; never raises into a run, and never holds one up."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], tuple[Sink, Callable[[], SpanBuilder]]],
        destination: Destination | None = None,
        *,
        again: Again | None = None,
        on_flush: Callable[[float], object] | None = None,
    ) -> None:
        """Prepare; nothing is imported and no thread starts before the first run.

        Args:
            name: where the spans go, as it may be shown.
            connect: makes what takes the spans, and what makes a run's folder of events; called in the thread.
            destination: whose cursors are kept; None: nothing is acknowledged, so none are.
            again: what sends recorded runs that did not arrive.
            on_flush: called by `flush` and `shutdown` when everything was handed over, with the seconds that are left;
                what returns False has not done it.
        """
        self.name = name
        self._connect, self._destination, self._again = connect, destination, again or Again()
        self._on_flush = on_flush
        self._stopped = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget all runs: at the start, and in a forked child, for they are its parent's."""
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._new: list[RunExport] = []
        self._first_turned_away: list[Path] = []
        self._turned_away = self._lost_runs = self._remarks = 0
        self._readers = 2
        self._pump: Pump | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self._hurry = self._said = self._unwritten = False
        self._end_at = 0.0
        self._broken: str | None = None
        self._make_builder: Callable[[], SpanBuilder] | None = None

    forget_parent = _begin_anew

    # --- the agent's side -------------------------------------------------------------------------------------------

    def add(self, run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> None:
        """Send a run that begins now."""
        if self._stopped:
            return
        if self._broken is not None or len(self._runs()) >= MAX_RUNS:
            self._turn_away(recorder)
            return
        run = self._export_of(run_id, recorder, subscriptions)
        with self._lock:
            self._new.append(run)
        self._start()
        self._wake.set()

    @property
    def stopped(self) -> bool:
        """Whether it sends no runs any more."""
        return self._stopped

    @property
    def pending(self) -> int:
        """Runs of which something may be left to deliver."""
        return sum(not run.done for run in self._runs())

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Deliver every span that is complete by now; return whether that was done in time.

        What is recorded after the call is not waited for, so that it returns however busy the application is.
        """
        late_at = time.monotonic() + timeout_s
        if self._thread is None or not self._thread.is_alive():
            return not self.pending
        marks = [(run, run.next_seq() - 1) for run in self._runs()]
        with self._changed:
            self._hurry = True
            self._wake.set()
            done = self._changed.wait_for(lambda: all(run.has_come_to(seq) for run, seq in marks), timeout_s)
        return done and self._flush_within(late_at) and all(run.failure is None for run, _ in marks)

    def shutdown(self, timeout_s: float = EXIT_S) -> None:
        """Deliver what is left, and say what could not be; runs that begin later are not sent. Again, it does nothing."""
        with self._ending:  # of two threads that end the process, the second waits for the first
            if not self._stopped:
                self._end(timeout_s)

    def _turn_away(self, recorder: Recorder) -> None:
        """Leave a run to `playhead export`, if it has a trace."""
        if recorder.writer is None:
            self._lost_runs += 1
        else:
            self._turned_away += 1
            self._first_turned_away += [recorder.writer.path] if self._turned_away <= _KNOWN else []

    def _export_of(self, run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> RunExport:
        writer = recorder.writer
        if writer is None:
            queue = QueueSource(lambda: recorder.sealed)
            subscriptions.add(None, queue.put)
            return RunExport(run_id, None, lambda: queue, self._builder, next_seq=lambda: queue.next_seq)
        path = writer.path
        cursor = None if self._destination is None else Cursor(path, self._destination)
        source = lambda: TraceSource(path, lambda: recorder.sealed)  # noqa: E731 - as above
        return RunExport(run_id, path, source, self._builder, cursor, next_seq=lambda: writer.next_seq)

    def _builder(self) -> SpanBuilder:
        assert self._make_builder is not None  # noqa: S101 - the thread has connected before it asks
        return self._make_builder()

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            _end_with_worker(self.shutdown)
            self._thread = threading.Thread(target=self._work, name="playhead-export", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # no thread to be had: too many, or the interpreter is going down
                self._break(str(error))

    # --- the thread -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            from playhead.spans.pump import Pump  # noqa: PLC0415 - in the thread, as all that follows

            sink, self._make_builder = self._connect()
            _suppress_instrumentation()
            pump = self._pump = Pump(sink)
            while not self._stopped:
                self._round(pump)
                self._wait(pump)
            self._hurry = True
            self._round(pump)
            self._flush(self._end_at)
            sink.close()
        except (ImportError, PlayheadError) as error:
            self._break(str(error))
        except Exception as error:  # noqa: BLE001 - live export ends, and nothing else
            self._break(f"this is a bug in Playhead ({type(error).__name__}: {error})"[:300])
        finally:
            self._let_go()

    def _round(self, pump: Pump) -> None:
        """Send until nothing is left, nobody takes it, or the process ends."""
        while (left := self._time_left()) is None or left > 0:
            if self._hurry:
                self._hurry, pump.patience.again_at = False, 0.0
            with self._lock:  # before each request: a run that is busy may never come to its end
                pump.runs += self._new
                self._new.clear()
            step = pump.step(timeout_s=left)
            for run in pump.finished():
                self._tell_of(run)
            self._tell(pump)
            with self._changed:
                self._changed.notify_all()
            if step != "sent":
                return

    def _time_left(self) -> float | None:
        """Return the seconds until the process ends; None while it does not."""
        return self._end_at - time.monotonic() if self._stopped else None

    def _wait(self, pump: Pump) -> None:
        stuck_s = pump.patience.again_at - time.monotonic()
        self._wake.wait(stuck_s if stuck_s > 0 else POLL_S if pump.runs or self._new else None)
        self._wake.clear()

    def _tell(self, pump: Pump) -> None:
        """Say once what is wrong with the destination."""
        for remark in pump.totals.remarks[self._remarks :]:
            self._remarks += 1
            log.warning("%s takes the spans, and says: %s", self.name, remark)
        failing, stopped = pump.patience.failing_since, pump.stopped
        if failing is None or stopped is None:
            self._said = False
        elif not (self._said or self._stopped) and (
            stopped.meaning == "unusable" or time.monotonic() - failing > _SAID_AFTER_S
        ):
            self._said = True
            log.warning("spans cannot be delivered to %s now: %s; the traces keep them", self.name, stopped.reason)

    def _tell_of(self, run: RunExport) -> None:
        """Say what is not as it should be of a run that is done, or given up."""
        for notice in notices(run, self.name):
            log.warning("run %s: %s", run.run_id, notice)
        if run.failure is not None and run.path is not None and run.path.exists():
            log.warning("run %s: %s: %s", run.run_id, self._again.how, command([run.path], self._again))
        if run.cursor is not None and run.cursor.error is not None and not self._unwritten:
            self._unwritten = True
            log.warning("what was sent cannot be written down: %s: %s", run.cursor.error, run.cursor.path)

    def _break(self, why: str) -> None:
        self._broken = why
        log.warning("spans are not exported to %s: %s", self.name, why)

    # --- both -------------------------------------------------------------------------------------------------------

    def _runs(self) -> list[RunExport]:
        """Return the runs that are not done, the first first."""
        with self._lock:
            return [*(self._pump.runs if self._pump else ()), *self._new]

    def _end(self, timeout_s: float) -> None:
        started = time.monotonic()
        self._end_at = started + max(timeout_s - _TO_COUNT_S, timeout_s / 2)
        self._stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(max(self._end_at - time.monotonic(), 0.0))
        runs = self._runs()
        for run in runs:
            self._tell_of(run)
        if undelivered := count_undelivered([run for run in runs if not run.done], started + timeout_s):
            log.warning("%s", message(undelivered, self.name, self._why_not(), self._again))
        if self._turned_away:
            sends = f"{self._again.how}: {command(self._first_turned_away, self._again)}"
            log.warning("%d more runs were not sent to %s; %s", self._turned_away, self.name, sends)
        if self._lost_runs:
            said = "%d more runs were not sent to %s, and have no trace: they are lost"
            log.warning(said, self._lost_runs, self.name)
        self._let_go()

    def _why_not(self) -> str | None:
        """Return why there are spans that were not delivered, if that is known."""
        reason = self._broken or (self._pump.stopped.reason if self._pump and self._pump.stopped else None)
        if reason is None and self._thread is not None and self._thread.is_alive():
            return "it did not answer in time" if self._pump else "what sends them was not loaded in time"
        return reason

    def _let_go(self) -> None:
        """Close the runs, when both have ended that read them: the thread, and the count of what is left."""
        with self._lock:
            self._readers -= 1
        if not self._readers:
            for run in self._runs():
                run.close()

    def _flush_within(self, late_at: float) -> bool:
        """Flush what the spans were handed to, in a thread of its own, for it may take no notice of the time."""
        if self._on_flush is None:
            return True
        done: list[bool] = []
        thread = threading.Thread(target=lambda: done.append(self._flush(late_at)), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread to be had
            return False
        thread.join(max(late_at - time.monotonic(), 0.0))
        return done == [True]

    def _flush(self, late_at: float) -> bool:
        try:
            return self._on_flush is None or self._on_flush(max(late_at - time.monotonic(), 0.0)) is not False
        except Exception as error:  # noqa: BLE001 - a processor is code of the user's
            log.warning("%s could not be flushed: %s", self.name, type(error).__name__)
            return False


def _end_with_worker(end: Callable[[], None]) -> None:
    """End with a process of `multiprocessing`, too: one that was forked ends without what `atexit` would do."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, end, exitpriority=0)


def _suppress_instrumentation() -> None:
    """Let an application's own instrumentation make no spans of the requests of this thread: these carry spans."""
    from opentelemetry import context  # noqa: PLC0415 - in the thread

    context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: SLF001, FBT003 - as its SDK does
