"""The current span while an agent, a request or the body of a tool runs, so that the application's own spans nest beneath.

Loads nothing but the API of OpenTelemetry, because an agent waits for it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import context, propagate, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from playhead.spans.ids import operation_of, span_id_of, trace_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.trace import Span

    from playhead.spans.ids import Operation


class CurrentSpans:
    """Makes the spans of a run current by their ids: enough for spans that Playhead sends itself."""

    def __init__(self, run_id: str, *, sampled: bool = True) -> None:
        self._run_id = run_id
        outer = trace.get_current_span().get_span_context()
        self._trace_id = outer.trace_id if outer.is_valid else trace_id_of(run_id)
        self._flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)

    @contextmanager
    def current(self, kind: Operation, owner: str, name: str) -> Iterator[None]:
        """Make the span of an agent, a request or a call the current one."""
        span = self._span(span_id_of(self._run_id, operation_of(kind, owner, name)))
        token = context.attach(set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)

    @staticmethod
    def carried() -> dict[str, str]:
        """Return the current span and baggage as text for another process, in the form that the application has configured."""
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return carrier

    def _span(self, number: int) -> Span:
        return NonRecordingSpan(SpanContext(self._trace_id, number, is_remote=False, trace_flags=self._flags))


def enter(carrier: Mapping[str, str]) -> None:
    """Make a carried span the current one of this process."""
    context.attach(propagate.extract(carrier))
