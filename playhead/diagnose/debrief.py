"""A summary of a run's decisions: the task, the calls and their reasons, the ending, and unsupported claims.

It follows from the events alone: no model is called, and no reason is invented. docs/guides/audit-a-decision.md
describes what a debrief does not prove.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.diagnose import debrief_model as m
from playhead.diagnose.debrief_facts import RunFacts
from playhead.diagnose.debrief_findings import findings_of
from playhead.diagnose.debrief_rules import flags_of
from playhead.diagnose.debrief_story import entries_of, errors_of, path_of, reason_of
from playhead.diagnose.numbers import MOST
from playhead.diagnose.parts import HARMS, LONG, content_text, cost_text, counted, short, shown, spent, total_text
from playhead.diagnose.spending import spent_by
from playhead.diagnose.unmade import unmade_calls
from playhead.trace import events as e
from playhead.trace.events.run import NOT_KNOWN
from playhead.trace.format import ANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.diagnose.recording import Recording

TERMINATED_BY: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("endings.toml").read_text(encoding="utf-8")
)
"""Every reason code that Playhead itself gives, with its meaning. Hooks and custom killswitches may give others."""
ANSWERS: Final = {
    "unsatisfied": ("best answer", "no critic was satisfied with it"),
    "output_rejected": ("last answer", "a review refused it"),
    "output_truncated": ("answer, cut off", "the provider ended it at a limit of length"),
    "output_filtered": ("answer, or a part of it", "the provider kept the rest back"),
    "required_tools_missing": ("answer", "given without the tools that had to be called"),
}
"""Descriptions of an output whose answer was not accepted."""


def build_debrief(recording: Recording) -> m.Debrief:
    """Return the debrief of a run. If the recording is incomplete, its `caveats` say what is missing."""
    run, header, end = RunFacts(recording), recording.header, recording.ending
    flags = flags_of(run.agents.values())
    metrics, ended, outcome = _metrics(run), _termination(recording), _outcome(end)
    stated = run.agents["root"].answer or end
    debrief = m.Debrief(
        run_id=header.run_id,
        agent=header.agent.name,
        model=header.agent.model,
        recording=recording.status,
        replay_of=header.replay_of,
        resumed_from=header.resumed_from,
        imported=header.imported.format if header.imported else None,
        goal=short(content_text(header.task), LONG),
        outcome=outcome,
        checked=_checked(run),
        answer=None if stated is None or stated.output is None else shown(stated.output, LONG),
        strategy=short(header.agent.strategy, 100),
        strategy_used=short(end.strategy_used, 100) if end and end.strategy_used else None,
        path=tuple(path_of(run)),
        entries=entries_of(run),
        agents=_sub_agents(recording),
        flags=flags,
        errors=errors_of(run),
        metrics=metrics,
        termination=ended,
        claim=_claim(outcome, flags, ended, metrics),
        caveats=tuple(_caveats(run)),
    )
    return debrief.model_copy(update={"findings": findings_of(recording, debrief)})


def output_kind(outcome: m.Outcome, by: str | None) -> tuple[str, str]:
    """Return the kind of output for this ending, and the reason why it is not an answer; empty for an answer."""
    if outcome == "success":
        return "answer", ""
    return ANSWERS.get(by or "", ("last result", "the agent gave no answer of its own"))


# --- outcome ----------------------------------------------------------------------------------------------------------


def _outcome(end: e.RunCompleted | None) -> m.Outcome:
    if end is None or end.terminated_by == NOT_KNOWN:
        return "unknown"
    if end.status == "done" and end.terminated_by in ANSWERED:
        return "success"
    return "partial" if end.status == "done" and end.output is not None else "failed"


def _checked(run: RunFacts) -> str:
    """Return what of the root's answer was found in the trace; whether it was used rightly is not known."""
    root = run.agents["root"]
    if root.answer is None:
        return ""
    figures = (
        f"{counted(root.figures, 'figure')} of the answer in the trace, or following from it" if root.figures else ""
    )
    deeds = f"{counted(root.deeds, 'claimed deed')} with a call that succeeded" if root.deeds else ""
    found = " and ".join(filter(None, (figures, deeds))) or "no figure and no deed of the answer was found in the trace"
    return f"{found}; whether it is right is not known"


