"""Ids of traces and spans: they follow from the run, so that whatever is sent twice is the same span both times."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanContext, TraceFlags

from playhead.trace.run_ids import ulid_number

if TYPE_CHECKING:
    from playhead.trace.events import RunStarted

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
ROOT = "agent:root"
"""The operation of a run's outermost span."""


@lru_cache(maxsize=64)
def trace_id_of(run_id: str) -> int:
    """Return the 128 bits of the run's ULID; for an id that is none, the first 128 of its SHA-256."""
    return ulid_number(run_id) or int.from_bytes(hashlib.sha256(_bytes(run_id)).digest()[:16]) or 1


def span_id_of(run_id: str, operation: str) -> int:
    """Return the first 8 bytes of the SHA-256 over the run and what it did; never 0, which would be no span."""
    return int.from_bytes(hashlib.sha256(_bytes(f"{run_id}\n{operation}")).digest()[:8]) or 1


def trace_of(started: RunStarted) -> int:
    """Return the trace that a run belongs to: its own, unless it ran inside an application's."""
    joined = started.telemetry and parsed(started.telemetry.trace_id)
    return joined or trace_id_of(started.run_id)


def outer_span(started: RunStarted) -> SpanContext | None:
    """Return the application's span in which the run began, if there was one."""
    telemetry = started.telemetry
    if telemetry is None:
        return None
    trace_id, span_id = parsed(telemetry.trace_id), parsed(telemetry.span_id, 16)
    if not trace_id or not span_id:
        return None
    return SpanContext(trace_id, span_id, is_remote=telemetry.remote, trace_flags=SAMPLED)


def root_span_of(run_id: str, trace_id: str | None = None) -> SpanContext:
    """Return the outermost span of another run, which is in this trace when it was not in its own."""
    trace = parsed(trace_id) or trace_id_of(run_id)
    return SpanContext(trace, span_id_of(run_id, ROOT), is_remote=True, trace_flags=SAMPLED)


def parsed(number: str | None, digits: int = 32) -> int:
    """Return the id that so many hexadecimal digits are; 0, which is no id, when they are not."""
    if number is None or len(number) != digits:
        return 0
    try:
        return int.from_bytes(bytes.fromhex(number))
    except ValueError:
        return 0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
