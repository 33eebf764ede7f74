"""The end of the fold: what the events add up to. Every sentence is made of facts of the trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from playhead.diagnose import debrief_model as m
from playhead.diagnose.debrief_facts import LONG, SHORT, content_text, finite, reason_of, short, shown
from playhead.diagnose.debrief_rules import ABOUT_ANSWERS, flags_of
from playhead.diagnose.debrief_strategies import stages_of
from playhead.diagnose.numbers import MOST
from playhead.diagnose.tokens import cost_text, total_text
from playhead.trace.events.run import ANSWERED, FIXES, NOT_KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playhead.diagnose.debrief import DebriefFold
    from playhead.diagnose.debrief_facts import AgentFacts, CallFacts
    from playhead.diagnose.debrief_strategies import Stages

MOST_FINDINGS: Final = 20
"""Findings that a debrief lists, the newest."""

MEANINGS: Final = {
    "end_turn": "the model replied in plain text and called nothing more: that is its answer",
    "final_answer": "the model marked its reply as the final answer",
    "final_answer_tool": "the model gave its answer through the final-answer tool",
    "max_iterations": "the limit of turns was reached before the model gave an answer",
    "output_truncated": "the provider cut the reply off (its length limit), so it counts as no answer",
    "output_filtered": "the provider kept the reply, or a part of it, back, so it counts as no answer",
    "required_tools_missing": "the model answered without having called the tools it had to call",
    "unsatisfied": "the critic was satisfied with no answer, or could not be understood",
    "output_rejected": "a review refused the last answer, as often as it may",
    NOT_KNOWN: "the spans that it was imported from do not say how",
    "llm_error": "the model could not be asked, or gave no answer",
    "error": "the strategy, or something it called, raised an error",
    "cancelled": "the program that ran the agent cancelled it",
    "trace_error": "an event could not be recorded, and the run was told to stop for that",
    "parent_ended": "the agent above it ended first",
    "replay_stopped": "the replay left what the recording can answer",
    "hook_failed": "a hook that has to look at everything failed, so nothing was let out",
    "hook_stop": "a hook of the user's stopped it in order",
    "hook_terminate": "a hook of the user's ended it as failed",
    "budget_limit": "the next request might have spent more than was left",
    "tool_limit": "a tool would have been called once more than it may be",
    "timeout_after": "its time was up",
    "watchdog": "it had got nowhere for too long",
    "circuit_breaker": "a tool or a provider failed again and again",
    "require_approval_for": "somebody did not allow a call",
    "stop_when": "a function of the user's said so",
    "kill_file": "somebody made the file that stops it",
    "kill": "somebody stopped it with `playhead kill`",
}
"""What the kernel's own reason codes mean."""

ANSWERS: Final = {
    "unsatisfied": ("best answer", "no critic was satisfied with it"),
    "output_rejected": ("last answer", "a review refused it"),
    "required_tools_missing": ("answer", "given without the tools that had to be called"),
}
"""What the output is where the model did answer, but the answer does not stand."""


def output_kind(outcome: m.Outcome, by: str | None) -> tuple[str, str]:
    """Return what the output of a run that ended so is, and why it is no more than that; that is empty for an answer."""
    if outcome == "success":
        return "answer", ""
    return ANSWERS.get(by or "", ("best result so far", "the agent gave no answer of its own"))


def account(fold: DebriefFold, state: m.RecordingState, problems: tuple[str, ...]) -> m.Debrief:
    """Return what a fold adds up to."""
    flags = flags_of(fold.agents.values())
    metrics, ended = _metrics(fold), _termination(fold)
    outcome, honesty = _outcome(fold), _honesty(fold, flags)
    confidence, basis = _confidence(fold, state, flags)
    header, used = fold.header, fold.ending[1].strategy_used if fold.ending else None
    repaired = fold.strategies.repaired_calls(fold.agents)
    stages = stages_of(repaired)
    return m.Debrief(
        run_id=header.run_id if header else "",
        agent=header.agent.name if header else "",
        model=header.agent.model if header else "",
        recording=state,
        replay=_replay(fold),
        resumed_from=header.resumed_from if header else None,
        imported=header.imported.format if header and header.imported else None,
        goal=short(content_text(header.task), LONG) if header else "",
        outcome=outcome,
        honesty=honesty,
        confidence=confidence,
        confidence_basis=basis,
        summary=" ".join(_summary(fold, ended, metrics)),
        answer=_answer(fold),
        strategy=short(header.agent.strategy, 100) if header else "",
        strategy_used=short(used, 100) if used else None,
        strategies=tuple(fold.strategies.choices),
        judged_answers=fold.strategies.judged_answers(),
        plans=fold.strategies.plans(),
        reflections=tuple(fold.strategies.reflections),
        thoughts=fold.strategies.thoughts(),
        repaired=repaired,
        path=tuple(_step(step, call, stages) for step, call in fold.path),
        rationale=(*fold.decisions, *_last_decision(ended)),
        assumptions=tuple(fold.assumptions),
        alternatives=tuple(fold.alternatives),
        curator=tuple(fold.curator),
        approvals=tuple(fold.approvals),
        steering=tuple(fold.steering),
        agents=tuple(fold.endings.values()),
        flags=flags,
        key_findings=tuple(fold.findings.values())[-MOST_FINDINGS:],
        errors=(*fold.errors.values(), *_last_error(ended)),
        lessons=tuple(lesson for agent in fold.agents.values() for lesson in _lessons(agent)),
        tools_used=_tools(fold),
        metrics=metrics,
        termination=ended,
        claim=_claim(outcome, confidence, ended, metrics),
        caveats=tuple(_caveats(fold, state, problems)),
    )


