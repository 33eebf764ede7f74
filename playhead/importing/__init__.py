"""Import: spans that another program exported become recordings, which every command reads.

    readers/       a format to `ForeignSpan`s: OTLP, Phoenix, Langfuse, OpenInference JSON Lines
    conventions/   what the attributes of a span say: OpenInference, OpenTelemetry GenAI, OpenLLMetry
    tree, agents   the spans of a trace, and which agent each belongs to
    matching       which tool span answers which call
    conversion     the events
    report         what a replay can do with it, and why no more
    store          the files

Nothing that spans hold is evaluated, and no work on them is unbounded.
"""

from __future__ import annotations

from playhead.importing.files import import_file
from playhead.importing.sources import FORMATS, Source, read_source
from playhead.importing.store import ImportedRun, import_spans

__all__ = ["FORMATS", "ImportedRun", "Source", "import_file", "import_spans", "read_source"]
