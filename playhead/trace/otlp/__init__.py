"""Delivering spans: live while runs go on, and later from their traces. Needs the extra `otel`; nothing here imports it.

live_export("http://localhost:4318")          # or OTEL_EXPORTER_OTLP_ENDPOINT, and nothing in the program
export_to(processor)                          # through an application's own span processor
"""

from __future__ import annotations

from playhead.trace.otlp.current import export_to, live_export
from playhead.trace.otlp.live import LiveExport

__all__ = ["LiveExport", "export_to", "live_export"]
