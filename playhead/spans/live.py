"""Live export: one thread sends the spans of this process's runs while they are running. The environment or the program starts it.

The thread reads the traces as they are written, so an event costs the agent nothing, and when a collector is down, undelivered
events wait in the file.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from playhead.errors import UsageError
from playhead.spans.destination import (
    Destination,
    is_for_grpc,
    live_destination,
    named,
    reason_of,
    require_opentelemetry,
)
from playhead.spans.environment import is_sent, say_unused
from playhead.spans.run_export import RunExport, message, notices, resend_command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from opentelemetry.trace import TracerProvider

    from playhead.spans.application import HandedOver
    from playhead.spans.builder import SpanBuilder
    from playhead.spans.current import CurrentSpans
    from playhead.spans.delivery import Pump
    from playhead.spans.masking import SpanOptions
    from playhead.trace.recorder import Recorder, Subscriptions

log = logging.getLogger("playhead")

_POLL_S: Final = 0.5
"""Seconds between two reads of the traces of active runs."""
_EXIT_S: Final = 2.0
"""Seconds that the end of a process may be delayed."""
_TO_COUNT_S: Final = 0.4
"""Seconds of that delay reserved for counting undelivered spans."""
_WARN_AFTER_S: Final = 30.0
"""Seconds until a warning about a destination that accepts nothing; a restart of the destination takes less."""
MAX_RUNS: Final = 10_000
"""Largest number of runs waiting for a destination; later runs are left to `playhead export --resume`."""


class LiveExport:
    """Sends the runs that begin in this process from now on; never delays or fails a run."""

    def __init__(
        self,
        to: Destination,
        *,
        service: str | None = None,
        options: SpanOptions | None = None,
        resend: str = "--resume",
    ) -> None:
        """Prepare; nothing is imported and no thread starts before the first run.

        Args:
            to: the collector.
            service: `service.name` of the spans.
            options: what the spans show.
            resend: the options with which `playhead export` sends undelivered spans.
        """
        self.name = to.name
        self.stopped = False
        """Whether live export has stopped."""
        self._to = to
        self.service, self._options, self._resend = service, options, resend
        self.forget_parent()

    def forget_parent(self) -> None:
        """Forget all runs, because in a forked child they belong to the parent."""
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._runs: list[RunExport] = []
        """The runs that are not done, in the order in which they began. Agents append to it, the thread removes from it."""
        self._pump: Pump | None = None
        self._make: type[SpanBuilder] | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._changed = threading.Condition()
        self._hurry = self._has_warned = self._is_full = False
        self._end_at = 0.0
        self._broken: str | None = None

    # --- the agent's side -------------------------------------------------------------------------------------------

    def add(self, run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> CurrentSpans | None:
        """Send a run that begins now."""
        if not is_sent(run_id):
            return None
        if self.stopped or recorder.writer is None:
            self._turn_away(
                "shutdown() was called" if self.stopped else "those with trace=None, which need a tracer provider"
            )
            return None
        writer = recorder.writer
        run = RunExport(writer.path, self._builder, self._to, lambda: recorder.sealed, next_seq=lambda: writer.tail.seq)
        subscriptions.add("run-started", lambda _: self._add(run))  # the file exists only from then on
        return _current_spans(run_id)

    def _add(self, run: RunExport) -> None:
        if self._broken is not None or len(self._runs) >= MAX_RUNS:
            self._turn_away(self._why_not() or "too many runs wait", run.path)
            return
        self._runs.append(run)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="playhead-export", daemon=True)
                self._thread.start()
                if (util := sys.modules.get("multiprocessing.util")) is not None:
                    util.Finalize(None, self.shutdown, exitpriority=0)  # a forked worker ends without `atexit`
        self._wake.set()

    @property
    def pending(self) -> int:
        """Runs that may have undelivered spans."""
        return sum(not run.done for run in [*self._runs])

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Deliver every span that is complete now; return whether that was done in time.

        Events recorded after the call are not waited for, so a busy application does not delay it.
        """
        if self._thread is None or not self._thread.is_alive():
            return not self.pending
        marks = [(run, run.next_seq() - 1) for run in [*self._runs]]
        with self._changed:
            self._hurry = True
            self._wake.set()
            done = self._changed.wait_for(lambda: all(run.has_settled(seq) for run, seq in marks), timeout_s)
        return done and all(run.failure is None for run, _ in marks)

    def shutdown(self, timeout_s: float = _EXIT_S) -> None:
        """Deliver the remaining spans, and warn about undelivered ones. Later runs are not sent; a second call does nothing."""
        with self._ending:  # of two threads that end the process, the second waits for the first
            if not self.stopped:
                self._end(timeout_s)

    def _turn_away(self, why: str, path: Path | None = None) -> None:
        """Warn once that new runs are not sent, and how to send them."""
        if not self._is_full:
            self._is_full = True
            sends = f"; {resend_command([path], self._resend, and_later=True)}" if path else ""
            log.warning("runs that begin now are not sent to %s (%s)%s", self.name, why, sends)

    def _builder(self) -> SpanBuilder:
        assert self._make is not None  # noqa: S101 - imported here, the end of a forked process could wait for ever
        return self._make(self._options, service=self.service)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            require_opentelemetry()  # in the thread, as all that follows
            from opentelemetry import context  # noqa: PLC0415

            from playhead.spans.builder import SpanBuilder  # noqa: PLC0415
            from playhead.spans.delivery import Otlp, Pump  # noqa: PLC0415

            sink, self._make = Otlp(self._to), SpanBuilder
            context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: SLF001, FBT003 - its own requests
            pump = self._pump = Pump(sink, self._runs)
            while not self.stopped:
                self._round(pump)
                self._wait(pump)
            self._hurry = True
            self._round(pump)
            sink.close()
        except Exception as error:  # noqa: BLE001 - live export ends, and nothing else
            self._break(reason_of(error))

    def _round(self, pump: Pump) -> None:
        """Send until nothing is left, the destination accepts nothing, or the process ends."""
        while (left := self._end_at - time.monotonic() if self.stopped else None) is None or left > 0:
            if self._hurry:
                self._hurry, pump.again_at = False, 0.0
            step = pump.step(timeout_s=left)
            for run in pump.finished():
                self._warn_of_run(run)
            self._warn_of_destination(pump)
            with self._changed:
                self._changed.notify_all()
            if step != "sent":
                return

    def _wait(self, pump: Pump) -> None:
        stuck_s = pump.again_at - time.monotonic()
        self._wake.wait(stuck_s if stuck_s > 0 else _POLL_S if self._runs else None)
        self._wake.clear()

    def _warn_of_destination(self, pump: Pump) -> None:
        """Warn once about a destination that accepts nothing."""
        stopped = pump.stopped
        is_lasting = stopped is not None and (
            stopped.meaning == "unusable" or time.monotonic() - pump.failing_since > _WARN_AFTER_S
        )
        if stopped and is_lasting and not (self._has_warned or self.stopped):
            log.warning("spans cannot be delivered to %s now: %s; the traces keep them", self.name, stopped.reason)
        self._has_warned = stopped is not None and (self._has_warned or is_lasting)

    def _warn_of_run(self, run: RunExport) -> None:
        """Log the problems of a run whose export finished or was given up."""
        for notice in notices(run, self.name):
            log.warning("run %s: %s", run.run_id, notice)
        if run.failure is not None and run.path.exists():
            log.warning("run %s: %s", run.run_id, resend_command([run.path], self._resend))

    def _break(self, why: str) -> None:
        self._broken = why
        log.warning("spans are not exported to %s: %s", self.name, why)

    # --- both -------------------------------------------------------------------------------------------------------

    def _end(self, timeout_s: float) -> None:
        started = time.monotonic()
        self._end_at = started + max(timeout_s - _TO_COUNT_S, timeout_s / 2)
        self.stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(max(self._end_at - time.monotonic(), 0.0))
        runs = [*self._runs]
        for run in runs:
            self._warn_of_run(run)
            run.release()
        left = [(run, run.count_rest(started + timeout_s)) for run in runs if not run.done]
        if undelivered := [(run, number) for run, number in left if number != 0]:
            log.warning("%s", message(undelivered, self.name, self._why_not(), self._resend))

    def _why_not(self) -> str | None:
        """Return why spans were not delivered, if known."""
        reason = self._broken or (self._pump.stopped.reason if self._pump and self._pump.stopped else None)
        if reason is None and self._thread is not None and self._thread.is_alive():
            return "it did not answer in time" if self._pump else "what sends them was not loaded in time"
        return reason


