"""The data model of a debrief: frozen values, ready for JSON. `docs/debrief.schema.json` is generated from it.

Texts in a debrief are shortened; `seq` names the event with the full text.
"""

from __future__ import annotations

from typing import Literal

from playhead.diagnose.parts import Part, Placed, Spending, Text

Outcome = Literal["success", "partial", "failed", "unknown"]
Severity = Literal["high", "warning", "info"]
RecordingState = Literal["closed", "open", "truncated", "erased", "damaged"]
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
    """The stated evidence, such as `obs:1`."""
    confidence: float | None = None
    """The stated confidence, 0 to 1; null when none was stated."""


class PathStep(Placed):
    """One thing that the agent did."""

    action: Text
    """`tool:<name>`, `agent:<name>`, `switch:<strategy>` or `answer`."""
    ok: bool | None
    """Whether it succeeded; null if the recording ends before that is known."""
    note: Text | None = None
    """The failure, or a special circumstance: `cached`, `abandoned`, `repaired: …`, …"""
    call_id: Text | None = None
    """The call's id."""
    arguments: Text | None = None
    """The call's arguments, shortened."""
    rationale: Reason | None = None
    """The reason that the model stated for it."""


class Entry(Placed):
    """One thing that was decided, assumed, rejected, judged, planned, allowed or steered."""

    section: SectionName
    """The category: `reasons` are the stated reasons for calls and a controller's decisions."""
    kind: Text
    """The kind of the event."""
    by: Author
    """Who stated or did it."""
    what: Text
    """The event in a sentence, including the stated reason."""
    tool: Text | None = None
    """The tool, if the entry concerns a call."""
    call_id: Text | None = None
    """The call that the entry concerns."""
    ok: bool | None = None
    """The verdict: approved, satisfied, verified; null if the entry is not a verdict."""
    why: Reason | None = None
    """The stated reason; null if there is none."""


class ErrorSeen(Placed):
    """An error; equal ones are one."""

    where: Text
    """`tool:<name>`, `model`, `answer` or `hook:<name>`."""
    type: Text
    """The name of the error; `reported` for a result that says that the call failed."""
    message: Text
    """The error message."""
    seqs: tuple[int, ...]
    """Every event that records it."""


class Metrics(Spending):
    """The run's resource use, including sub-agents."""

    duration_ms: float
    """Milliseconds from start to end, or to the last event of a run without an end."""
    iterations: int
    """Turns of the root agent's loop."""
    model_calls: int
    """Attempts at a model call."""
    model_failures: int
    """Attempts that failed."""
    tool_calls: int
    """Tool calls, including those of sub-agents."""
    tool_failures: int
    """Tool calls that failed or were refused."""
    agents: int
    """Agents that ran, including the root."""
    reasons_expected: int
    """Calls for which the model was asked to state a reason."""
    reasons_stated: int
    """Those of them with a stated reason."""


class Termination(Part):
    """How the run ended."""

    by: Text
    """The reason code, such as `end_turn` or `max_iterations`."""
    source: Text
    """Who ended it: `kernel`, `killswitch:<name>`, …"""
    meaning: Text
    """The meaning of the code, in a sentence."""
    because: Text | None = None
    """The reason given by the hook or killswitch that ended the run."""
    rationale: Reason | None = None
    """The reason stated by the model or the strategy."""
    error: Text | None = None
    """The error of a failed run."""
    seq: int
    """The event that records the end."""


class Flag(Part):
    """A stated reason or claimed outcome that the trace does not support."""

    rule: Text
    """The rule that raised the flag; the guide "audit a decision" describes each rule."""
    severity: Severity
    """`high`: the outcome itself is in doubt; `warning`: look at it; `info`: good to know."""
    owner: Text
    """The agent that made the decision."""
    text: Text
    """What the trace does not support."""
    seqs: tuple[int, ...]
    """The events to look at."""


class Finding(Part):
    """Something to look at first: a flag, a failure, or what stopped or steered the run."""

    severity: Severity
    """How much it matters."""
    label: Text
    """What it is, in a word or two: `failure`, `killswitch`, `ending`, or the rule of a flag."""
    what: Text
    """What happened; failures of one place and type are one finding."""
    text: Text = ""
    """For a failure, its message, or the first one of several."""
    count: int = 1
    """How often it happened."""
    places: tuple[Placed, ...]
    """The events to look at."""


class Debrief(Part):
    """An account of a run's decisions, computed only from its trace."""

    version: Literal[4] = 4
    """The version of this format; it increases with each incompatible change."""
    run_id: Text
    """The run."""
    agent: Text
    """The agent's name."""
    model: Text
    """The requested model, as `provider/model`."""
    recording: RecordingState
    """Whether the trace is complete; see `caveats`."""
    replay_of: Text | None
    """The replayed run; null if the run is not a replay."""
    resumed_from: Text | None
    """The run that this one continues."""
    imported: Text | None
    """The span format of an imported run, whose token counts of 0 mean unknown; null if the run was not imported."""
    goal: Text
    """The task."""
    outcome: Outcome
    """The outcome. `success`: the run ended with the agent's own answer, right or wrong; `partial`: it was stopped before
    an answer, but has some output; `failed`: it failed, or was stopped without output; `unknown`: the trace has no end,
    or was imported from spans that do not record the ending."""
    checked: Text
    """Which parts of the answer the rules compared with the trace and found there; empty without an answer. It says
    nothing about whether the answer is right."""
    answer: Text | None
    """The output, shortened."""
    strategy: Text
    """The agent's own strategy."""
    strategy_used: Text | None
    """The strategy that produced the output, if it is not the agent's own; null otherwise."""
    path: tuple[PathStep, ...]
    """The actions of the agent and its sub-agents, in order."""
    entries: tuple[Entry, ...]
    """What was decided, assumed, rejected, judged, planned, allowed and steered, with every stated reason, in order."""
    agents: dict[Text, Text | None]
    """Sub-agents by their owner, and the reason code of each one's end; null without an end in the file."""
    findings: tuple[Finding, ...] = ()
    """Where to look first, most severe first: the flags, the errors, and what stopped or steered the run."""
    flags: tuple[Flag, ...]
    """Stated reasons and claimed outcomes that the trace does not support, most severe first."""
    errors: tuple[ErrorSeen, ...]
    """The errors during the run."""
    metrics: Metrics
    """What the run took."""
    termination: Termination | None
    """The ending; null if the trace has no end."""
    claim: Text
    """The agent's claim and the number of flags, or the ending without a claim; tokens, time and cost."""
    caveats: tuple[Text, ...]
    """What the trace does not show, and what is omitted here."""
