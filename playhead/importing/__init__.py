"""Import: turns the spans that another program exported into recordings, which every command reads.

    sources, rows           a file, its format, its spans
    conventions, messages   the content of a span, by OpenInference and OpenTelemetry GenAI
    agents, pairing         the tree of a trace: the work of each agent, and the tool span that answers each call
    conversion              the events: headers and tools, model_calls, tool calls
    findings                how far the recording can be replayed, and why no further
    store                   the recordings
    collect/                a live receiver

    bodies, wire            HTTP messages of model clients, for recorded programs

Nothing in a span is evaluated, and the work on it is bounded (limits). The public names are loaded on first use.
"""

from playhead.trace.public import public_names

__all__, __getattr__ = public_names(__name__, f"{__file__}i")