def _current_spans(run_id: str) -> CurrentSpans | None:
    """Return what makes the spans of a run current, if the application traces."""
    if not hasattr(sys.modules.get("opentelemetry.trace"), "use_span"):  # never loaded, or by a thread just now
        return None
    from playhead.spans.current import CurrentSpans  # noqa: PLC0415 - needs OpenTelemetry

    return CurrentSpans(run_id)


# --- turning it on ----------------------------------------------------------------------------------------------------


AnyExport = TypeVar("AnyExport", "LiveExport", "HandedOver")


class _Current:
    """The export of this process."""

    export: LiveExport | HandedOver | None = None
    """What the program or a variable has begun."""
    application: HandedOver | None = None
    """What goes through the provider that the application has configured."""
    lock = threading.Lock()
    refused = False
    """Whether a warning about an invalid environment was logged."""


def live_export(
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    service_name: str | None = None,
    options: SpanOptions | None = None,
) -> LiveExport:
    """Send the spans of the runs that begin in this process from now on, while they are running.

    With `OTEL_EXPORTER_OTLP_ENDPOINT` set, runs are sent without this call; it is for programs that name the endpoint
    themselves, or that call `flush` and `shutdown`. No run waits for it, and none fails because of it.

    Args:
        endpoint: the collector, such as `http://localhost:4318`; None: the one of the environment. Without either, nothing
            is sent.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`; never shown.
        service_name: `service.name` of the spans; None: that of the environment or of the application's own tracing, or
            `playhead`.
        options: what the spans show.

    Raises:
        UsageError: the endpoint is no URL, a variable has an invalid value, or other spans are exported already.
    """
    destination = named(endpoint, headers) if endpoint is not None else live_destination()
    if destination is None:
        nothing = LiveExport(Destination(""))
        nothing.shutdown()
        return nothing
    header = " --header NAME=env:VARIABLE" if headers else ""
    resend = "--resume" if endpoint is None else f"--resume --to {destination.name}{header}"
    return _begin(LiveExport(destination, service=service_name, options=options, resend=resend))


