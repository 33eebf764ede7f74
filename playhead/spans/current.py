"""The live export of this process: asked for by the environment, or by the program."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

from playhead.errors import UsageError
from playhead.spans.destination import (
    Destination,
    from_environment,
    is_wanted,
    named,
    not_offered,
    require_opentelemetry,
)
from playhead.spans.live import LiveExport
from playhead.spans.notices import Again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.sdk.trace import SpanProcessor

    from playhead.spans.builder import SpanBuilder
    from playhead.spans.delivery import Sink
    from playhead.spans.masking import SpanOptions
    from playhead.trace.recorder import Recorder, Subscriptions

log = logging.getLogger("playhead")

_ELSEWHERE: Final = Again("--to URL", "a processor is handed no recorded run, but a collector can be sent all of it")


class _Current:
    """What sends the runs of this process."""

    export: LiveExport | None = None
    registered = False
    lock = threading.Lock()
    refused = False
    """Whether it was said that the environment asks for what cannot be."""


def live_export(
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    service_name: str | None = None,
    options: SpanOptions | None = None,
) -> LiveExport:
    """Send the spans of the runs that begin in this process from now on, while they go on.

    Without it they are sent, too, when `OTEL_EXPORTER_OTLP_ENDPOINT` is set; it is for programs that say where to, or
    that want to `flush` and `shutdown` themselves. No run waits for it, and none fails because of it.

    Args:
        endpoint: the collector, such as `http://localhost:4318`; None: as the environment says. Without either, nothing
            is sent.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`; never shown.
        service_name: `service.name` of the spans; None: as the environment or the application's own tracing says, or
            `playhead`.
        options: what the spans show.

    Raises:
        UsageError: the endpoint is no URL, a variable has a value that cannot be, or other spans are exported already.
    """
    destination = from_environment() if endpoint is None else named(endpoint, headers)
    if destination is None or (endpoint is None and not is_wanted()):
        return _NoExport()
    header = " --header NAME=env:VARIABLE" if headers else ""
    again = Again() if endpoint is None else Again(f"--resume --to {destination.name}{header}")
    return _begin(_to(destination, service_name, options, again))


def export_to(processor: SpanProcessor, *, options: SpanOptions | None = None) -> LiveExport:
    """Hand the spans of the runs that begin in this process from now on to a span processor of an application's own.

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
    """Send a run that begins now, if the program or the environment asks for it; never raises."""
    try:
        export = _Current.export
        if export is None and not _Current.refused:
            export = _asked_for()
        if export is not None and not _is_suppressed():
            export.add(run_id, recorder, subscriptions)
    except Exception as error:  # noqa: BLE001 - an agent does not fail because of its spans
        _refuse(f"{type(error).__name__}: {error}")


def _asked_for() -> LiveExport | None:
    """Return the live export that the environment asks for; what it asks for that there is not, is said once."""
    if is_wanted():
        with _Current.lock:  # several first runs may begin at once
            return _Current.export or _automatic()
    if other := not_offered():
        _refuse(other)
    return None


def _automatic() -> LiveExport | None:
    try:
        destination = from_environment()
    except UsageError as error:
        _refuse(str(error))
        return None
    return None if destination is None else _begin(_to(destination, None, None, Again()))


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
    from playhead.spans.builder import SpanBuilder  # noqa: PLC0415 - in the thread
    from playhead.spans.masking import SpanOptions  # noqa: PLC0415 - the same

    shown = options or SpanOptions()
    return lambda: SpanBuilder(shown, service=service)


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
    """Deliver what is left, for two seconds at most, and say what could not be."""
    if _Current.export is not None:
        _Current.export.shutdown()


def _forget_parent() -> None:
    """Begin anew in a forked child: its own runs are sent when it has some, its parent's never."""
    _Current.lock = threading.Lock()
    if _Current.export is not None:
        _Current.export.forget_parent()


def _is_suppressed() -> bool:
    """Return whether the run begins under `suppress_tracing`, or inside a trace that its application does not sample."""
    context, trace = sys.modules.get("opentelemetry.context"), sys.modules.get("opentelemetry.trace")
    if context is None or trace is None:  # who never loaded them has suppressed nothing
        return False
    outer = trace.get_current_span().get_span_context()
    suppressed = context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY)  # noqa: SLF001 - as the libraries read it
    return bool(suppressed) or (outer.is_valid and not outer.trace_flags.sampled)


class _NoExport(LiveExport):
    """Stands where nothing is exported."""

    def __init__(self) -> None:
        super().__init__("nowhere", _never)
        self._stopped = True


def _never() -> tuple[Sink, Callable[[], SpanBuilder]]:
    raise UsageError("there is nowhere to export to")
