"""Spans through the application's own tracing, live, as those of any instrumentor: its `TracerProvider` starts and ends them.

Its sampler, resource, limits and processors hold, and delivery is the provider's: the trace says that the spans were handed over.
While an agent, a request to a model or the body of a tool runs, its span is the current one, so the application's own spans nest
beneath. Ids of spans are computed from the run's id here too, so a later export sends the same spans.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, set_span_in_context

from playhead.errors import UsageError
from playhead.spans.builder import SpanBuilder
from playhead.spans.current import ROOT, CurrentSpans, span_id_of
from playhead.spans.environment import is_suppressed
from playhead.spans.run_export import resend_command
from playhead.spans.tree import SCOPE, SpanTree
from playhead.trace.events import (
    FactRecorded,
    KernelStateSnapshot,
    MessageAdded,
    RunCompleted,
    RunStarted,
    SpansHandedOver,
)
from playhead.trace.values import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.trace import Span, Status, Tracer, TracerProvider

    from playhead.spans.masking import SpanOptions
    from playhead.spans.tree import OpenSpan
    from playhead.trace.line import Record
    from playhead.trace.recorder import Recorder, Subscriptions

_WRAPPERS: Final = 5
"""Largest number of wrappers around the tracer of OpenTelemetry's SDK."""
_AT_THE_END_S: Final = 0.1
"""Seconds that the end of a run may wait until its spans have ended, so that a flush by the application finds them."""
_NO_START: Final = (MessageAdded, FactRecorded, KernelStateSnapshot)
"""Frequent events that start and end no span."""
_GATHER_S: Final = 0.02
"""Seconds that the thread lets events gather: to wake it for each span would cost the agent as much as the span."""
log = logging.getLogger("playhead")


class ApplicationSpans(CurrentSpans):
    """The spans of one run in the application's own tracing.

    The code that records an event starts a span; a thread of the export describes and ends it, because the provider may send it
    at once, and a collector that is down must not hold up the agent.
    """

    def __init__(self, run_id: str, export: HandedOver, recorder: Recorder) -> None:
        super().__init__(run_id)
        self._export, self.recorder = export, recorder
        self._lock = threading.RLock()
        self._live: dict[int, Span] = {}
        self._records: list[Record] = []
        tree, limit = partial(_LiveTree, live=self._live), export.attribute_limit
        self._starts = SpanBuilder(export.options, tree=partial(tree, tracer=export.tracer, describes=False))
        self.ends = SpanBuilder(export.options, tree=tree, attribute_limit=limit)

    def take(self, record: Record) -> None:
        """Start the spans that an event opens, and hand it to the thread; the first event says that spans are handed over."""
        kind = type(record.event)  # to ask a model with `isinstance` takes ten times as long
        with self._lock:
            self._records.append(record)
            if (kind not in _NO_START and self._starts.feed(record)) or kind is RunCompleted:
                self._export.events.put((self, self._records))
                self._records = []
        if kind is RunStarted and (root := self._live.get(span_id_of(self._run_id, ROOT))) is not None:
            at = root.get_span_context()
            given = {name: to_json(value) for name, value in _given(root).items()}
            trace_id, sampled = f"{at.trace_id:032x}", at.trace_flags.sampled
            handed_over = SpansHandedOver(to=self._export.name, trace_id=trace_id, sampled=sampled, attributes=given)
            self.recorder.emit(handed_over, record.owner, record.iteration)
        elif kind is RunCompleted:
            self._export.catch_up(_AT_THE_END_S)

    def _span(self, number: int) -> Span:
        return self._live.get(number) or trace.get_current_span()


@dataclass(kw_only=True)
class _LiveTree(SpanTree):
    """The open spans of a run, which are also open in the application's tracing: this tree starts them, or ends them."""

    live: dict[int, Span]
    tracer: Tracer | None = None
    """Starts the spans; None: this tree ends them."""

    def _begun(self, span: OpenSpan) -> None:
        if self.tracer is None:
            return
        above = None if span.above is None else self.live.get(span.above.context.span_id)
        inside = None if above is None else set_span_in_context(above)
        _next.number = number = span.context.span_id
        try:
            live = self.tracer.start_span(span.name, inside, span.span_kind, start_time=span.start)
        finally:
            _next.number = None
        self.live[number] = live
        if span.above is None:
            self.join(live.get_span_context().trace_id, _given(live))

    def _readable(self, span: OpenSpan, *how: Any) -> ReadableSpan:  # noqa: ANN401 - of a SpanTree
        return super()._readable(span, *how) if self.describes else _ENDED_ELSEWHERE

    def _ended(self, span: OpenSpan, end: int, status: Status, attributes: dict[str, Any]) -> ReadableSpan:
        live = self.live.pop(span.context.span_id, INVALID_SPAN)  # a broken processor kept it from starting
        if live.is_recording():
            for event in span.events:
                live.add_event(event.name, event.attributes, event.timestamp)
            for link in span.links:
                live.add_link(link.context, link.attributes)
            live.set_attributes(attributes)
            live.set_status(status)
        live.end(end)
        return _ENDED_ELSEWHERE


_ENDED_ELSEWHERE: Final = ReadableSpan("")


