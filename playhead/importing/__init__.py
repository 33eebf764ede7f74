"""Import: the spans that another program exported become recordings, which every command reads.

    sources, rows           a file, its format, its spans
    conventions, messages   what a span says, by OpenInference and OpenTelemetry GenAI
    agents, pairing         the tree of a trace: the work of each agent, and the tool span that answers each call
    conversion              the events: headers and tools, model_calls, tool calls
    findings                what a replay can do with it, and why no more
    store                   the recordings
    collect/                a live receiver

Nothing in a span is evaluated, and the work on it is bounded (limits).
"""

from __future__ import annotations

from playhead.importing.sources import Source, read_source
from playhead.importing.store import ImportedRun, import_file, import_spans

__all__ = ["ImportedRun", "Source", "import_file", "import_spans", "read_source"]