# --- outcome ----------------------------------------------------------------------------------------------------------


def _outcome(fold: DebriefFold) -> m.Outcome:
    if fold.ending is None:
        return "unknown"
    _, end = fold.ending
    if end.status == "done" and end.terminated_by in ANSWERED:
        return "success"
    if end.terminated_by == NOT_KNOWN:
        return "unknown"
    return "partial" if end.status == "done" and end.output is not None else "failed"


def _honesty(fold: DebriefFold, flags: tuple[m.Flag, ...]) -> m.Honesty:
    if _outcome(fold) != "success":
        return "no-claim"
    if any(flag.rule in ABOUT_ANSWERS for flag in flags):
        return "suspect"
    return "consistent" if any(call.ok for call in _calls(fold) if call.kind == "function") else "unverified"


def _confidence(
    fold: DebriefFold, state: m.RecordingState, flags: tuple[m.Flag, ...]
) -> tuple[m.Level, tuple[str, ...]]:
    """Return how far the trace supports the answer: the weakest of what it rests on."""
    outcome = _outcome(fold)
    weak: list[tuple[m.Level, str]] = []
    if state == "damaged":
        weak.append(("low", "the file is damaged"))
    if outcome != "success":
        weak.append(("low" if outcome in {"failed", "unknown"} else "medium", f"the outcome is {outcome}"))
    grave, doubtful = (sum(flag.severity == severity for flag in flags) for severity in ("high", "warning"))
    if grave:
        weak.append(("low", f"{_count(grave, 'flag')} of severity high"))
    if doubtful:
        weak.append(("medium", f"{_count(doubtful, 'flag')} of severity warning"))
    calls = [call for call in _calls(fold) if call.kind == "function"]
    found = _found(fold)
    if outcome == "success" and not any(call.ok for call in calls):
        weak.append(("medium", "no tool call succeeded" if calls else "no tool was called"))
    elif outcome == "success" and not found and not any(flag.rule in ABOUT_ANSWERS for flag in flags):
        weak.append(("medium", "the answer holds no figure and no deed that could be compared with the trace"))
    low = any(level == "low" for level, _ in weak)
    return "low" if low else "medium" if weak else "high", (*(text for _, text in weak), *([found] if found else []))


def _found(fold: DebriefFold) -> str:
    """Return what of the root's answer stands in the trace; empty for nothing."""
    root = fold.agents.get("root")
    figures, deeds = (root.figures, root.deeds) if root else (0, 0)
    told = [_count(number, noun) for number, noun in ((figures, "figure"), (deeds, "deed")) if number]
    return (
        f"{' and '.join(told)} of the answer {'is' if figures + deeds == 1 else 'are'} in the trace, or follow{'s' if figures + deeds == 1 else ''} from it"
        if told
        else ""
    )


def _termination(fold: DebriefFold) -> m.Termination | None:
    if fold.ending is None:
        return None
    seq, end = fold.ending
    rationale = fold.snapshot[1].termination_rationale if fold.snapshot else None
    meaning = MEANINGS.get(end.terminated_by) or f"{end.terminated_source} ended it"
    if "Fix: " not in (end.terminated_because or "") and end.terminated_by in FIXES:
        meaning = f"{meaning}. {FIXES[end.terminated_by]}"
    return m.Termination(
        by=short(end.terminated_by, 100),
        source=short(end.terminated_source, 100),
        meaning=short(meaning),
        because=None if end.terminated_because is None else short(end.terminated_because),
        rationale=reason_of(rationale),
        error=None if end.error is None else short(end.error, LONG),
        seq=seq,
    )


