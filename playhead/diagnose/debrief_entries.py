"""Which events are entries of a debrief: the section that each belongs to, who stated it, and its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.diagnose.debrief_model import Author, Entry, Reason, SectionName
from playhead.diagnose.parts import LONG, short
from playhead.diagnose.summaries import summarise
from playhead.trace import events as e
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from playhead.trace.line import Record


def entry_of(record: Record, tool: str | None) -> Entry | None:
    """Return an event as an entry; None for one that has no place among them. `tool` is that of the call that it is about."""
    event = record.event
    place = _place(event)
    if place is None:
        return None
    section, by = place
    stated = next((value for name in _REASONS if (value := getattr(event, name, None)) is not None), None)
    return Entry(
        **at(record),
        section=section,
        kind=event.kind,
        by=by,
        what=f"chose tool:{event.tool}" if isinstance(event, e.ToolCallStarted) else short(summarise(event)),
        tool=tool,
        call_id=getattr(event, "call_id", None) or None,
        ok=next((value for name in _VERDICTS if (value := getattr(event, name, None)) is not None), None),
        why=reason_of(stated if isinstance(stated, Rationale) else Rationale(why=stated) if stated else None),
    )


def at(record: Record) -> dict[str, Any]:
    """Return the fields of a `Placed`."""
    return {"seq": record.seq, "owner": record.owner, "iteration": record.iteration}


def reason_of(rationale: Rationale | None) -> Reason | None:
    """Return a stated reason as a debrief has it."""
    if rationale is None:
        return None
    sure = rationale.confidence
    known = sure is not None and 0 <= sure <= 1  # not-a-number is neither
    return Reason(
        why=short(rationale.why, LONG),
        refs=tuple(short(ref, 200) for ref in rationale.refs[:20]),
        confidence=sure if known else None,
    )


_REASONS = ("rationale", "reason", "why")
"""Fields of events that hold a stated reason."""
_VERDICTS = ("approved", "satisfied", "verified")


def _place(event: e.EventBase) -> tuple[SectionName, Author] | None:  # noqa: C901, PLR0911, PLR0912 - one line a kind
    match event:
        case e.ToolCallStarted():
            return ("reasons", "model") if event.rationale else None
        case e.DecisionEvaluated():
            return "reasons", "strategy"
        case e.StrategySwitchEvaluated(will_switch=False):
            return "reasons", "strategy"
        case e.StrategySelected() | e.StrategySwitchEvaluated() | e.StrategySwitched():
            return "strategy", "strategy"
        case e.PlanCreated() | e.PlanStepChanged() | e.Reflection():
            return "plan", "model"
        case e.Thought():
            return None if event.name is None else ("thoughts", "model")
        case e.Critique():
            return "answers" if event.thought is None else "thoughts", "model"
        case e.AlternativesConsidered():
            return "alternatives" if event.kept is None else "thoughts", "model"
        case e.AssumptionRecorded():
            return "assumptions", "model"
        case e.CuratorDecision():
            return "curator", "curator"
        case e.ApprovalDecided():
            return "approvals", "approver"
        case e.HookFired() | e.EmissionChanged() | e.EmissionSuppressed():
            return "steering", "hook"
        case e.KillswitchFired():
            return "steering", "killswitch"
        case e.VerifierVerdict() | e.NudgeIssued(nudge="output-rejected"):
            return "reviews", "kernel"
        case e.GuardrailViolation() | e.NudgeIssued():
            return "steering", "kernel"
        case e.ProviderFallback():
            return "models", "kernel"
        case e.ToolCallRepaired():
            return "repaired", "kernel"
        case _:
            return None
