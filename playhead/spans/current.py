"""The live export of this process, which the environment or the program turns on."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError
from playhead.spans.destination import (
    Destination,
    from_environment,
    is_wanted,
    named,
    other_exporters,
    require_opentelemetry,
)
from playhead.spans.live import LiveExport
from playhead.spans.notices import Again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.trace import SpanProcessor

    from playhead.spans.delivery import Sink
    from playhead.spans.masking import SpanOptions
    from playhead.spans.run import SpanBuilder
    from playhead.trace.recorder import Recorder, Subscriptions

log = logging.getLogger("playhead")

_ELSEWHERE: Final = Again("--to URL", "a processor is handed no recorded run, but a collector can be sent all of it")


class _Current:
    """The export of this process."""

    export: LiveExport | None = None
    registered = False
    lock = threading.Lock()
    refused = False
    """Whether a warning was logged that what the environment names is impossible."""


def live_export(
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    service_name: str | None = None,
    options: SpanOptions | None = None,
) -> LiveExport:
    """Send the spans of the runs that begin in this process from now on, while they are running.

    Runs are sent without this call, too, when `OTEL_EXPORTER_OTLP_ENDPOINT` is set; it is for programs that name the endpoint
    themselves, or that `flush` and `shutdown`. No run waits for it, and none fails because of it.

    Args:
        endpoint: the collector, such as `http://localhost:4318`; None: as the environment says. Without either, nothing
            is sent.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`; never shown.
        service_name: `service.name` of the spans; None: as the environment or the application's own tracing says, or
            `playhead`.
        options: what the spans show.

    Raises:
        UsageError: the endpoint is no URL, a variable has an invalid value, or other spans are exported already.
    """
    destination = named(endpoint, headers) if endpoint is not None else from_environment() if is_wanted() else None
    if destination is None:
        nothing = LiveExport("nowhere", _never)
        nothing.shutdown()
        return nothing
    header = " --header NAME=env:VARIABLE" if headers else ""
    again = Again() if endpoint is None else Again(f"--resume --to {destination.name}{header}")
    return _begin(_to(destination, service_name, options, again))


def export_to(processor: SpanProcessor, *, options: SpanOptions | None = None) -> LiveExport:
    """Hand the spans of the runs that begin in this process from now on to an application's own span processor.

    Its `on_end` is called from Playhead's thread. Whether the spans arrive, only the processor knows: no cursor is kept.
    A recorded run cannot be handed to it later; `playhead export RUN --to URL` sends it to a collector, as a whole.

    Raises:
        UsageError: other spans are exported already.
    """

    def connect() -> tuple[Sink, Callable[[], SpanBuilder]]:
        from playhead.spans.delivery import ToProcessor  # noqa: PLC0415 - in the thread

        return ToProcessor(processor), _builders(None, options)

    name = f"the span processor {type(processor).__name__}"
    return _begin(LiveExport(name, connect, again=_ELSEWHERE, on_flush=lambda s: processor.force_flush(int(s * 1000))))


def export_run(run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> None:
    """Send a run that begins now, if the program or the environment turned that on; never raises."""
    try:
        export = _Current.export or _automatic()
        if export is not None and not _is_suppressed():
            export.add(run_id, recorder, subscriptions)
    except Exception as error:  # noqa: BLE001 - an agent does not fail because of its spans
        _refuse(str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}")


def _automatic() -> LiveExport | None:
    """Return the live export that the environment turns on, if it does."""
    if _Current.refused:
        return None
    if not is_wanted():
        if other := other_exporters():
            _refuse(other)
        return None
    with _Current.lock:  # several first runs may begin at once
        destination = from_environment()
        if _Current.export is None and destination is not None:
            return _begin(_to(destination, None, None, Again()))
        return _Current.export


def _refuse(why: str) -> None:
    if not _Current.refused:
        _Current.refused = True
        log.warning("spans are not exported: %s", why)


def _to(destination: Destination, service: str | None, options: SpanOptions | None, again: Again) -> LiveExport:
    def connect() -> tuple[Sink, Callable[[], SpanBuilder]]:
        require_opentelemetry()
        from playhead.spans.delivery import Otlp  # noqa: PLC0415 - in the thread

        return Otlp(destination), _builders(service, options)

    return LiveExport(destination.name, connect, destination, again=again)


def _builders(service: str | None, options: SpanOptions | None) -> Callable[[], SpanBuilder]:
    from playhead.spans.masking import SpanOptions  # noqa: PLC0415 - in the thread
    from playhead.spans.run import SpanBuilder  # noqa: PLC0415 - the same

    return partial(SpanBuilder, options or SpanOptions(), service=service)


def _begin(export: LiveExport) -> LiveExport:
    if _Current.export is not None and not _Current.export.stopped:
        raise UsageError(f"spans are exported to {_Current.export.name} already; call its shutdown() first")
    _Current.export = export
    if not _Current.registered:
        _Current.registered = True
        atexit.register(at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_parent)
    return export


def at_exit() -> None:
    """Deliver what is left, for two seconds at most, and warn of what could not be."""
    if _Current.export is not None:
        _Current.export.shutdown()


def _forget_parent() -> None:
    """Begin anew in a forked child: its own runs are sent, its parent's never."""
    _Current.lock = threading.Lock()
    if _Current.export is not None:
        _Current.export.forget_parent()


def _is_suppressed() -> bool:
    """Return whether the run begins under `suppress_tracing`, or inside a trace that its application does not sample."""
    context, trace = sys.modules.get("opentelemetry.context"), sys.modules.get("opentelemetry.trace")
    if context is None or trace is None:  # an application that never loaded them suppresses nothing
        return False
    outer = trace.get_current_span().get_span_context()
    suppressed = context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY)  # noqa: SLF001 - as the libraries read it
    return bool(suppressed) or (outer.is_valid and not outer.trace_flags.sampled)


def _never() -> tuple[Sink, Callable[[], SpanBuilder]]:
    raise UsageError("there is nowhere to export to")
