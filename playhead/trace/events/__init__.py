"""The whole catalogue of events, told apart by `kind`.

A line's kind stands in its envelope, so a reader looks the type up in `EVENT_TYPES` and validates only the data
(`playhead.trace.line`). A kind that is not in the table comes from a newer minor format and is kept as an `UnknownEvent`.
"""

from __future__ import annotations

from inspect import isclass
from typing import Final

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
from playhead.trace.events.model import (
    ErrorInfo,
    LlmFailed,
    LlmRequested,
    LlmResponded,
    LlmRetried,
    MessageAdded,
    MessageRef,
    ProviderFallback,
    ToolsDefined,
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
from playhead.trace.events.run import (
    AgentCompleted,
    AgentStarted,
    DebriefCompleted,
    Erased,
    ErasedLine,
    FinalAnswer,
    RunCompleted,
    RunPaused,
    RunResumed,
    RunStarted,
)
from playhead.trace.events.tools import (
    CALL_ENDS,
    CallEnd,
    ReplayDiverged,
    ReplayServed,
    Rung,
    ToolCallCompleted,
    ToolCallLate,
    ToolCallRepaired,
    ToolCallStarted,
)
from playhead.trace.types import EventBase

EVENT_TYPES: Final[dict[str, type[EventBase]]] = {
    kind: each
    for each in tuple(globals().values())
    if isclass(each)
    and issubclass(each, EventBase)
    and isinstance(kind := each.model_fields["kind"].default, str)  # not so for what events have in common
}
"""Every kind and its type: all that is imported here."""


class UnknownEvent(EventBase):
    """An event of a kind that this version does not know; its fields are kept as they are."""

    kind: str
