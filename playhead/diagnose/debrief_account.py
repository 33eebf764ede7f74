"""The end of the fold: the debrief of the collected facts. Every sentence is based on the trace."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.diagnose import debrief_model as m
from playhead.diagnose.debrief_events import reason_of
from playhead.diagnose.debrief_rules import ABOUT_ANSWERS, flags_of
from playhead.diagnose.numbers import MOST
from playhead.diagnose.parts import LONG, content_text, cost_text, counted, short, shown, spent, total_text
from playhead.trace.events.run import NOT_KNOWN
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.diagnose.debrief_facts import RunFacts

TERMINATED_BY: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("endings.toml").read_text(encoding="utf-8")
)
"""Every reason code that Playhead itself gives, with its meaning. Hooks and custom killswitches may give others."""
ANSWERS: Final = {
    "unsatisfied": ("best answer", "no critic was satisfied with it"),
    "output_rejected": ("last answer", "a review refused it"),
    "required_tools_missing": ("answer", "given without the tools that had to be called"),
}
"""Descriptions of an output whose answer was not accepted."""


def output_kind(outcome: m.Outcome, by: str | None) -> tuple[str, str]:
    """Return the kind of output for this ending, and the reason why it is not an answer; empty for an answer."""
    if outcome == "success":
        return "answer", ""
    return ANSWERS.get(by or "", ("best result so far", "the agent gave no answer of its own"))


def account(run: RunFacts, state: m.RecordingState, problems: tuple[str, ...]) -> m.Debrief:
    """Return the debrief for the facts of a run."""
    flags = flags_of(run.agents.values())
    metrics, ended, outcome = _metrics(run), _termination(run), _outcome(run)
    confidence, basis = _confidence(run, state, flags)
    header, end = run.header, run.ending[1] if run.ending else None
    answer = run.answer if run.answer is not None or end is None or end.output is None else shown(end.output, LONG)
    return m.Debrief(
        run_id=header.run_id if header else "",
        agent=header.agent.name if header else "",
        model=header.agent.model if header else "",
        recording=state,
        replay_of=header.replay_of if header else None,
        resumed_from=header.resumed_from if header else None,
        imported=header.imported.format if header and header.imported else None,
        goal=short(content_text(header.task), LONG) if header else "",
        outcome=outcome,
        honesty=_honesty(run, flags),
        confidence=confidence,
        confidence_basis=basis,
        answer=answer,
        strategy=short(header.agent.strategy, 100) if header else "",
        strategy_used=short(end.strategy_used, 100) if end and end.strategy_used else None,
        path=tuple(
            each if isinstance(each, m.PathStep) else each.step(run.agents[each.record.owner].repaired)
            for each in run.path
        ),
        entries=tuple(run.entries.values()),
        agents=run.endings,
        flags=flags,
        errors=tuple(run.errors.values()),
        metrics=metrics,
        termination=ended,
        claim=_claim(outcome, confidence, ended, metrics),
        caveats=tuple(_caveats(run, state, problems)),
    )


# --- outcome ----------------------------------------------------------------------------------------------------------


def _outcome(run: RunFacts) -> m.Outcome:
    if run.ending is None:
        return "unknown"
    _, end = run.ending
    if end.status == "done" and end.terminated_by in ANSWERED:
        return "success"
    if end.terminated_by == NOT_KNOWN:
        return "unknown"
    return "partial" if end.status == "done" and end.output is not None else "failed"


def _honesty(run: RunFacts, flags: tuple[m.Flag, ...]) -> m.Honesty:
    if _outcome(run) != "success":
        return "no-claim"
    if any(flag.rule in ABOUT_ANSWERS for flag in flags):
        return "suspect"
    return "consistent" if any(call.ok for call in run.calls() if call.spec.kind == "function") else "unverified"


def _confidence(run: RunFacts, state: m.RecordingState, flags: tuple[m.Flag, ...]) -> tuple[m.Level, tuple[str, ...]]:
    """Return how well the trace supports the answer: the weakest of its grounds."""
    outcome = _outcome(run)
    weak: list[tuple[m.Level, str]] = []
    if state == "damaged":
        weak.append(("low", "the file is damaged"))
    if outcome != "success":
        weak.append(("medium" if outcome == "partial" else "low", f"the outcome is {outcome}"))
    for severity, level in (("high", "low"), ("warning", "medium")):
        if grave := sum(flag.severity == severity for flag in flags):
            weak.append(("low" if level == "low" else "medium", f"{counted(grave, 'flag')} of severity {severity}"))
    calls = [call for call in run.calls() if call.spec.kind == "function"]
    found = _found(run)
    if outcome == "success" and not any(call.ok for call in calls):
        weak.append(("medium", "no tool call succeeded" if calls else "no tool was called"))
    elif outcome == "success" and not found and not any(flag.rule in ABOUT_ANSWERS for flag in flags):
        weak.append(("medium", "the answer holds no figure and no deed that could be compared with the trace"))
    low = any(level == "low" for level, _ in weak)
    return "low" if low else "medium" if weak else "high", (*(text for _, text in weak), *found)


def _found(run: RunFacts) -> tuple[str, ...]:
    """Return the supported parts of the root's answer; empty for none."""
    root = run.agents.get("root")
    numbers = ((root.figures, "figure"), (root.deeds, "deed")) if root else ()
    found = " and ".join(counted(number, noun) for number, noun in numbers if number)
    return (f"in the trace, or following from it: {found} of the answer",) if found else ()


