"""Events as OpenInference spans: pure, so that the same trace exported twice is one trace in every backend.

Needs the extra `otel`, and imports it: import this package when it is first used.
"""

from __future__ import annotations

from playhead.errors import MissingDependencyError

try:
    from playhead.trace.spans.builder import SpanBuilder, spans_of
    from playhead.trace.spans.options import SpanOptions
    from playhead.trace.spans.resource import resource_of
except ModuleNotFoundError as _error:
    if not (_error.name or "").startswith(("openinference", "opentelemetry")):
        raise
    raise MissingDependencyError("spans need: pip install 'playhead[otel]'") from None

__all__ = ["SpanBuilder", "SpanOptions", "resource_of", "spans_of"]
