"""Import: spans that another program exported become recordings, which every command reads.

    sources        a file, a pipe or stdin: what it is
    readers/       a format to `ForeignSpan`s: OTLP, rows (OpenInference JSON Lines, Phoenix), Langfuse
    conventions    what a span says, by OpenInference, OpenTelemetry GenAI and OpenLLMetry; messages: the shapes of prompts
    tree, agents   the spans of a trace, and which agent each belongs to
    pairing        which tool span answers which call
    conversion     the events: of agents (headers, toolbox, thread), model calls and tool calls
    findings       what a replay can do with it, and why no more
    store          the recordings
    collect/       a live receiver

Nothing that spans hold is evaluated, and no work on them is unbounded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.importing.sources import Source, read_source
    from playhead.importing.store import ImportedRun, import_file, import_sources, import_spans
else:
    _WHERE = {
        **dict.fromkeys(("Source", "read_source"), "sources"),
        **dict.fromkeys(("ImportedRun", "import_file", "import_sources", "import_spans"), "store"),
    }

    def __getattr__(name: str) -> object:
        """Import what is asked for when it is: the command line's help knows the formats alone."""
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


__all__ = ["ImportedRun", "Source", "import_file", "import_sources", "import_spans", "read_source"]