def _last_decision(ended: m.Termination | None) -> Iterator[m.Decision]:
    if ended is None:
        return
    reason = ended.rationale or (m.Reason(why=ended.because) if ended.because else None)
    if reason is not None:
        kind = ended.source.partition(":")[0]
        by: m.Author = kind if kind in {"strategy", "hook", "killswitch"} else "kernel"  # type: ignore[assignment]
        yield m.Decision(
            seq=ended.seq,
            owner="root",
            iteration=None,
            topic="end",
            decision=f"termination:{ended.by}",
            by=by,
            rationale=reason,
        )


def _last_error(ended: m.Termination | None) -> Iterator[m.ErrorSeen]:
    if ended is not None and ended.error is not None:
        yield m.ErrorSeen(
            seq=ended.seq, owner="root", iteration=None, where="run", type=ended.by, message=short(ended.error)
        )


def _answer(fold: DebriefFold) -> str | None:
    if fold.answer is not None or fold.ending is None or fold.ending[1].output is None:
        return fold.answer
    return shown(fold.ending[1].output, LONG)


# --- figures ----------------------------------------------------------------------------------------------------------


def _metrics(fold: DebriefFold) -> m.Metrics:
    end = fold.ending[1] if fold.ending else None
    usage, cost_usd, cost_unknown = fold.spending.total()
    calls = list(_calls(fold))
    expected = [call for call in fold_calls(fold) if call.expected]
    return m.Metrics(
        tokens_in=usage.known(usage.input_tokens),
        tokens_out=usage.known(usage.output_tokens),
        usage_unknown=usage.unknown or 0,
        duration_ms=finite(end.duration_ms) if end else (fold.last_us - (fold.first_us or 0)) / 1000,
        iterations=end.iterations if end else fold.last_iteration + 1,
        cost_usd=cost_usd,
        cost_unknown=cost_unknown or 0,
        model_calls=fold.model_calls,
        model_failures=fold.model_failures,
        tool_calls=len(calls),
        tool_failures=sum(call.ok is False for call in calls),
        agents=1 + len(fold.endings),
        reasons_expected=len(expected),
        reasons_stated=sum(call.reason is not None for call in expected),
    )


def _tools(fold: DebriefFold) -> tuple[m.ToolUse, ...]:
    by_tool: dict[str, list[CallFacts]] = {}
    for call in fold_calls(fold):
        by_tool.setdefault(call.tool, []).append(call)
    return tuple(_use(tool, calls) for tool, calls in by_tool.items())


def _use(tool: str, calls: list[CallFacts]) -> m.ToolUse:
    ended = [call for call in calls if call.ok is not None]
    succeeded = sum(call.ok is True for call in ended)
    return m.ToolUse(
        name=short(tool, 100),
        calls=len(calls),
        succeeded=succeeded,
        success_rate=round(succeeded / len(ended), 4) if ended else None,
        total_ms=round(finite(sum(call.duration_ms for call in ended)), 3),
    )


def _replay(fold: DebriefFold) -> m.ReplayOrigin | None:
    header = fold.header
    if header is None or header.replay_of is None:
        return None
    overrides = {short(name, 100): shown(value) for name, value in header.overrides.items()}
    return m.ReplayOrigin(
        replay_of=header.replay_of,
        mode=header.replay_mode,
        overrides=overrides,
        rungs=dict(fold.rungs),
        diverged=fold.diverged,
    )


def _claim(outcome: m.Outcome, support: m.Level, ended: m.Termination | None, metrics: m.Metrics) -> str:
    cost = cost_text(metrics.cost_usd, metrics.cost_unknown) or "cost not known"
    counts = [count for count in (metrics.tokens_in, metrics.tokens_out) if count is not None]
    tokens = total_text(sum(counts) if counts else None, metrics.usage_unknown, "{} tok")
    unfinished = "" if ended is not None else " (the trace has no end)"
    said = (
        f"Agent's claim: success | support in the trace: {support}" if outcome == "success" else f"Outcome: {outcome}"
    )
    return f"{said}{unfinished} | {tokens} | {metrics.duration_ms:.0f}ms | {cost}"


# --- sentences --------------------------------------------------------------------------------------------------------


