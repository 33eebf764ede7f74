"""A run and its sub-agents: how they start and how they end."""

from typing import Annotated, Final, Literal

from pydantic import Field

from playhead.trace.base import VOLATILE, EventBase, Id, Integer, Value
from playhead.trace.header import AgentHeader, ChatTurn, ImportedFrom, TelemetryContext
from playhead.trace.types import Content, Count, Dollars, Usage
from playhead.trace.values import JsonValue

NOT_KNOWN: Final = "not_known"
"""The reason code of an imported run whose spans do not say how it ended."""


class RunStarted(EventBase, kind="run-started"):
    """The first line of every file: the agent, its task, and its settings."""

    format: Annotated[Id, VOLATILE]
    """Version of the trace format, `major.minor`; a reader refuses another major."""
    run_id: Annotated[Id, VOLATILE]
    """The run's id, which is also the file's name."""
    agent: AgentHeader
    """Everything about the agent that is data."""
    task: Content
    """The task that the agent was given."""
    versions: Annotated[dict[str, str], VOLATILE] = Field(default_factory=dict)
    """Versions of Playhead and of Python."""
    redacted: Annotated[bool, VOLATILE] = False
    """Whether the user's redaction rules were applied to the run; a replay may differ where they changed something."""
    redaction: Annotated[Literal["off"] | None, VOLATILE] = None
    """`off` when what has the format of a credential was not redacted; absent when it was."""
    replay_of: Annotated[Id | None, VOLATILE] = None
    """Id of the run that this one replays."""
    replay_mode: Annotated[str | None, VOLATILE] = None
    """How it is replayed: `reproduce`, `replay`, `fork`."""
    overrides: Annotated[dict[str, JsonValue], VOLATILE] = Field(default_factory=dict)
    """The replay's overrides, by name."""
    replay_group: Annotated[Id | None, VOLATILE] = None
    """The replays that this one belongs to, such as those of one verdict; absent when it stands alone."""
    resumed_from: Annotated[Id | None, VOLATILE] = None
    """Id of the run that this one continues."""
    chat: Annotated[ChatTurn | None, VOLATILE] = None
    """The chat turn that this run answers."""
    imported: ImportedFrom | None = None
    """The source of an imported run; absent for a run that Playhead recorded."""
    telemetry: Annotated[TelemetryContext | None, VOLATILE] = None
    """The context of the application's own tracing when the run began; absent when there was none."""


class SpansHandedOver(EventBase, kind="spans-handed-over", incidental=True):
    """The spans of the run go to the application's own tracing, which delivers them: they are handed over, not acknowledged."""

    to: str
    """The class of the application's tracer provider."""
    trace_id: Id
    """The trace of the spans, 32 hexadecimal digits. (Ids of spans are computed from the run's id.)"""
    sampled: bool
    """Whether the application's sampler keeps the trace."""
    attributes: dict[str, JsonValue] = Field(default_factory=dict)
    """What the application's span processors added to the agent's span when it began, such as its session and user."""


class Ending(EventBase):
    """The fields that the ends of a run and of a sub-agent have in common."""

    status: Literal["done", "failed"]
    """`done` when the agent stopped normally, `failed` when something broke or a killswitch terminated it."""
    terminated_by: Id
    """The reason code: `final_answer_tool`, `end_turn`, `max_iterations`, `llm_error`, …"""
    terminated_source: Id
    """Who ended it: `kernel`, `strategy:<name>`, `killswitch:<name>`, …"""
    output: JsonValue = None
    """The answer, or the best result so far."""
    error: str | None = None
    """The error of a failed run."""
    terminated_because: str | None = None
    """Why, in the words of the hook, killswitch or strategy that ended it; absent when the reason code says it all."""
    usage: Usage = Field(default_factory=lambda: Usage(unknown=1))
    """Tokens of the model calls of the agent, of its sub-agents and of its tools; absent when not known."""
    cost_usd: Dollars = None
    """US dollars for `usage`, as far as prices are known; None when nothing is known of them."""
    cost_unknown: Annotated[Count | None, VOLATILE] = None
    """Attempts of unknown cost, which make `cost_usd` a lower bound; absent when there are none."""
    iterations: Integer = 0
    """Turns of the loop."""
    duration_ms: Annotated[float, VOLATILE] = 0.0
    """Milliseconds from start to end."""
    strategy_used: str | None = None
    """The strategy that produced the output; absent when it is the header's strategy."""


class RunCompleted(Ending, kind="run-completed"):
    """The last line of a closed file."""

    lost_events: Annotated[Integer, VOLATILE] = 0
    """Events that could not be written; their `seq` numbers are missing from the file."""


class RunPaused(EventBase, kind="run-paused", incidental=True):
    """The run waits at a safe point."""

    reason: str
    """The reason for the pause."""


class RunResumed(EventBase, kind="run-resumed", incidental=True):
    """The run continues after a pause, or a resumed run continues live from where the earlier run died."""

    reason: str
    """The reason to continue."""
    caught_up_with: str | None = None
    """Id of the earlier run: all events recorded for it precede this one; later events are live."""


class AgentStarted(EventBase, kind="agent-started"):
    """A sub-agent starts; its events carry its own owner."""

    agent: AgentHeader
    """Everything about the sub-agent that is data."""
    task: Content
    """The task that it was given."""
    parent: str
    """Owner that called it."""
    call_id: Id
    """The call that it answers."""


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
    """A line with erased content."""

    seq: Integer
    """The event."""
    previous: str
    """Hash of the line before it, which ties that line to the later ones; empty for the first line."""
    kept: str | None = None
    """Hash over `previous` and what the erasure left of the line: a later change of it shows."""


class Erased(EventBase, kind="erased", incidental=True):
    """Content was erased on request, after the run. Only this kind may follow `run-completed`."""

    lines: tuple[ErasedLine, ...]
    """The changed lines; each contains `"erased":true` and keeps its `h`."""
    reason: str | None = None
    """The reason that the requester gave."""
