"""What a debrief says: frozen values, ready for JSON. `docs/debrief.schema.json` is made from them.

A text in a debrief is the beginning of what the trace holds, cut where a reader would stop; `seq` says which event holds
all of it.
"""

from __future__ import annotations

from typing import Literal

from playhead.diagnose.parts import Part, Placed, Spending, Text

Outcome = Literal["success", "partial", "failed", "unknown"]
Level = Literal["high", "medium", "low"]
Severity = Literal["high", "warning", "info"]
Honesty = Literal["consistent", "unverified", "suspect", "no-claim"]
RecordingState = Literal["closed", "open", "truncated", "damaged"]
SectionName = Literal[
    "strategy", "plan", "thoughts", "answers", "reviews", "reasons", "assumptions", "alternatives", "curator", "approvals",
    "steering", "models", "repaired",
]  # fmt: skip
Author = Literal["model", "strategy", "kernel", "curator", "hook", "killswitch", "approver"]


class Reason(Part):
    """A stated reason, in its author's words."""

    why: Text
    """The reason."""
    refs: tuple[Text, ...] = ()
    """What it points to, as stated, such as `obs:1`."""
    confidence: float | None = None
    """The stated confidence, 0 to 1; null when none was stated."""


class PathStep(Placed):
    """One thing that the agent did."""

    action: Text
    """`tool:<name>`, `agent:<name>`, `switch:<strategy>` or `answer`."""
    ok: bool | None
    """Whether it worked; null when the recording ends before that is known."""
    note: Text | None = None
    """How it failed, or what was special about it: `cached`, `abandoned`, `repaired: …`, …"""
    call_id: Text | None = None
    """The call's id."""
    arguments: Text | None = None
    """The call's arguments, in short."""
    rationale: Reason | None = None
    """The reason that the model stated for it."""


class Entry(Placed):
    """One thing that was decided, assumed, rejected, judged, planned, allowed or steered."""

    section: SectionName
    """What it belongs to: `reasons` are the stated reasons for calls and a controller's decisions."""
    kind: Text
    """The kind of the event that says it."""
    by: Author
    """Who stated or did it."""
    what: Text
    """The event in a sentence, the stated reason included."""
    tool: Text | None = None
    """The tool, for what is about a call."""
    call_id: Text | None = None
    """The call that it is about."""
    ok: bool | None = None
    """The verdict: approved, satisfied, verified; null for what is no verdict."""
    why: Reason | None = None
    """The stated reason; null when none was stated."""


class ErrorSeen(Placed):
    """An error, once for all its repetitions."""

    where: Text
    """`tool:<name>`, `model`, `answer` or `hook:<name>`."""
    type: Text
    """Name of the error."""
    message: Text
    """What it said."""
    count: int = 1
    """How often it came."""


class Metrics(Spending):
    """What the run took, sub-agents included."""

    duration_ms: float
    """Milliseconds from start to end, or to the last event of a run without an end."""
    iterations: int
    """Turns of the root agent's loop."""
    model_calls: int
    """Attempts at a model call."""
    model_failures: int
    """Attempts that failed."""
    tool_calls: int
    """Tool calls, those of sub-agents included."""
    tool_failures: int
    """Tool calls that failed or were refused."""
    agents: int
    """Agents that ran, the root included."""
    reasons_expected: int
    """Calls for which the model had been asked to state a reason."""
    reasons_stated: int
    """Those of them that came with one."""


class Termination(Part):
    """How the run ended."""

    by: Text
    """The reason code, such as `end_turn` or `max_iterations`."""
    source: Text
    """Who ended it: `kernel`, `killswitch:<name>`, …"""
    meaning: Text
    """What the code means, in a sentence."""
    because: Text | None = None
    """Why, in the words of the hook or switch that ended it."""
    rationale: Reason | None = None
    """Why, in the model's or the strategy's words."""
    error: Text | None = None
    """What broke."""
    seq: int
    """The event that says so."""


class Flag(Part):
    """A place where a stated reason, or the claimed outcome, does not hold against the trace."""

    rule: Text
    """The rule that found it; the guide "audit a decision" says what each one checks."""
    severity: Severity
    """`high`: the outcome itself is in doubt; `warning`: look at it; `info`: good to know."""
    owner: Text
    """Whose decision it is."""
    text: Text
    """What does not hold."""
    seqs: tuple[int, ...]
    """The events to look at."""


class Debrief(Part):
    """An account of a run's decisions, made of nothing but its trace."""

    version: Literal[3] = 3
    """Version of this form; it grows when a reader of today would misread it."""
    run_id: Text
    """The run."""
    agent: Text
    """The agent's name."""
    model: Text
    """`provider/model` as asked for."""
    recording: RecordingState
    """Whether the trace is whole; see `caveats`."""
    replay_of: Text | None
    """The run that it replays; null for a run of its own."""
    resumed_from: Text | None
    """The run that it continues."""
    imported: Text | None
    """The format of the spans that it was imported from; null for a run of Playhead's own. Tokens of 0 are not known then."""
    goal: Text
    """What the agent was asked."""
    outcome: Outcome
    """What the run ended as. `success` is the agent's claim: it ended with an answer of its own, right or wrong; `partial`: it was stopped before, and there is
    something; `failed`: it broke, or was stopped with nothing; `unknown`: the trace has no end, or
    was imported from spans that do not say how it ended."""
    honesty: Honesty
    """`suspect`: a figure or a deed of an answer has nothing in the trace behind it; `consistent`: nothing that could be
    compared speaks against the answer, which does not make it right; `unverified`: no tool call succeeded, so there was
    little to compare; `no-claim`: it gave no answer that stands."""
    confidence: Level
    """How far the trace supports the answer: `high` takes a figure or a deed that was found in the trace, and no flag
    above `info`. It is not the probability that the answer is right."""
    confidence_basis: tuple[Text, ...]
    """What `confidence` follows from."""
    answer: Text | None
    """The output, in short."""
    strategy: Text
    """The agent's own strategy."""
    strategy_used: Text | None
    """The strategy that made the output, where it is not the agent's own; null otherwise."""
    path: tuple[PathStep, ...]
    """What the agent and its sub-agents did, in order."""
    entries: tuple[Entry, ...]
    """What was decided, assumed, rejected, judged, planned, allowed and steered, with every stated reason, in order."""
    agents: dict[Text, Text | None]
    """Sub-agents by their owner, and the reason code of each one's end; null without an end in the file."""
    flags: tuple[Flag, ...]
    """Where a stated reason or the claimed outcome does not hold against the trace, the gravest first."""
    errors: tuple[ErrorSeen, ...]
    """What went wrong on the way."""
    metrics: Metrics
    """What the run took."""
    termination: Termination | None
    """How it ended; null when the trace has no end."""
    claim: Text
    """What the agent claims, with the trace's support beside it, or how it ended without a claim; tokens, time and cost."""
    caveats: tuple[Text, ...]
    """What the trace does not show, and what was left out here."""
