"""What a recording says of the spans that it was made from."""

from __future__ import annotations

from typing import Literal

from playhead.trace.frozen import Integer, Value

Replayability = Literal["full", "tools-only", "not"]
"""`full`: a replay starts from what the model was sent, and every call has its answer. `tools-only`: every call has its
answer, but the run, its prompts or its tools are not wholly known, or not of one agent, so that nothing can be concluded.
`not`: a call has no answer, or there is no call of a model."""


class ImportedFrom(Value):
    """Where an imported run comes from, and what of it could not be brought over."""

    format: str
    """The format of the export: `otlp-json`, `otlp-protobuf`, `phoenix`, `langfuse`, `openinference-jsonl`."""
    conventions: tuple[str, ...] = ()
    """By which conventions the spans tell of agents: `openinference`, `gen_ai`, `openllmetry`."""
    trace_id: str
    """The trace's id, as it was exported."""
    root_span_id: str | None = None
    """Its outermost span, when the export holds one without a parent."""
    spans: Integer
    """Spans of the trace that the export holds."""
    digest: str
    """A digest of the spans, with what they say: tells whether another export holds the same ones."""
    left_out: Integer = 0
    """Spans that tell of no agent, model call or tool call, and so have no place in a recording."""
    replayability: Replayability = "not"
    """What a replay can do with the recording."""
    reasons: tuple[str, ...] = ()
    """Why it can do no more."""
    notes: tuple[str, ...] = ()
    """What else was not known and had to be concluded, or was lost."""
    read_only: tuple[str, ...] = ()
    """Tools that whoever imported it declared free of side effects."""
    service: str | None = None
    """The program that was recorded, by `service.name`."""
