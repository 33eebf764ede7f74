"""Whether a run that begins now is sent live: suppressed tracing, OpenTelemetry's sampler variables, the application's decision."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from playhead.spans.destination import require_opentelemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler

_SAMPLER: Final = "OTEL_TRACES_SAMPLER"


def is_sent(run_id: str) -> bool:
    """Return whether a run that begins in this context is sent live. The whole run is sent, or nothing of it.

    A run under `suppress_tracing` is not. Else the sampler of the variables decides, and without one the application's current span.

    Raises:
        MissingDependencyError: a sampler is set, and its library is not installed.
    """
    if is_suppressed():
        return False
    if name := os.environ.get(_SAMPLER):
        return _is_sampled(run_id, _sampler(name, os.environ.get(f"{_SAMPLER}_ARG")))
    trace: Any = sys.modules.get("opentelemetry.trace")
    outer = trace.get_current_span().get_span_context() if hasattr(trace, "use_span") else None
    return outer is None or not outer.is_valid or outer.trace_flags.sampled


def is_suppressed() -> bool:
    """Return whether this code runs under `suppress_tracing`."""
    context: Any = sys.modules.get("opentelemetry.context")
    if not hasattr(context, "detach"):  # never loaded, or just being loaded by a thread
        return False
    return bool(context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY))  # noqa: SLF001 - as the libraries read it


@lru_cache(maxsize=1)
def _sampler(_name: str, _argument: str | None) -> Sampler:
    """Return the sampler of these values of the variables. OpenTelemetry's SDK reads them, and logs an invalid value once."""
    require_opentelemetry()
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - for programs that set a sampler
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same

    return TracerProvider(resource=Resource.get_empty(), shutdown_on_exit=False).sampler


def _is_sampled(run_id: str, sampler: Sampler) -> bool:
    from opentelemetry import context, trace  # noqa: PLC0415 - the sampler has loaded it
    from opentelemetry.sdk.trace.sampling import Decision  # noqa: PLC0415 - the same

    from playhead.spans.current import ROOT, trace_id_of  # noqa: PLC0415 - the same

    outer = trace.get_current_span().get_span_context()
    trace_id = outer.trace_id if outer.is_valid else trace_id_of(run_id)
    return sampler.should_sample(context.get_current(), trace_id, ROOT).decision is Decision.RECORD_AND_SAMPLE
