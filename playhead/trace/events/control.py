"""Events that steered the run: decisions, limits, approvals, and facts from neither model nor tool."""

from typing import Literal

from pydantic import Field

from playhead.trace.base import EventBase, Id, Integer
from playhead.trace.events.model import RequestEvent
from playhead.trace.header import StrategyFacts
from playhead.trace.types import Dollars, Rationale, Usage
from playhead.trace.values import JsonValue


class StrategySelected(EventBase, kind="strategy-selected"):
    """A strategy was chosen for the task."""

    strategy: Id
    """The strategy."""
    reason: str | None = None
    """The reason for the choice."""
    declares: StrategyFacts = Field(default_factory=StrategyFacts)
    """The strategy's own description of itself."""


class StrategySwitchEvaluated(EventBase, kind="strategy-switch-evaluated"):
    """A change of strategy was considered."""

    from_strategy: str
    """The strategy in use."""
    recommended_strategy: str
    """The strategy that was recommended."""
    will_switch: bool
    """Whether the change is made."""
    rationale: str | None = None
    """The reason."""


class StrategySwitched(EventBase, kind="strategy-switched"):
    """Another strategy took over."""

    from_strategy: str
    """The strategy given up."""
    to_strategy: str
    """The strategy used from now on."""
    switch_number: Integer
    """1 for the first switch of the run."""
    rationale: str | None = None
    """The reason."""
    declares: StrategyFacts = Field(default_factory=StrategyFacts)
    """The new strategy's own description of itself."""


class Judgement(EventBase):
    """What Playhead, or a user's hook, found."""

    by: str | None = None
    """The user's hook that recorded it; None for Playhead itself."""


class DecisionEvaluated(Judgement, kind="decision-evaluated"):
    """A controller judged the run and decided something."""

    decision: str
    """The decision."""
    rationale: str | None = None
    """The reason."""


class CuratorDecision(EventBase, kind="curator-decision"):
    """What the context curator did with an observation."""

    action: Literal["kept", "dropped", "compressed", "marked-untrusted"]
    """The action."""
    ref: str
    """The observation."""
    rationale: str | None = None
    """The reason."""


class ContextSynthesized(EventBase, kind="context-synthesized"):
    """The thread was rebuilt for the next request."""

    mode: str
    """The way it was rebuilt."""
    kept: Integer
    """Messages kept as they were."""
    dropped: Integer
    """Messages left out."""
    why: str | None = None
    """The reason for the change."""
    tokens_before: Integer | None = None
    """Tokens of the thread before, as estimated."""
    tokens_after: Integer | None = None
    """Tokens of the thread after, as estimated."""


class NudgeIssued(EventBase, kind="nudge-issued"):
    """The kernel added a hint for the model to the thread."""

    nudge: str
    """The name of the nudge."""
    text: str
    """The text of the hint."""
    severity: Literal["info", "warn", "critical"] = "info"
    """How serious the occasion is."""


class GuardrailViolation(Judgement, kind="guardrail-violation"):
    """A guard refused an input or an output."""

    guard: str
    """The name of the guard."""
    violations: tuple[str, ...]
    """The finding."""
    blocked: bool
    """Whether the run was stopped for it."""


class VerifierVerdict(Judgement, kind="verifier-verdict"):
    """A check of the answer before it leaves."""

    verified: bool
    """Whether the answer passed."""
    summary: str
    """The verdict in a sentence."""
    checks: tuple[JsonValue, ...] = ()
    """The checks, in order: name, passed, reason."""


class BudgetReserved(RequestEvent, kind="budget-reserved"):
    """The ledger set aside the worst case of a call before it is made."""

    switch: Id = "budget_limit"
    """The killswitch whose ledger it is."""
    tokens: Integer | None = None
    """Tokens set aside; None when tokens are not limited."""
    cost_usd: float | None = None
    """US dollars set aside; None when costs are not limited."""
    prompt_tokens: Integer | None = None
    """The upper bound on the prompt's tokens that was used."""
    prompt_bound: Literal["counted", "bytes", "estimate"] | None = None
    """The source of that bound: counted by the adapter, one token per byte, or an estimate, which may be too low."""
    output_cap: Integer | None = None
    """The cap on output tokens that was added to the request for this reservation."""
    left_tokens: Integer | None = None
    """Tokens left after this: neither spent nor set aside."""
    left_cost_usd: float | None = None
    """US dollars left after this: neither spent nor set aside."""


class KillswitchFired(EventBase, kind="killswitch-fired"):
    """A killswitch ended the run."""

    switch: Id
    """The switch's name."""
    reason: str
    """The finding."""
    on_trigger: Literal["stop", "terminate"] = "stop"
    """Whether the run counts as done or as failed."""
    at: Literal["phase", "request", "response", "call", "approval", "result", "outside"] = "phase"
    """Where it fired: at a phase of the loop, before a request, after its answer, before a call, when an approver denied the
    call, after the call's result, or from outside the loop, at any moment."""
    terminated_by: Id | None = None
    """The reason code of the ending; None at a phase, where `hook-fired` contains it."""
    ends: str | None = None
    """The agent that it ends, with all agents below it; None: the event's owner."""
    request: Integer | None = None
    """The request, when it fired at one."""
    attempt: Integer | None = None
    """The attempt at that request."""
    call_id: Id = ""
    """The call, when it fired at one."""


class FactRecorded(EventBase, kind="fact-recorded"):
    """A value that steered the run and came from neither model nor tool. Replays serve it back."""

    name: Id
    """The question: `approval`, `clock`, `random`, …"""
    key: Id = ""
    """Distinguishes questions of one name that are open at the same time."""
    value: JsonValue = None
    """The answer."""


class KernelStateSnapshot(EventBase, kind="kernel-state-snapshot"):
    """The progress of the loop; never the whole state."""

    status: Id
    """`thinking`, `acting`, `observing`, `done`, `failed`."""
    steps: Integer
    """Steps so far."""
    messages: Integer
    """Messages in the thread."""
    usage: Usage
    """Tokens so far."""
    cost_usd: Dollars = None
    """US dollars so far, as far as prices are known; None when nothing is known of them."""
    terminated_by: Id | None = None
    """The reason code, once the run has ended."""
    termination_rationale: Rationale | None = None
    """Why, where the code alone does not say it."""
