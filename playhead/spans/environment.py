"""What the environment says about a run that begins now: whether it is sent live, and which variables nothing uses."""

from __future__ import annotations

import logging
import os
import re
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    from playhead.spans.destination import require_opentelemetry  # noqa: PLC0415 - for programs that set a sampler

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


# --- variables of services that take spans, in a process in which nothing sends any -------------------------------------

_REGISTER, _LANGFUSE = ("Phoenix", "phoenix.otel.register()"), ("Langfuse", "Langfuse()")
SERVICES: Final[Mapping[str, tuple[tuple[str, str], str]]] = {
    "PHOENIX_COLLECTOR_ENDPOINT": (_REGISTER, "{}"),
    "LANGFUSE_BASE_URL": (_LANGFUSE, "{}/api/public/otel"),
    "LANGFUSE_HOST": (_LANGFUSE, "{}/api/public/otel"),
    "LANGFUSE_PUBLIC_KEY": (_LANGFUSE, "https://cloud.langfuse.com/api/public/otel"),
    "LOGFIRE_TOKEN": (("Logfire", "logfire.configure()"), ""),
}
"""Variables that make people expect spans: the service, the line of its own package that configures a tracer provider, and the
address of the service's OTLP over HTTP, where it follows from the value; never from that of a key."""
_PLAIN: Final = re.compile(r"https?://[\w.-]+(:(?!4317\b)\d+)?(/[\w./-]*)?")
"""An address without a user, a password or a query, and not that of gRPC, which Playhead does not speak."""


@cache
def say_unused() -> None:
    """Log a warning about the services whose variables are set; once in a process, and not where tracing is turned off."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    found: dict[tuple[str, str], list[str]] = {}
    for variable in () if off else filter(os.environ.get, SERVICES):
        found.setdefault(SERVICES[variable][0], []).append(variable)
    if found:
        logging.getLogger("playhead").warning("%s", "; ".join(_said(*each, found[each]) for each in found))


def _said(service: str, line: str, variables: list[str]) -> str:
    value = os.environ[variables[0]].removesuffix("/").removesuffix("/v1/traces")
    address = SERVICES[variables[0]][1].format(value)
    where = f"={address}" if _PLAIN.fullmatch(address) else " to its OTLP over HTTP"
    key = "" if service == "Phoenix" else " and its key in OTEL_EXPORTER_OTLP_HEADERS"
    way = f"call {line} before the run, so that its tracer provider takes them, or set OTEL_EXPORTER_OTLP_ENDPOINT{where}{key}"
    return f"no spans are sent to {service} ({', '.join(variables)}): {way}"
