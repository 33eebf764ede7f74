"""The formats that are read, by name: for the command line too, whose help loads no reader."""

from __future__ import annotations

from typing import Final

OTLP_JSON: Final = "otlp-json"
OTLP_PROTOBUF: Final = "otlp-protobuf"
PHOENIX: Final = "phoenix"
OPENINFERENCE_JSONL: Final = "openinference-jsonl"
LANGFUSE: Final = "langfuse"
FORMATS: Final = {
    OTLP_JSON: "OTLP JSON: an object with resourceSpans, or lines of them",
    OPENINFERENCE_JSONL: "OpenInference JSON Lines: one span a line, with its context",
    PHOENIX: "a Phoenix export: spans of its REST API, or its data frame as JSON",
    LANGFUSE: "a Langfuse export: a trace with observations, or observations",
    OTLP_PROTOBUF: "OTLP protobuf: an ExportTraceServiceRequest, or many with their lengths",
}
"""Every format by name, with what such a file holds, for people."""
