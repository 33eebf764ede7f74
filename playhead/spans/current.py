"""The ids of spans, and the current span while an agent, a request or the body of a tool runs.

Ids are computed from the run id, so a span that is sent twice has the same id both times, and the application's own spans nest
beneath one that is sent later. Loads nothing but the API of OpenTelemetry, because an agent waits for it.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from opentelemetry import context, propagate, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from playhead.trace.format import ulid_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

Operation = Literal["agent", "request", "call"]
"""What an agent's code can run inside."""

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
ROOT = "agent:root"
"""The operation of a run's outermost span."""


@lru_cache(maxsize=64)
def trace_id_of(run_id: str) -> int:
    """Return the 128 bits of the run's ULID; for a run id that is not a ULID, the first 128 of its SHA-256."""
    return ulid_number(run_id) or _hashed(run_id, 16)


@lru_cache(maxsize=256)  # of an open span it is asked again
def span_id_of(run_id: str, operation: str) -> int:
    """Return the first 8 bytes of the SHA-256 over the run and its operation."""
    return _hashed(f"{run_id}\n{operation}", 8)


def _hashed(text: str, size: int) -> int:
    """Return the first bytes of a SHA-256 as a number; never 0, which is not a valid id."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]) or 1


def root_span_of(run_id: str, trace_id: str | None = None) -> SpanContext:
    """Return the outermost span of another run; `trace_id` is the application's trace, if the run joined one."""
    trace = parsed(trace_id) or trace_id_of(run_id)
    return SpanContext(trace, span_id_of(run_id, ROOT), is_remote=True, trace_flags=SAMPLED)


def context_of(trace_id: str | None, span_id: str | None, *, remote: bool) -> SpanContext | None:
    """Return the span with these two hexadecimal ids; None when an id is not valid."""
    trace, span = parsed(trace_id), parsed(span_id, 16)
    return SpanContext(trace, span, is_remote=remote, trace_flags=SAMPLED) if trace and span else None


def parsed(number: str | None, digits: int = 32) -> int:
    """Return an id of this many hexadecimal digits as a number; 0, which is not a valid id, for anything else."""
    return int(number, 16) if number and re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", number) else 0


def operation_of(kind: Operation, owner: str, name: str = "") -> str:
    """Return the operation of a span: an agent, the request `number.attempt` of an owner, or a call by its id."""
    return f"agent:{owner}" if kind == "agent" else f"{'llm' if kind == 'request' else 'tool'}:{owner}:{name}"


@dataclass
class _Inside(AbstractContextManager[None]):
    """Makes a span the current one for a while; a generator would take twice as long."""

    span: Span

    def __enter__(self) -> None:
        self._token = context.attach(set_span_in_context(self.span))

    def __exit__(self, *_: object) -> None:
        context.detach(self._token)


class CurrentSpans:
    """Makes the spans of a run current by their ids: enough for spans that Playhead sends itself."""

    def __init__(self, run_id: str, *, sampled: bool = True) -> None:
        self._run_id = run_id
        outer = trace.get_current_span().get_span_context()
        self._trace_id = outer.trace_id if outer.is_valid else trace_id_of(run_id)
        self._flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)

    def current(self, kind: Operation, owner: str, name: str) -> AbstractContextManager[None]:
        """Make the span of an agent, a request or a call the current one."""
        return _Inside(self._span(span_id_of(self._run_id, operation_of(kind, owner, name))))

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
