"""The whole catalogue of events, as one union told apart by `kind`.

`Event` is the plain union, for annotations and `match`. It is not validated as a whole: a line's kind stands in its
envelope, so a reader looks the type up in `EVENT_TYPES` and validates only the data (`playhead.trace.line`). A kind
that is not in the table comes from a newer minor format and is kept as an `UnknownEvent`.
"""

from __future__ import annotations

from typing import Final

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
    Rung,
    ToolCallCompleted,
    ToolCallHealed,
    ToolCallLate,
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
    | ToolCallHealed
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
    | ReplayServed
    | ReplayDiverged
    | UnknownEvent
)
"""Any event."""

FORMAT: Final = "1.0"
"""Raise the minor version when a kind or an optional field is added, the major when an old reader would misread."""

EVENT_TYPES: Final[dict[str, type[EventBase]]] = {
    "run-started": RunStarted,
    "run-completed": RunCompleted,
    "run-paused": RunPaused,
    "run-resumed": RunResumed,
    "agent-started": AgentStarted,
    "agent-completed": AgentCompleted,
    "phase-entered": PhaseEntered,
    "phase-completed": PhaseCompleted,
    "hook-fired": HookFired,
    "hook-failed": HookFailed,
    "emission-changed": EmissionChanged,
    "emission-suppressed": EmissionSuppressed,
    "message-added": MessageAdded,
    "tools-defined": ToolsDefined,
    "llm-requested": LlmRequested,
    "llm-responded": LlmResponded,
    "llm-failed": LlmFailed,
    "llm-retried": LlmRetried,
    "provider-fallback": ProviderFallback,
    "thought": Thought,
    "plan-created": PlanCreated,
    "plan-step-changed": PlanStepChanged,
    "reflection": Reflection,
    "critique": Critique,
    "assumption-recorded": AssumptionRecorded,
    "alternatives-considered": AlternativesConsidered,
    "rationale-missing": RationaleMissing,
    "structured-output-failed": StructuredOutputFailed,
    "tool-call-started": ToolCallStarted,
    "tool-call-healed": ToolCallHealed,
    "tool-call-completed": ToolCallCompleted,
    "tool-call-late": ToolCallLate,
    "strategy-selected": StrategySelected,
    "strategy-switch-evaluated": StrategySwitchEvaluated,
    "strategy-switched": StrategySwitched,
    "decision-evaluated": DecisionEvaluated,
    "curator-decision": CuratorDecision,
    "context-synthesized": ContextSynthesized,
    "nudge-issued": NudgeIssued,
    "guardrail-violation": GuardrailViolation,
    "verifier-verdict": VerifierVerdict,
    "approval-requested": ApprovalRequested,
    "approval-decided": ApprovalDecided,
    "budget-reserved": BudgetReserved,
    "killswitch-fired": KillswitchFired,
    "fact-recorded": FactRecorded,
    "kernel-state-snapshot": KernelStateSnapshot,
    "final-answer": FinalAnswer,
    "debrief-completed": DebriefCompleted,
    "replay-served": ReplayServed,
    "replay-diverged": ReplayDiverged,
}
"""Every kind and its type, in the order of the catalogue."""

__all__ = [
    "EVENT_TYPES",
    "FORMAT",
    "AgentCompleted",
    "AgentStarted",
    "AlternativesConsidered",
    "ApprovalDecided",
    "ApprovalRequested",
    "AssumptionRecorded",
    "BudgetReserved",
    "ContextSynthesized",
    "Critique",
    "CuratorDecision",
    "DebriefCompleted",
    "DecisionEvaluated",
    "EmissionChanged",
    "EmissionSuppressed",
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
    "ToolCallHealed",
    "ToolCallLate",
    "ToolCallStarted",
    "ToolsDefined",
    "UnknownEvent",
    "VerifierVerdict",
]