def _summary(fold: DebriefFold, ended: m.Termination | None, metrics: m.Metrics) -> Iterator[str]:
    header = fold.header
    if header is None:
        yield "The trace does not say what was asked."
    else:
        goal = short(" ".join(content_text(header.task)[:LONG].split()), 160)
        replay = f", as a replay of {header.replay_of}" if header.replay_of else ""
        yield f'{header.agent.name} ({header.agent.model}){replay} was asked: "{goal}"'
    yield f"In {_count(metrics.iterations, 'turn')} it {_deeds(fold)}."
    if ended is None:
        yield "The trace has no end: the run is still going on, or was killed."
        return
    error = f": {short(ended.error, 160)}" if ended.error and ended.error != ended.because else ""
    because = f' ("{short(ended.because, 160)}")' if ended.because else ""
    answer = _answer(fold)
    left = (
        ""
        if answer is None
        else f' Its {output_kind(_outcome(fold), ended.by)[0]}: "{short(" ".join(answer.split()), 160)}"'
    )
    yield f"It ended by {ended.by}{because}, which means that {ended.meaning}{error}.{left}"


def _deeds(fold: DebriefFold) -> str:
    uses = Counter(call.action for call in _calls(fold))
    failed = Counter(call.action for call in _calls(fold) if call.ok is False)
    if not uses:
        return "called no tool"
    told = [
        f"{action.partition(':')[2]} {_times(count)}{f' ({failed[action]} failed)' if failed[action] else ''}"
        for action, count in uses.most_common(6)
    ]
    more = f" and {len(uses) - len(told)} other tools" if len(uses) > len(told) else ""
    return f"called {', '.join(told)}{more}"


def _lessons(agent: AgentFacts) -> Iterator[m.Lesson]:
    """Yield what was learned from a failure: the tool's next call, with other arguments, worked."""
    failed: dict[str, CallFacts] = {}
    for call in agent.real_calls:
        before = failed.get(call.tool)
        if call.ok is False and not call.denied:
            failed[call.tool] = call
        elif call.ok and before is not None:
            del failed[call.tool]
            if before.args_hash != call.args_hash and (before.completed_seq or 0) < call.seq:
                yield _lesson(before, call)


def _lesson(before: CallFacts, call: CallFacts) -> m.Lesson:
    text = (
        f"{call.tool}({short(before.arguments, 120)}) failed ({short(before.message or 'no reason given', 160)}); "
        f"{call.tool}({short(call.arguments, 120)}) worked"
    )
    return m.Lesson(text=text, seqs=(before.seq, call.seq))


def _caveats(fold: DebriefFold, state: m.RecordingState, problems: tuple[str, ...]) -> Iterator[str]:
    if fold.header is None:
        yield "the first event is missing: who was asked what is not known"
    if fold.ending is None:
        yield "this run has no end in the file: it is still going on, or was killed; nothing here is final"
    if state in {"truncated", "damaged"}:
        yield f"the file is {state} ({short(problems[0], 160) if problems else 'see playhead check'}); what is missing is not accounted for"
    if fold.ending is not None and fold.ending[1].lost_events:
        yield f"{fold.ending[1].lost_events} events could not be written and are missing"
    if fold.header is not None and fold.header.redacted:
        yield "redaction rules changed the texts before they were recorded; numbers and reasons may look ungrounded"
    if unanswered := sum(call.ok is None for call in fold_calls(fold)):
        yield f"{_count(unanswered, 'call')} of a tool {'has' if unanswered == 1 else 'have'} no result in the file"
    if fold.numbers.full:
        yield f"the run was shown more than {MOST:,} different numbers; the answer's numbers were not checked"
    if len(fold.findings) > MOST_FINDINGS:
        yield f"{len(fold.findings) - MOST_FINDINGS} older findings are left out"
    if fold.unknown:
        kinds = short(", ".join(sorted(fold.unknown)), SHORT)
        yield f"events of kinds that this version does not know were left out: {kinds}"


def _step(step: m.PathStep, call: CallFacts | None, stages: Stages) -> m.PathStep:
    if call is None:
        return step
    repaired = ", ".join(stages.get((call.owner, call.call_id), ()))
    notes = [
        f"repaired: {repaired}" if repaired else None,
        "cached" if call.cached else None,
        "abandoned" if call.abandoned else None,
        call.ended,
        call.error,
    ]
    note = ", ".join(note for note in dict.fromkeys(notes) if note)
    more = {
        "ok": call.ok,
        "note": note or None,
        "call_id": call.call_id,
        "arguments": call.arguments,
        "rationale": call.reason,
    }
    return m.PathStep(**{**step.__dict__, **more})


def fold_calls(fold: DebriefFold) -> Iterable[CallFacts]:
    """Return every call, those of the kernel's own tools too."""
    return (call for agent in fold.agents.values() for call in agent.calls)


def _calls(fold: DebriefFold) -> Iterable[CallFacts]:
    return (call for call in fold_calls(fold) if call.kind != "meta")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count) or f"{count:,} times"
