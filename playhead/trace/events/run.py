"""A run and its sub-agents: how they start and how they end."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

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

TERMINATED_BY: Final[Mapping[str, str]] = {
    "final_answer_tool": "the model called the tool that gives the answer",
    "final_answer": "the model wrote its final answer into its text",
    "end_turn": "the model answered and asked for no call, or the strategy came to its end",
    "output_truncated": "the provider cut the answer off at a limit of length",
    "output_filtered": "the provider kept the answer back, or a part of it",
    "required_tools_missing": "the model answered without using a tool that it had to use. Fix: raise retries= of "
    "require_tools, ask it for less, or say in system_prompt= when to call them",
    "unsatisfied": "no answer satisfied the critic, or nobody could say whether one would; the output is the best of them",
    "output_rejected": "what looks at answers refused the last one, as often as it may",
    "max_iterations": "the turns are used up: of the agent, or of the killswitch of this name",
    "llm_error": "the model did not answer",
    "error": "the strategy, or a part of it, raised",
    "trace_error": "an event could not be written, and the run was told to stop then",
    "cancelled": "the caller cancelled the run, or a signal did, or nobody waited for it any more",
    "parent_ended": "the agent above ended",
    "hook_stop": "a hook ended the run in order",
    "hook_terminate": "a hook ended the run as failed",
    "hook_failed": "a required hook failed, and nothing left as the output",
    "replay_stopped": "a replay could not go on",
    "stopped": "the caller stopped the run, and the output is the best answer from what was known then",
    "terminated": "the caller ended the run at once",
    "kill": "`playhead kill` ended the run from another process",
    "kill_file": "the file of this killswitch was there",
    "timeout_after": "the run had lasted as long as it may",
    "watchdog": "the run had got nowhere for as long as it may",
    "budget_limit": "the next request might have spent more than was left",
    "tool_limit": "a tool had been called as often as it may be",
    "circuit_breaker": "a tool or a provider had failed as often in a row as it may",
    "require_approval_for": "somebody had to allow a call, and did not",
    "stop_when": "the predicate of this killswitch was true; also by the name that it was given",
}
"""Every reason code that Playhead itself gives, with what it means. Hooks and custom killswitches may give others."""
NOT_KNOWN: Final = "not_known"
"""The reason code of an imported run whose spans do not say how it ended."""


class RunStarted(EventBase):
    """The first line of every file: what runs, on what, under which limits."""

    kind: Literal["run-started"] = "run-started"
    format: Id
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

    kind: str
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


class RunCompleted(Ending):
    """The last line of a closed file."""

    kind: Literal["run-completed"] = "run-completed"
    lost_events: Annotated[Integer, VOLATILE] = 0
    """Events that could not be written; their `seq` numbers are missing from the file."""


class RunPaused(EventBase):
    """The run waits at a safe point."""

    incidental: ClassVar = True
    kind: Literal["run-paused"] = "run-paused"
    reason: str
    """Why it waits."""


class RunResumed(EventBase):
    """The run goes on after a pause; or a resumed one goes on from where the run that it continues had died."""

    incidental: ClassVar = True
    kind: Literal["run-resumed"] = "run-resumed"
    reason: str
    """Why it goes on."""
    caught_up_with: str | None = None
    """Id of the run that it continues: all that was recorded of that one stands above, from here on everything is live."""


class AgentStarted(EventBase):
    """A sub-agent starts; its events carry its own owner."""

    kind: Literal["agent-started"] = "agent-started"
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


class AgentCompleted(Ending):
    """A sub-agent ended; the call that it answers is completed next."""

    kind: Literal["agent-completed"] = "agent-completed"


class FinalAnswer(EventBase):
    """The agent's answer, as it leaves."""

    kind: Literal["final-answer"] = "final-answer"
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


class Erased(EventBase):
    """Content was erased on request, after the run: the only kind that may stand behind `run-completed`."""

    incidental: ClassVar = True
    kind: Literal["erased"] = "erased"
    lines: tuple[ErasedLine, ...]
    """The lines that are no longer what was written; each says `"erased":true` and keeps its `h`."""
    reason: str | None = None
    """Why, in the words of whoever asked for it."""
