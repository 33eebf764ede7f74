"""The whole catalogue of events, as one union told apart by `kind`.

`Event` is the plain union, for annotations and `match`. It is not validated as a whole: a line's kind stands in its
envelope, so a reader looks the type up in `EVENT_TYPES` and validates only the data (`playhead.trace.line`). A kind
that is not in the table comes from a newer minor format and is kept as an `UnknownEvent`.
"""

from __future__ import annotations

from typing import Final, get_args

from playhead.trace.events.base import EventBase
from playhead.trace.events.control import (
    ApprovalDecided,
    ApprovalRequested,
    BudgetReserved,
    ContextSynthesized,
    CuratorDecision,
    DecisionEvaluated,
    FactRecorded,
    GuardrailViolation,
    KernelStateSnapshot,
    KillswitchFired,
    NudgeIssued,
    StrategySelected,
    StrategySwitched,
    StrategySwitchEvaluated,
    VerifierVerdict,
)
from playhead.trace.events.ending import (
    DebriefCompleted,
    Erased,
    ErasedLine,
    FinalAnswer,
)
from playhead.trace.events.model import (
    ErrorInfo,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    ProviderFallback,
)
from playhead.trace.events.phase import (
    EmissionChanged,
    EmissionSuppressed,
    HookFailed,
    HookFired,
    PhaseCompleted,
    PhaseEntered,
)
from playhead.trace.events.reasoning import (
    AlternativesConsidered,
    AssumptionRecorded,
    Critique,
    PlanCreated,
    PlanStepChanged,
    RationaleMissing,
    Reflection,
    StructuredOutputFailed,
    Thought,
)
from playhead.trace.events.replay import (
    ReplayDiverged,
    ReplayServed,
)
from playhead.trace.events.run import (
    AgentCompleted,
    AgentStarted,
    RunCompleted,
    RunPaused,
    RunResumed,
    RunStarted,
)
from playhead.trace.events.thread import (
    MessageAdded,
    MessageRef,
    ToolsDefined,
)
from playhead.trace.events.tools import (
    CALL_ENDS,
    CallEnd,
    Rung,
    ToolCallCompleted,
    ToolCallLate,
    ToolCallRepaired,
    ToolCallStarted,
)


class UnknownEvent(EventBase):
    """An event of a kind that this version does not know; its fields are kept as they are."""

    kind: str


Event = (
    RunStarted
    | RunCompleted
    | RunPaused
    | RunResumed
    | AgentStarted
    | AgentCompleted
    | PhaseEntered
    | PhaseCompleted
    | HookFired
    | HookFailed
    | EmissionChanged
    | EmissionSuppressed
    | MessageAdded
    | ToolsDefined
    | LlmRequested
    | LlmResponded
    | LlmFailed
    | LlmRetried
    | ProviderFallback
    | Thought
    | PlanCreated
    | PlanStepChanged
    | Reflection
    | Critique
    | AssumptionRecorded
    | AlternativesConsidered
    | RationaleMissing
    | StructuredOutputFailed
    | ToolCallStarted
    | ToolCallRepaired
    | ToolCallCompleted
    | ToolCallLate
    | StrategySelected
    | StrategySwitchEvaluated
    | StrategySwitched
    | DecisionEvaluated
    | CuratorDecision
    | ContextSynthesized
    | NudgeIssued
    | GuardrailViolation
    | VerifierVerdict
    | ApprovalRequested
    | ApprovalDecided
    | BudgetReserved
    | KillswitchFired
    | FactRecorded
    | KernelStateSnapshot
    | FinalAnswer
    | DebriefCompleted
    | Erased
    | ReplayServed
    | ReplayDiverged
    | UnknownEvent
)
"""Any event."""

EVENT_TYPES: Final[dict[str, type[EventBase]]] = {
    event_type.model_fields["kind"].default: event_type
    for event_type in get_args(Event)
    if event_type is not UnknownEvent
}
"""Every kind and its type, in the order of the catalogue."""

__all__ = [
    "CALL_ENDS",
    "EVENT_TYPES",
    "AgentCompleted",
    "AgentStarted",
    "AlternativesConsidered",
    "ApprovalDecided",
    "ApprovalRequested",
    "AssumptionRecorded",
    "BudgetReserved",
    "CallEnd",
    "ContextSynthesized",
    "Critique",
    "CuratorDecision",
    "DebriefCompleted",
    "DecisionEvaluated",
    "EmissionChanged",
    "EmissionSuppressed",
    "Erased",
    "ErasedLine",
    "ErrorInfo",
    "Event",
    "EventBase",
    "FactRecorded",
    "FinalAnswer",
    "GuardrailViolation",
    "HookFailed",
    "HookFired",
    "KernelStateSnapshot",
    "KillswitchFired",
    "LlmFailed",
    "LlmRequested",
    "LlmResponded",
    "LlmRetried",
    "MessageAdded",
    "MessageRef",
    "NudgeIssued",
    "PhaseCompleted",
    "PhaseEntered",
    "PlanCreated",
    "PlanStepChanged",
    "ProviderFallback",
    "RationaleMissing",
    "Reflection",
    "ReplayDiverged",
    "ReplayServed",
    "RunCompleted",
    "RunPaused",
    "RunResumed",
    "RunStarted",
    "Rung",
    "StrategySelected",
    "StrategySwitchEvaluated",
    "StrategySwitched",
    "StructuredOutputFailed",
    "Thought",
    "ToolCallCompleted",
    "ToolCallLate",
    "ToolCallRepaired",
    "ToolCallStarted",
    "ToolsDefined",
    "UnknownEvent",
    "VerifierVerdict",
]
