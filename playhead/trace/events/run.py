"""A run and its sub-agents: how they start and how they end."""

from typing import Annotated, Final, Literal

from pydantic import Field

from playhead.trace.types import (
    VOLATILE,
    AgentHeader,
    ChatTurn,
    Content,
    Count,
    Dollars,
    EventBase,
    Id,
    ImportedFrom,
    Integer,
    SpanIds,
    TelemetryContext,
    Usage,
    Value,
)
from playhead.trace.values import JsonValue

NOT_KNOWN: Final = "not_known"
"""The reason code of an imported run whose spans do not say how it ended."""


class RunStarted(EventBase, kind="run-started"):
    """The first line of every file: what runs, on what, under which limits."""

    format: Annotated[Id, VOLATILE]
    """Version of the trace format, `major.minor`; a reader refuses another major."""
    run_id: Annotated[Id, VOLATILE]
    """The run's id, which is also the file's name."""
    agent: AgentHeader
    """Everything about the agent that is data."""
    task: Content
    """What the agent was asked."""
    versions: Annotated[dict[str, str], VOLATILE] = Field(default_factory=dict)
    """Versions of Playhead and of Python."""
    redacted: Annotated[bool, VOLATILE] = False
    """Whether rules of the user's were applied to what follows; a replay may differ where they changed something."""
    replay_of: Annotated[Id | None, VOLATILE] = None
    """Id of the run that this one replays."""
    replay_mode: Annotated[str | None, VOLATILE] = None
    """How it is replayed: `reproduce`, `replay`, `fork`."""
    overrides: Annotated[dict[str, JsonValue], VOLATILE] = Field(default_factory=dict)
    """What the replay was told to change, by the name of the override."""
    resumed_from: Annotated[Id | None, VOLATILE] = None
    """Id of the run that this one continues."""
    chat: Annotated[ChatTurn | None, VOLATILE] = None
    """The chat that this run is a turn of."""
    imported: ImportedFrom | None = None
    """Where the run was brought from, when it is not one of Playhead's own."""
    telemetry: Annotated[TelemetryContext | None, VOLATILE] = None
    """What the application's own tracing said when the run began; None: it said nothing."""
    span: Annotated[SpanIds | None, VOLATILE] = None
    """The span that the application's own tracer opened for it; absent: none is known."""


class Ending(EventBase):
    """What a run and a sub-agent have in common when they end."""

    status: Literal["done", "failed"]
    """`done` when the agent stopped in order, `failed` when something broke or a switch terminated it."""
    terminated_by: Id
    """The reason code: `final_answer_tool`, `end_turn`, `max_iterations`, `llm_error`, …"""
    terminated_source: Id
    """Who ended it: `kernel`, `strategy:<name>`, `killswitch:<name>`, …"""
    output: JsonValue = None
    """The answer, or the best there was."""
    error: str | None = None
    """What broke, for a failed run."""
    terminated_because: str | None = None
    """Why, in the words of the hook, killswitch or strategy that ended it; absent when the reason code says it all."""
    usage: Usage = Field(default_factory=lambda: Usage(unknown=1))
    """Tokens of the agent's own model calls and of those below it, tools' own included; absent: nobody knows."""
    cost_usd: Dollars = None
    """US dollars for `usage`; None when a price is not known."""
    cost_unknown: Count | None = None
    """Attempts without an answer of which nobody knows what they cost: `cost_usd` is at least that; absent: none."""
    iterations: Integer = 0
    """Turns of the loop."""
    duration_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from start to end."""
    strategy_used: str | None = None
    """The strategy that made the output; absent when it is the one that the header names."""


class RunCompleted(Ending, kind="run-completed"):
    """The last line of a closed file."""

    lost_events: Annotated[Integer, VOLATILE] = 0
    """Events that could not be written; their `seq` numbers are missing from the file."""


class RunPaused(EventBase, kind="run-paused", incidental=True):
    """The run waits at a safe point."""

    reason: str
    """Why it waits."""


class RunResumed(EventBase, kind="run-resumed", incidental=True):
    """The run goes on after a pause; or a resumed one goes on from where the run that it continues had died."""

    reason: str
    """Why it goes on."""
    caught_up_with: str | None = None
    """Id of the run that it continues: all that was recorded of that one stands above, from here on everything is live."""


class AgentStarted(EventBase, kind="agent-started"):
    """A sub-agent starts; its events carry its own owner."""

    agent: AgentHeader
    """Everything about the sub-agent that is data."""
    task: Content
    """What it was asked."""
    parent: str
    """Owner that called it."""
    call_id: Id
    """The call that it answers."""
    span: Annotated[SpanIds | None, VOLATILE] = None
    """The span that the application's own tracer opened for it; absent: none is known."""


class AgentCompleted(Ending, kind="agent-completed"):
    """A sub-agent ended; the call that it answers is completed next."""


class FinalAnswer(EventBase, kind="final-answer"):
    """The agent's answer, as it leaves."""

    output: JsonValue = None
    """The answer."""
    format: Id = "text"
    """`text`, `json`, `markdown`, `csv` or `html`."""
    summary: str | None = None
    """The model's summary of what it did."""
    confidence: Literal["high", "medium", "low"] | None = None
    """The model's confidence."""


class ErasedLine(Value):
    """A line of which something was erased."""

    seq: Integer
    """The event."""
    previous: str
    """Hash of the line before it, which nothing but this ties to the lines after it; empty for the first."""


class Erased(EventBase, kind="erased", incidental=True):
    """Content was erased on request, after the run: the only kind that may stand behind `run-completed`."""

    lines: tuple[ErasedLine, ...]
    """The lines that are no longer what was written; each says `"erased":true` and keeps its `h`."""
    reason: str | None = None
    """Why, in the words of whoever asked for it."""
