"""What happened in a run, in its order: the path of each agent, what was decided and why, and the errors on the way."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Author, Entry, ErrorSeen, PathStep, Reason, SectionName
from playhead.diagnose.parts import LONG, at, short, shown
from playhead.diagnose.summaries import summarise
from playhead.trace import events as e
from playhead.trace.types import Rationale

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from playhead.diagnose.debrief_calls import CallFacts
    from playhead.diagnose.debrief_facts import RunFacts
    from playhead.trace.line import Record

LAST_WORDS: Final = frozenset({"final-answer"})
"""The built-in tool that ends a run with an answer."""
_REASONS: Final = ("rationale", "reason", "why")
"""Fields of events that hold a stated reason."""
_VERDICTS: Final = ("approved", "satisfied", "verified")
_SECTIONS: Final[tuple[tuple[SectionName, Author, tuple[type[e.EventBase], ...]], ...]] = (
    ("reasons", "model", (e.ToolCallStarted,)),
    ("reasons", "strategy", (e.DecisionEvaluated,)),
    ("strategy", "strategy", (e.StrategySelected, e.StrategySwitchEvaluated, e.StrategySwitched)),
    ("plan", "model", (e.PlanCreated, e.PlanStepChanged, e.Reflection)),
    ("thoughts", "model", (e.Thought, e.Critique, e.AlternativesConsidered)),
    ("assumptions", "model", (e.AssumptionRecorded,)),
    ("curator", "curator", (e.CuratorDecision,)),
    ("approvals", "approver", (e.ApprovalDecided,)),
    ("steering", "hook", (e.HookFired, e.EmissionChanged, e.EmissionSuppressed)),
    ("steering", "killswitch", (e.KillswitchFired,)),
    ("steering", "kernel", (e.GuardrailViolation, e.NudgeIssued)),
    ("reviews", "kernel", (e.VerifierVerdict,)),
    ("models", "kernel", (e.ProviderFallback,)),
    ("repaired", "kernel", (e.ToolCallRepaired,)),
)
_PLACES: Final = {kind: (section, author) for section, author, kinds in _SECTIONS for kind in kinds}


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


# --- the path ---------------------------------------------------------------------------------------------------------


def path_of(run: RunFacts) -> Iterator[PathStep]:
    """Yield the calls, the answers and the switches of strategy."""
    for record in run.recording.records:
        event, call = record.event, run.call_of(record)
        if isinstance(event, e.ToolCallStarted) and call is not None:
            yield _step(call)
        elif isinstance(event, e.StrategySwitched):
            yield PathStep(**at(record), action=f"switch:{event.to_strategy}", ok=True)
        elif isinstance(event, e.FinalAnswer):
            calls = run.agents[record.owner].calls
            if not calls or calls[-1].event.tool not in LAST_WORDS:
                yield PathStep(**at(record), action="answer", ok=True)


def _step(call: CallFacts) -> PathStep:
    notes = [f"repaired: {', '.join(dict.fromkeys(call.repaired))}"] if call.repaired else []
    if (end := call.end) is not None:
        notes += ["cached"] * end.cached + ["abandoned"] * end.abandoned
        notes += [each for each in (end.ended, end.error and short(end.error.type, 100)) if each]
    return PathStep(
        **at(call.record),
        action=call.action,
        ok=call.ok,
        note=", ".join(dict.fromkeys(notes)) or None,
        call_id=call.event.call_id,
        arguments=call.arguments,
        rationale=reason_of(call.event.rationale),
    )


# --- entries ----------------------------------------------------------------------------------------------------------


def entries_of(run: RunFacts) -> tuple[Entry, ...]:
    """Return what was decided, assumed, rejected, judged, planned, allowed and steered, with every stated reason."""
    found: dict[Hashable, Entry] = {}
    judged = _judged_answers(run)
    for record in run.recording.records:
        event, call = record.event, run.call_of(record)
        found |= {(record.seq, number): each for number, each in enumerate(_rejected(record))}
        entry = _entry(record, call.event.tool if call else event.__dict__.get("tool"))
        if entry is None:
            continue
        where: Hashable = record.seq
        if isinstance(event, e.PlanStepChanged):  # where the step stands now
            where = (record.owner, event.plan_id, event.step_id)
            found.pop(where, None)
        elif answer := judged.get(record.seq):
            entry = entry.model_copy(update={"what": f'{entry.what} The answer: "{short(answer, 120)}"'})
        found[where] = entry
    return tuple(found.values())


def _entry(record: Record, tool: str | None) -> Entry | None:
    """Return an event as an entry; None if it is not part of any section. `tool` is the tool of its call."""
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


def _place(event: e.EventBase) -> tuple[SectionName, Author] | None:
    """Return the section of an event and the author of its decision; None if it belongs to no section."""
    match event:
        case e.ToolCallStarted(rationale=None) | e.Thought(name=None):
            return None
        case e.StrategySwitchEvaluated(will_switch=False):
            return "reasons", "strategy"
        case e.Critique(thought=None):
            return "answers", "model"
        case e.AlternativesConsidered(kept=None):
            return "alternatives", "model"
        case e.NudgeIssued(nudge="output-rejected"):
            return "reviews", "kernel"
    return _PLACES.get(type(event))


def _rejected(record: Record) -> Iterator[Entry]:
    """Yield the alternatives to a call that the model says it rejected."""
    event = record.event
    if isinstance(event, e.ToolCallStarted) and event.rationale is not None:
        for option in event.rationale.alternatives:
            yield Entry(
                **at(record),
                section="alternatives",
                kind=event.kind,
                by="model",
                what=short(f"{event.tool}: not {option.option} ({option.rejected_because})"),
                tool=event.tool,
                call_id=event.call_id,
            )


def _judged_answers(run: RunFacts) -> dict[int, str]:
    """Return the answer that each critic judged, by the event of its critique."""
    found: dict[int, str] = {}
    for owner in run.recording.owners.values():
        answering, is_answer, newest = frozenset[str](), False, ""
        for record in owner.records:
            match record.event:
                case e.RunStarted() | e.AgentStarted() as event:
                    answering = event.agent.strategy_declares.answering
                case e.StrategySelected() | e.StrategySwitched() as event:
                    answering = event.declares.answering
                case e.LlmRequested() as event:
                    is_answer = event.purpose in answering
                case e.LlmResponded() as event if is_answer:
                    newest = "" if event.tool_calls else event.text.strip()
                case e.ToolCallStarted(args=dict() as args) as event if is_answer and event.tool in LAST_WORDS:
                    newest = shown(args.get("output", args.get("summary")))
                case e.Critique(thought=None):
                    found[record.seq], newest = newest, ""
    return found


# --- errors -----------------------------------------------------------------------------------------------------------


def errors_of(run: RunFacts) -> tuple[ErrorSeen, ...]:
    """Return the errors on the way, equal ones once."""
    found: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for record in run.recording.records:
        if (error := _error(record, run.call_of(record))) is not None:
            found[record.owner, *error].append(record)
    return tuple(
        ErrorSeen(**at(records[0]), where=where, type=name, message=message, seqs=tuple(each.seq for each in records))
        for (_, where, name, message), records in found.items()
    )


def _error(record: Record, call: CallFacts | None) -> tuple[str, str, str] | None:
    """Return where an error occurred, its type and its message; None for an event that is none."""
    match record.event:
        case e.LlmFailed(error=error):
            found = ("model", error.type, error.message)
        case e.ToolCallCompleted(ok=False, error=error) if call is not None:
            found = (call.action, error.type, error.message) if error else (call.action, "error", "no reason given")
        case e.ToolCallCompleted(ok=True) if call is not None and call.reported is not None:
            found = (call.action, "reported", call.reported)
        case e.StructuredOutputFailed() as event:
            found = ("answer", f"no {event.expected}", event.error)
        case e.HookFailed() as event:
            found = (f"hook:{event.hook}", "HookFailed", f"at {event.where}: {event.error}")
        case _:
            return None
    return found[0], short(found[1], 100), short(found[2])