def export_to(provider: TracerProvider, *, options: SpanOptions | None = None) -> HandedOver:
    """Hand the spans of the runs that begin in this process from now on to an application's own tracing.

    Whether the spans arrive, only the application knows: no cursor is kept. `playhead export RUN --to URL` sends a recorded
    run to a collector, as a whole, with the same ids.

    Args:
        provider: starts and ends the spans as those of any instrumentor; the configured one needs no call.
        options: what the spans show.

    Raises:
        UsageError: other spans are exported already, or it is no provider that is built on OpenTelemetry's SDK.
    """
    from playhead.spans.application import HandedOver  # noqa: PLC0415 - needs OpenTelemetry, which is there now

    return _begin(HandedOver(provider, options))


def trace_run(run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> CurrentSpans | None:
    """Export the spans of a run that begins now; never raises.

    An endpoint that the program or the environment names comes first: Playhead sends the spans itself. Else, or if the endpoint
    is for gRPC or the run has no trace, they go through the application's tracer provider. Never both.

    Returns:
        What makes the spans of the run current; None where the application traces nothing.
    """
    try:
        is_theirs = _Current.export is None and (recorder.writer is None or is_for_grpc())  # Playhead cannot send it
        export = (is_theirs and _application()) or _automatic() or _application()
        return say_unused() if export is None else export.add(run_id, recorder, subscriptions)
    except Exception as error:  # noqa: BLE001 - an agent does not fail because of its spans
        if not _Current.refused:
            _Current.refused = True
            log.warning("spans are not exported: %s", reason_of(error))
        return None


def _application() -> HandedOver | None:
    """Return the export through the provider that the application has configured by now, if any."""
    if not hasattr(sys.modules.get("opentelemetry.sdk.trace"), "TracerProvider"):
        return None
    from opentelemetry import trace  # noqa: PLC0415 - which is there now

    from playhead.spans.application import HandedOver  # noqa: PLC0415 - the same

    provider = trace.get_tracer_provider()
    if type(provider).__module__ == trace.__name__:  # those of the API do nothing
        return None
    with _Current.lock:  # several first runs may begin at once
        if _Current.application is None or _Current.application.provider is not provider:
            _Current.application = HandedOver(provider)
            _register()
        return _Current.application


def named_service() -> str | None:
    """Return the `service_name` that the program has named for its live export, which runs record."""
    return _Current.export.service if isinstance(_Current.export, LiveExport) else None


def at_exit() -> None:
    """Deliver the remaining spans for at most two seconds, and warn about undelivered ones."""
    for export in (_Current.export, _Current.application):
        if export is not None:
            export.shutdown()


def _automatic() -> LiveExport | HandedOver | None:
    """Return the live export that the environment enables, if any."""
    with _Current.lock:  # several first runs may begin at once
        if _Current.export is None and not _Current.refused and (destination := live_destination()) is not None:
            return _begin(LiveExport(destination))
        return _Current.export


def _begin(export: AnyExport) -> AnyExport:
    if _Current.export is not None and not _Current.export.stopped:
        raise UsageError(f"spans are exported to {_Current.export.name} already; call its shutdown() first")
    _Current.export = export
    _register()
    return export


@cache
def _register() -> None:
    """Let exports end with the process, and start afresh in a forked child."""
    atexit.register(at_exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_parent)


def _forget_parent() -> None:
    """Start afresh in a forked child, which sends its own runs and none of its parent's."""
    _Current.lock = threading.Lock()
    for export in (_Current.export, _Current.application):
        if export is not None:
            export.forget_parent()
