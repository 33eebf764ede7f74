"""Import: turns the spans that another program exported into recordings, which every command reads.

    sources, rows           a file, its format, its spans
    conventions, messages   the content of a span, by OpenInference and OpenTelemetry GenAI
    agents, pairing         the tree of a trace: the work of each agent, and the tool span that answers each call
    conversion              the events: headers and tools, model_calls, tool calls
    findings                how far the recording can be replayed, and why no further
    store                   the recordings
    collect/                a live receiver

Nothing in a span is evaluated, and the work on it is bounded (limits).
"""

from __future__ import annotations

from playhead.importing.sources import Source, read_source
from playhead.importing.store import ImportedRun, import_file, import_spans

__all__ = ["ImportedRun", "Source", "import_file", "import_spans", "read_source"]
