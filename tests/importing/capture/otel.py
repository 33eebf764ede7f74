"""The tracer provider of a captured program: OTLP over HTTP, to where OTEL_EXPORTER_OTLP_ENDPOINT says."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def provider(service: str, *before: SpanProcessor) -> TracerProvider:
    """Return a provider that exports in batches, after what other processors do, and make it the process's own."""
    made = TracerProvider(resource=Resource.create({"service.name": service}))
    for each in before:
        made.add_span_processor(each)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(made)
    return made