class HandedOver:
    """The export through a tracer provider of the application, which delivers the spans."""

    def __init__(self, provider: TracerProvider, options: SpanOptions | None = None) -> None:
        """Prepare; no thread starts before the first run.

        Args:
            provider: starts and ends the spans.
            options: what the spans show.

        Raises:
            UsageError: it is no provider, or not built on OpenTelemetry's SDK.
        """
        self.name = f"{type(provider).__module__}.{type(provider).__qualname__}"
        self.tracer, self.attribute_limit = _tracer_of(provider)
        self.options = options
        self.stopped = False
        """Whether later runs are no longer handed over."""
        self.provider = provider
        self.forget_parent()

    def forget_parent(self) -> None:
        """Forget all events, because in a forked child they belong to the parent."""
        self.events: SimpleQueue[tuple[ApplicationSpans, list[Record]] | threading.Event] = SimpleQueue()
        """What the thread works off: the events of a run up to one that closes spans, and those who wait."""
        self._hurry = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._runs: set[ApplicationSpans] = set()
        self._has_warned = False

    # --- the agent's side -------------------------------------------------------------------------------------------

    def add(self, run_id: str, recorder: Recorder, subscriptions: Subscriptions) -> CurrentSpans | None:
        """Hand over the spans of a run that begins now."""
        if self.stopped:
            self._warn("shutdown() was called", ())
        if self.stopped or is_suppressed():
            return None
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="playhead-spans", daemon=True)
                self._thread.start()
        spans = ApplicationSpans(run_id, self, recorder)
        self._runs.add(spans)
        subscriptions.add(None, spans.take)
        return spans

    def catch_up(self, timeout_s: float) -> bool:
        """Hand over every span that has ended; return whether that was done in time."""
        reached = threading.Event()
        self.events.put(reached)
        self._hurry.set()
        return self._thread is None or reached.wait(timeout_s)

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Hand over every span that has ended, and flush the provider; return whether it reports that both were done in time."""
        late_at = time.monotonic() + timeout_s
        if not self.catch_up(timeout_s):
            return False
        left_ms = int(max(late_at - time.monotonic(), 0.0) * 1000)
        return getattr(self.provider, "force_flush", bool)(left_ms) is not False

    def shutdown(self, timeout_s: float = 2.0) -> None:
        """Hand over the remaining spans, and warn about those that are left. Later runs are not handed over."""
        if not self.stopped:
            self.stopped = True
            if not self.catch_up(timeout_s):
                self._warn("it did not take the last spans in time", [*self._runs])

    # --- the thread -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        item: tuple[ApplicationSpans, list[Record]] | threading.Event | None
        while item := self.events.get():
            self._hurry.wait(_GATHER_S)
            while item is not None:
                if isinstance(item, threading.Event):
                    self._hurry.clear()
                    item.set()
                else:
                    self._end_spans(*item)
                item = None if self.events.empty() else self.events.get()

    def _end_spans(self, spans: ApplicationSpans, records: list[Record]) -> None:
        for record in records:
            try:
                spans.ends.feed(record)
            except Exception as error:  # noqa: BLE001 - a span processor is the application's code
                self._warn(f"it raised {type(error).__name__} for a span", [spans])
        if type(records[-1].event) is RunCompleted:
            self._runs.discard(spans)

    def _warn(self, why: str, runs: Sequence[ApplicationSpans]) -> None:
        """Warn once about spans that are not handed over, with the command that sends them."""
        if not self._has_warned:
            self._has_warned = True
            paths = [each.recorder.writer.path for each in runs if each.recorder.writer is not None]
            how = f"{why}; {resend_command(paths, '--to URL')}" if paths else why
            log.warning("spans are not handed over to %s: %s", self.name, how)


def _given(root: Span) -> Mapping[str, Any]:
    """Return the attributes that the application's tracing gave to the agent's span when it started."""
    return {**(getattr(root, "attributes", None) or {})}


# --- the provider -----------------------------------------------------------------------------------------------------


def _tracer_of(provider: TracerProvider) -> tuple[Tracer, float]:
    """Return the provider's tracer for Playhead's spans, which lets them have their own ids, and its limit of attributes.

    Raises:
        UsageError: the provider is not built on OpenTelemetry's SDK.
    """
    if not hasattr(provider, "get_tracer"):
        raise UsageError(
            f"spans cannot be handed to {type(provider).__name__}: give a TracerProvider (with your processor)"
        )
    inner: Any
    inner = tracer = provider.get_tracer(SCOPE.name, SCOPE.version)
    for _ in range(_WRAPPERS):  # Phoenix and Logfire wrap the SDK's tracer
        wrapped = getattr(inner, "__wrapped__", None) or getattr(inner, "tracer", None)
        if wrapped is None:
            break
        inner = wrapped
    if type(inner) is NoOpTracer:  # that of a disabled SDK
        return tracer, inf
    if not isinstance(inner, SdkTracer):
        name = f"{type(provider).__module__}.{type(provider).__qualname__}"
        raise UsageError(f"{name} is not built on the SDK of OpenTelemetry")
    if not isinstance(inner.id_generator, _Ids):
        inner.id_generator = _Ids(inner.id_generator)
    return tracer, inner._span_limits.max_span_attributes or inf  # noqa: SLF001 - the SDK says it nowhere else


_next = threading.local()
"""The id of the span that this thread starts next."""


class _Ids(IdGenerator):
    """Gives Playhead's spans their own ids; traces get theirs from the application's generator."""

    def __init__(self, inner: IdGenerator) -> None:
        self._inner = inner

    def generate_span_id(self) -> int:
        """Return the id of the span that this thread starts."""
        return getattr(_next, "number", None) or self._inner.generate_span_id()

    def generate_trace_id(self) -> int:
        """Return an id for a trace."""
        return self._inner.generate_trace_id()

    def is_trace_id_random(self) -> bool:
        """Return whether the ids of traces are random."""
        return self._inner.is_trace_id_random()
