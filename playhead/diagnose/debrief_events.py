"""Convert single events into debrief entries and facts about calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playhead.diagnose.debrief_model import Author, Entry, PathStep, Reason, SectionName
from playhead.diagnose.parts import LONG, at, short
from playhead.diagnose.summaries import arguments, summarise
from playhead.diagnose.vocabulary import plain, sign
from playhead.trace import events as e
from playhead.trace.types import Rationale
from playhead.trace.values import as_text

if TYPE_CHECKING:
    from playhead.trace.line import Record
    from playhead.trace.types import ToolSpec

LAST_WORDS: Final = frozenset({"final-answer"})
"""The built-in tool that ends a run with an answer."""
_LONGEST: Final = 20_000
"""The maximum number of characters kept of a call and its result."""
_DID: Final = re.compile(r"ok|success\w*|sent|\w+ed", re.IGNORECASE)
"""Fields of a result that are true, or not 0, if the call had an effect."""


# --- entries -----------------------------------------------------------------------------------------------------------


def entry_of(record: Record, tool: str | None) -> Entry | None:
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


# --- calls -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class CallFacts:
    """One call, without its result."""

    record: Record
    """The event that starts it."""
    event: e.ToolCallStarted
    spec: ToolSpec
    expected: bool
    """Whether the model had been asked for a reason."""
    writes_before: int
    """The number of side-effecting calls of the run that had ended when this one started."""
    contradiction: str | None = None
    """How the stated reason contradicts the arguments."""
    end: e.ToolCallCompleted | None = None
    """The end of the call, without the result."""
    digest: int = 0
    """Differs for different results."""
    words: str = ""
    """The arguments and the result as text, in lower case, shortened."""
    reported: str | None = None
    """The problem that a returned result reports."""

    @property
    def ok(self) -> bool | None:
        """Whether it returned; None if its end is not in the file."""
        return None if self.end is None else self.end.ok

    @property
    def arguments(self) -> str:
        """The arguments as in Python, shortened."""
        return short(arguments(self.event.args))

    @property
    def action(self) -> str:
        """What it is in a path."""
        return f"{'agent' if self.spec.kind == 'agent' else 'tool'}:{self.event.tool}"

    @property
    def failure(self) -> str:
        """The problem, in the words of its result or error; empty for none."""
        error = self.end.error if self.end else None
        return self.reported or (short(error.message or error.type) if error else "")

    def step(self, repaired: dict[str, list[str]]) -> PathStep:
        """Return it as a step of a path; `repaired` lists what was repaired, by call."""
        stages = repaired.get(self.event.call_id, ())
        notes = [f"repaired: {', '.join(dict.fromkeys(stages))}"] if stages else []
        if (end := self.end) is not None:
            notes += ["cached"] * end.cached + ["abandoned"] * end.abandoned
            notes += [each for each in (end.ended, end.error and short(end.error.type, 100)) if each]
        return PathStep(
            **at(self.record),
            action=self.action,
            ok=self.ok,
            note=", ".join(dict.fromkeys(notes)) or None,
            call_id=self.event.call_id,
            arguments=self.arguments,
            rationale=reason_of(self.event.rationale),
        )

    def complete(self, event: e.ToolCallCompleted, result: str) -> None:
        """Add its end, keeping only the digest and the beginning of the result."""
        self.end = event.model_copy(update={"result": None})
        self.digest = hash(result)
        self.words = f"{as_text(self.event.args)} {result}"[:_LONGEST].lower()
        self.reported = _failure_in(event.result) if event.ok else None


def _failure_in(result: object) -> str | None:
    """Return the problem that a result reports; None if it reports none."""
    if isinstance(result, str):
        return result[:100] if sign("failure").match(plain(result.strip())) else None
    if not isinstance(result, dict):
        return None
    for name, value in result.items():
        undone = _DID.fullmatch(str(name)) and (value is False or (value == 0 and type(value) is int))
        wrong = str(name).lower() in {"error", "errors", "failure"} and value
        state = str(name).lower() in {"status", "state", "result", "outcome"} and isinstance(value, str)
        if undone or wrong or (state and _says_failure(value)):
            return ", ".join(f"{key}: {each}" for key, each in result.items())[:200]
    return None


def _says_failure(state: str) -> bool:
    said = sign("idle").sub(" ", plain(state.strip().replace("_", " ")))
    return bool(sign("failure").search(said) or sign("not").match(said))