def _termination(recording: Recording) -> m.Termination | None:
    end, snapshots = recording.ending, [each.event for each in recording.root.records]
    if end is None:
        return None
    reasons = [each.termination_rationale for each in snapshots if isinstance(each, e.KernelStateSnapshot)]
    meaning = TERMINATED_BY.get(end.terminated_by) or f"{end.terminated_source} ended it"
    if end.terminated_by == "end_turn" and end.terminated_source.startswith("strategy:"):
        meaning = "the strategy came to its end"
    return m.Termination(
        by=short(end.terminated_by, 100),
        source=short(end.terminated_source, 100),
        meaning=short(meaning),
        because=None if end.terminated_because is None else short(end.terminated_because),
        rationale=reason_of(reasons[-1]) if reasons else None,
        error=None if end.error is None else short(end.error, LONG),
        seq=next(each.seq for each in recording.root.records if each.event is end),
    )


def _sub_agents(recording: Recording) -> dict[str, str | None]:
    """Return the reason code of each sub-agent's end; None for one without an end in the file."""
    return {
        name: owner.completed.terminated_by if owner.completed else None
        for name, owner in recording.owners.items()
        if isinstance(owner.started, e.AgentStarted)
    }


# --- figures ----------------------------------------------------------------------------------------------------------


def _metrics(run: RunFacts) -> m.Metrics:
    recording, kinds = run.recording, run.recording.counts()
    calls = [call for call in run.calls if call.spec.kind != "meta"]
    expected = [call for call in run.calls if call.expected]
    return m.Metrics(
        **spent(*spent_by(recording.records)),
        duration_ms=recording.duration_ms,
        iterations=recording.root.iterations,
        model_calls=kinds.get("llm-requested", 0),
        model_failures=kinds.get("llm-failed", 0),
        tool_calls=len(calls),
        tool_failures=sum(call.ok is False for call in calls),
        agents=1 + len(_sub_agents(recording)),
        reasons_expected=len(expected),
        reasons_stated=sum(call.event.rationale is not None for call in expected),
    )


def _claim(outcome: m.Outcome, flags: Sequence[m.Flag], ended: m.Termination | None, metrics: m.Metrics) -> str:
    cost = cost_text(metrics.cost_usd, metrics.cost_unknown) or "cost not known"
    counts = [count for count in (metrics.tokens_in, metrics.tokens_out) if count is not None]
    tokens = total_text(sum(counts) if counts else None, metrics.usage_unknown, "{} tok")
    unfinished = "" if ended is not None else " (the trace has no end)"
    said = f"Agent's claim: success | {counted(len(flags), 'flag')}" if outcome == "success" else f"Outcome: {outcome}"
    return f"{said}{unfinished} | {tokens} | {metrics.duration_ms:.0f}ms | {cost}"


# --- sentences --------------------------------------------------------------------------------------------------------


def _caveats(run: RunFacts) -> Iterator[str]:
    recording, end = run.recording, run.recording.ending
    if end is None:
        yield "this run has no end in the file: it is still going on, or was killed; nothing here is final"
    if recording.problems:
        what = f"the file is {HARMS[recording.status]} ({short(str(recording.problems[0]), 160)})"
        yield f"{what}; what is missing is not accounted for"
    if end is not None and end.lost_events:
        yield f"{end.lost_events} events could not be written and are missing"
    if recording.header.redacted:
        yield "redaction rules changed the texts before they were recorded; numbers and reasons may look ungrounded"
    if unanswered := sum(call.ok is None for call in run.calls):
        yield f"{counted(unanswered, 'call')} of a tool without a result in the file"
    yield from (short(each, 300) for each in unmade_calls(recording.records))
    if run.numbers.full:
        yield f"the run was shown more than {MOST:,} different numbers; the answer's numbers were not checked"
    if unknown := {each.kind for each in recording.records if isinstance(each.event, e.UnknownEvent)}:
        yield f"events of kinds that this version does not know were left out: {short(', '.join(sorted(unknown)))}"
