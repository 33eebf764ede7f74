"""Converts events to OpenInference spans and delivers them to a collector. Needs the extra `otel`, loaded on first use.

live_export("http://localhost:4318")          # or OTEL_EXPORTER_OTLP_ENDPOINT, and nothing in the program
export_to(provider)                           # through a tracer provider that is not the global one
spans_of(load_recording("latest").records)    # the spans of a recorded run
"""

from playhead.errors import MissingDependencyError
from playhead.trace.public import public_names

__all__, _load = public_names(__name__, f"{__file__}i")


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("openinference", "opentelemetry")):
            raise
        raise MissingDependencyError("spans need: pip install 'playhead[otel]'") from None