def _termination(run: RunFacts) -> m.Termination | None:
    if run.ending is None:
        return None
    seq, end = run.ending
    meaning = TERMINATED_BY.get(end.terminated_by) or f"{end.terminated_source} ended it"
    return m.Termination(
        by=short(end.terminated_by, 100),
        source=short(end.terminated_source, 100),
        meaning=short(meaning),
        because=None if end.terminated_because is None else short(end.terminated_because),
        rationale=reason_of(run.last_reason),
        error=None if end.error is None else short(end.error, LONG),
        seq=seq,
    )


# --- figures ----------------------------------------------------------------------------------------------------------


def _metrics(run: RunFacts) -> m.Metrics:
    end = run.ending[1] if run.ending else None
    calls = run.calls()
    expected = [call for call in run.all_calls() if call.expected]
    return m.Metrics(
        **spent(*run.spending.total()),
        duration_ms=end.duration_ms if end else (run.last_us - (run.first_us or 0)) / 1000,
        iterations=end.iterations if end else run.last_iteration + 1,
        model_calls=run.model_calls,
        model_failures=run.model_failures,
        tool_calls=len(calls),
        tool_failures=sum(call.ok is False for call in calls),
        agents=1 + len(run.endings),
        reasons_expected=len(expected),
        reasons_stated=sum(call.event.rationale is not None for call in expected),
    )


def _claim(outcome: m.Outcome, support: m.Level, ended: m.Termination | None, metrics: m.Metrics) -> str:
    cost = cost_text(metrics.cost_usd, metrics.cost_unknown) or "cost not known"
    counts = [count for count in (metrics.tokens_in, metrics.tokens_out) if count is not None]
    tokens = total_text(sum(counts) if counts else None, metrics.usage_unknown, "{} tok")
    unfinished = "" if ended is not None else " (the trace has no end)"
    claimed = outcome == "success"
    said = f"Agent's claim: success | support in the trace: {support}" if claimed else f"Outcome: {outcome}"
    return f"{said}{unfinished} | {tokens} | {metrics.duration_ms:.0f}ms | {cost}"


# --- sentences --------------------------------------------------------------------------------------------------------


def _caveats(run: RunFacts, state: m.RecordingState, problems: tuple[str, ...]) -> Iterator[str]:
    if run.header is None:
        yield "the first event is missing: who was asked what is not known"
    if run.ending is None:
        yield "this run has no end in the file: it is still going on, or was killed; nothing here is final"
    if state in {"truncated", "damaged"}:
        what = short(problems[0], 160) if problems else "see playhead check"
        yield f"the file is {state} ({what}); what is missing is not accounted for"
    if run.ending is not None and run.ending[1].lost_events:
        yield f"{run.ending[1].lost_events} events could not be written and are missing"
    if run.header is not None and run.header.redacted:
        yield "redaction rules changed the texts before they were recorded; numbers and reasons may look ungrounded"
    if unanswered := sum(call.ok is None for call in run.all_calls()):
        yield f"{counted(unanswered, 'call')} of a tool without a result in the file"
    yield from (short(each, 300) for each in run.unmade.notes())
    if run.numbers.full:
        yield f"the run was shown more than {MOST:,} different numbers; the answer's numbers were not checked"
    if run.unknown:
        yield f"events of kinds that this version does not know were left out: {short(', '.join(sorted(run.unknown)))}"
